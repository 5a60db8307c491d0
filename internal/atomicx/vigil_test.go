package atomicx_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/atomicx"
)

// withProcs sets the number of processors for a test.
func withProcs(t *testing.T, n int) {
	if atomicx.Exploring {
		t.Skip("nobody stays awake in an explore build: waiting starts with parking")
	}
	before := runtime.GOMAXPROCS(n)
	atomicx.NoteProcs()
	t.Cleanup(func() { runtime.GOMAXPROCS(before); atomicx.NoteProcs() })
}

// worthy returns a vigil that has been woken soon.
func worthy() *atomicx.Vigil {
	v := new(atomicx.Vigil)
	v.Park(100)
	v.Unpark(100 + 1000)
	return v
}

// length returns how many turns a vigil takes in vain.
func length(v *atomicx.Vigil) (n int) {
	for turn := v.Begin(); v.Again(&turn); n++ {
	}
	return n
}

func TestVigil_Worth(t *testing.T) {
	withProcs(t, 2)
	v := new(atomicx.Vigil)
	assert.Zero(t, length(v), "the zero value parks at once")
	v.Park(0)
	v.Unpark(1_000_000)
	assert.Zero(t, length(v), "it has been parked for long")
	v.Park(0)
	v.Unpark(10_000)
	n := length(v)
	assert.Positive(t, n)
	assert.Equal(t, n, length(v), "it was in vain once")
	v.Park(0)
	v.Unpark(1_000_000)
	assert.Zero(t, length(v), "it was in vain three times")
	v.Park(0)
	v.Unpark(10_000)
	for range 3 {
		turn := v.Begin()
		require.True(t, v.Again(&turn))
		require.True(t, v.Again(&turn))
		v.End(true)
	}
	assert.Equal(t, n, length(v), "it was worth it the last time")
}

// TestVigil_LeavesAProcessor: as many may be awake as leave one processor to others, whoever they are.
func TestVigil_LeavesAProcessor(t *testing.T) {
	withProcs(t, 3)
	a, b, c := worthy(), worthy(), worthy()
	at, bt, ct := a.Begin(), b.Begin(), c.Begin()
	assert.True(t, a.Again(&at))
	assert.True(t, b.Again(&bt))
	assert.False(t, c.Again(&ct))
	a.End(true)
	assert.Positive(t, length(c), "there is room again, and it has not been in vain")
	b.End(true)

	var in, most atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			v := worthy()
			for range 300 {
				if turn := v.Begin(); v.Again(&turn) {
					n := in.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					runtime.Gosched()
					in.Add(-1)
					v.End(true)
				}
			}
		})
	}
	all.Wait()
	assert.LessOrEqual(t, most.Load(), int64(2))
}

func TestVigil_OneProcessor(t *testing.T) {
	withProcs(t, 1)
	assert.Zero(t, length(worthy()), "nobody else could run meanwhile")
}
