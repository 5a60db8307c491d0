package due_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/due"
)

type timer struct{ place int }

func newTimers() *due.Heap[*timer] {
	return due.New(func(t *timer, place int) { t.place = place })
}

func TestHeap_SameTimeComesOutInTheOrderItCameIn(t *testing.T) {
	var got []int
	h := due.New(func(int, int) {})
	for i := range 100 {
		h.Push(i, 7)
	}
	for i, ok := h.Pop(7); ok; i, ok = h.Pop(7) {
		got = append(got, i)
	}
	require.Len(t, got, 100)
	assert.IsIncreasing(t, got)
}

func TestHeap_NothingIsDueBeforeItsTime(t *testing.T) {
	h := newTimers()
	h.Push(&timer{}, 10)
	_, ok := h.Pop(9)
	assert.False(t, ok)
	_, ok = h.Pop(10)
	assert.True(t, ok)
	_, ok = h.Pop(1 << 62)
	assert.False(t, ok, "it is gone")
}

// TestHeap_Due finds all that are due and no other, and does not look at the rest.
func TestHeap_Due(t *testing.T) {
	const many = 1 << 14
	h := newTimers()
	timers := make([]timer, many)
	for _, i := range rand.Perm(many) {
		h.Push(&timers[i], int64(i))
	}
	for _, now := range []int64{-1, 0, 1, 100, many / 2, many - 1, 1 << 62} {
		due := map[*timer]bool{}
		h.Due(now, func(x *timer) { due[x] = true })
		want := int(min(now+1, many))
		require.Len(t, due, want)
		for i := range want {
			require.True(t, due[&timers[i]])
		}
		assert.LessOrEqual(t, h.Looks(now), 2*want+1)
	}
	assert.Equal(t, many, h.Len())
}

// TestBUG094_StoppedTimersLeaveNothing sets and stops a million timers, of which at most ten are set at a time.
func TestBUG094_StoppedTimersLeaveNothing(t *testing.T) {
	h := newTimers()
	timers := make([]timer, 10)
	for i := range timers {
		h.Push(&timers[i], int64(i))
	}
	allocs := testing.AllocsPerRun(1, func() {
		for i := range 1_000_000 {
			x := &timers[i%len(timers)]
			h.Remove(x.place)
			h.Push(x, int64(i+1_000_000))
		}
	})
	assert.Less(t, allocs, 10.0, "for a million, with what else goes on in the process")
	assert.Equal(t, len(timers), h.Len())
}
