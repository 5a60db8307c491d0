package baseline_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/baseline"
	"github.com/leatlog/leat/cursor"
)

// TestRing_Stress has every reader of a small ring see every message once, whole and in order, however they wait.
func TestRing_Stress(t *testing.T) {
	const n, readers = 3000, 3
	type message struct{ a, b uint64 }
	for _, wait := range []cursor.Wait{cursor.WaitPark, cursor.WaitYield, cursor.WaitSpin} {
		for _, batch := range []int{1, 7, 100} {
			r := baseline.NewRing[message](16, readers, wait)
			var wg sync.WaitGroup
			for i := range readers {
				x := r.Reader(i)
				wg.Go(func() {
					for next := uint64(0); next < n; {
						k := x.Ready(batch)
						for j := range k {
							if m := *x.Slot(j); m != (message{next, ^next}) {
								t.Errorf("%v, batches of %d: reader %d got %v at %d", wait, batch, i, m, next)
							}
							next++
						}
						x.Done(k)
					}
				})
			}
			for seq := uint64(0); seq < n; {
				k := r.Room(min(batch, int(n-seq)))
				for j := range k {
					*r.Slot(j) = message{seq, ^seq}
					seq++
				}
				r.Publish(k)
			}
			wg.Wait()
		}
	}
}

func TestRing_TheSlowestReaderHoldsBackTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := baseline.NewRing[int](4, 2, cursor.WaitPark)
		fast, slow := r.Reader(0), r.Reader(1)
		require.Equal(t, 4, r.Room(100))
		r.Publish(4)
		require.Equal(t, 4, fast.Ready(100))
		fast.Done(4)
		room := make(chan int, 1)
		go func() { room <- r.Room(100) }()
		synctest.Wait()
		assert.Empty(t, room)
		require.Equal(t, 3, slow.Ready(3))
		slow.Done(1)
		synctest.Wait()
		assert.Equal(t, 1, <-room)
	})
}

func TestRing_CloseEndsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := baseline.NewRing[int](3, 1, cursor.WaitPark)
		x := r.Reader(0)
		ready := make(chan int, 1)
		go func() { ready <- x.Ready(1) }()
		synctest.Wait()
		r.Close()
		assert.Equal(t, 0, <-ready)
		require.Equal(t, 4, r.Room(100), "rounded up to a power of two")
		r.Publish(4)
		assert.Equal(t, 4, x.Ready(100), "what is there can be read")
		assert.Equal(t, 0, r.Room(1))
	})
}
