package due_test

import "testing"

// BenchmarkHeap measures setting a timer that is later than all others and taking out the earliest, with so many in the
// heap.
func BenchmarkHeap(b *testing.B) {
	for _, n := range []struct {
		name string
		keys int
	}{{"keys=16", 16}, {"keys=1024", 1024}, {"keys=65536", 65536}} {
		b.Run(n.name, func(b *testing.B) {
			b.ReportAllocs()
			h := newTimers()
			for i := range n.keys {
				h.Push(&timer{}, int64(i))
			}
			now := int64(n.keys)
			for b.Loop() {
				t, _ := h.Pop(now)
				h.Push(t, now)
				now++
			}
		})
	}
}
