package ring_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leatlog/leat/ring"
)

// BenchmarkMPSC_HandOver measures the whole hand-over of 64-byte messages, producers and consumer running, with a buffered
// channel of the same capacity as the rival. One op is one message.
//
// Three things were tried here and made no difference beyond the noise, so the simplest stayed: a copy of head beside tail
// which producers read instead, the marks in an array of their own, and slots padded to whole lines.
func BenchmarkMPSC_HandOver(b *testing.B) {
	const capacity = 1024
	for _, producers := range []int{1, 3} {
		for _, batch := range []int{1, 16} {
			b.Run(fmt.Sprintf("impl=ring/producers=%d/batch=%d", producers, batch), func(b *testing.B) {
				b.ReportAllocs()
				var sum uint64
				c := newConsumer(ring.New[message](capacity), func(m *message) { sum += m.seq })
				var consumed, produced sync.WaitGroup
				consumed.Go(c.run)
				b.ResetTimer()
				for p := range producers {
					produced.Go(func() {
						for left := b.N / producers; left > 0; left -= batch {
							n := min(batch, left)
							pos, o, _ := c.r.Claim(n, nil)
							for i := range n {
								m := c.r.Slot(pos, i)
								m.producer, m.seq = p, uint64(left-i)
							}
							c.r.Slot(pos, 0).n = n
							c.r.Ready(pos)
							c.wake(o)
						}
					})
				}
				produced.Wait()
				if c.r.Close() {
					c.parker.Unpark()
				}
				consumed.Wait()
			})
		}
		b.Run(fmt.Sprintf("impl=chan/producers=%d/batch=1", producers), func(b *testing.B) {
			b.ReportAllocs()
			var sum uint64
			ch := make(chan message, capacity)
			var consumed, produced sync.WaitGroup
			consumed.Go(func() {
				for m := range ch {
					sum += m.seq
				}
			})
			b.ResetTimer()
			for p := range producers {
				produced.Go(func() {
					for left := b.N / producers; left > 0; left-- {
						ch <- message{n: 1, producer: p, seq: uint64(left)}
					}
				})
			}
			produced.Wait()
			close(ch)
			consumed.Wait()
		})
	}
}

// BenchmarkMPSC_Alone measures claim, fill, Ready and consumption on one goroutine, where no line of memory moves between
// processors. The floor is what the hardware charges for it: one CAS, the stores and one more atomic store.
func BenchmarkMPSC_Alone(b *testing.B) {
	const capacity = 1024
	b.Run("impl=ring", func(b *testing.B) {
		b.ReportAllocs()
		r := ring.New[message](capacity)
		var i uint64
		for b.Loop() {
			pos, _ := r.TryClaim(1)
			m := r.Slot(pos, 0)
			m.n, m.producer, m.seq = 1, 1, i
			r.Ready(pos)
			i++
			if r.IsReady(pos) {
				r.Release(r.Advance(pos, 1))
			}
		}
	})
	b.Run("impl=chan", func(b *testing.B) {
		b.ReportAllocs()
		ch := make(chan message, capacity)
		var i uint64
		for b.Loop() {
			ch <- message{n: 1, producer: 1, seq: i}
			i++
			<-ch
		}
	})
	b.Run("impl=floor", func(b *testing.B) {
		b.ReportAllocs()
		slots := make([]message, capacity)
		var tail, head atomic.Uint64
		for i := uint64(0); b.Loop(); i++ {
			tail.CompareAndSwap(i, i+1)
			m := &slots[i%capacity]
			m.n, m.producer, m.seq = 1, 1, i
			head.Store(i)
		}
	})
}
