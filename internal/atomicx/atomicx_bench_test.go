package atomicx_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

// BenchmarkCost measures what the pieces cost one goroutine by itself. impl=floor is the same in plain Go or sync/atomic.
func BenchmarkCost(b *testing.B) {
	b.Run("op=load/impl=atomicx", func(b *testing.B) {
		var x atomicx.Uint64
		for b.Loop() {
			x.Load()
		}
	})
	b.Run("op=load/impl=floor", func(b *testing.B) {
		var x atomic.Uint64
		for b.Loop() {
			x.Load()
		}
	})
	b.Run("op=cell/impl=atomicx", func(b *testing.B) {
		var x atomicx.Cell[uint64]
		for b.Loop() {
			atomicx.Writes(unsafe.Pointer(&x))
			x.Set(x.Get() + 1)
		}
	})
	b.Run("op=cell/impl=floor", func(b *testing.B) {
		x := new(uint64)
		for b.Loop() {
			*x++
		}
		runtime.KeepAlive(x)
	})
	b.Run("op=store/impl=release", func(b *testing.B) {
		var x atomicx.Uint64
		for i := uint64(0); b.Loop(); i++ {
			atomicx.StoreRelease(&x, i)
		}
	})
	b.Run("op=store/impl=atomic", func(b *testing.B) {
		var x atomicx.Uint64
		for i := uint64(0); b.Loop(); i++ {
			x.Store(i)
		}
	})
	b.Run("op=ratchet/impl=atomicx", func(b *testing.B) {
		var x atomicx.Uint64
		for i := uint64(0); b.Loop(); i++ {
			atomicx.Ratchet(&x, i)
		}
	})
	b.Run("op=pause/impl=atomicx", func(b *testing.B) {
		for b.Loop() {
			atomicx.Pause(1)
		}
	})
	b.Run("op=now/impl=atomicx", func(b *testing.B) {
		c := atomicx.NewClock()
		for b.Loop() {
			c.Now()
		}
	})
	b.Run("op=now/impl=watch", func(b *testing.B) {
		c := atomicx.NewClock()
		w := atomicx.NewWatch(&c)
		for b.Loop() {
			w.Now()
		}
	})
	b.Run("op=park/impl=token", func(b *testing.B) {
		p := atomicx.NewParker()
		for b.Loop() {
			p.Unpark()
			p.Park(nil)
		}
	})
	b.Run("op=broadcast/impl=nobody", func(b *testing.B) {
		var e atomicx.Event
		for b.Loop() {
			e.Broadcast()
		}
	})
	b.Run("op=broadcast/impl=one", func(b *testing.B) {
		var e atomicx.Event
		w := atomicx.NewWaiter()
		for b.Loop() {
			e.Prepare(w)
			e.Broadcast()
			e.Wait(w, nil)
		}
	})
	b.Run("op=prepare/impl=cancel", func(b *testing.B) {
		var e atomicx.Event
		w := atomicx.NewWaiter()
		for b.Loop() {
			e.Prepare(w)
			e.Cancel(w)
		}
	})
}

// BenchmarkPolled measures a store to a word that another goroutine polls: what the barrier of an atomic store costs there.
func BenchmarkPolled(b *testing.B) {
	for _, impl := range []string{"release", "atomic"} {
		b.Run("impl="+impl, func(b *testing.B) {
			var x, stop atomicx.PaddedUint64
			done := make(chan struct{})
			go func() {
				defer close(done)
				for stop.Load() == 0 {
					x.Load()
					atomicx.Pause(1)
				}
			}()
			for i := uint64(0); b.Loop(); i++ {
				if impl == "release" {
					atomicx.StoreRelease(&x.Uint64, i)
				} else {
					x.Store(i)
				}
			}
			stop.Store(1)
			<-done
		})
	}
}

// BenchmarkWakeUp measures a round trip between two goroutines that park for each other.
func BenchmarkWakeUp(b *testing.B) {
	var (
		e    [2]atomicx.Event
		ball atomicx.Uint64 // odd: the other side's; 1<<63: over
	)
	const over = 1 << 63
	done := make(chan struct{})
	go func() {
		defer close(done)
		me := newSleeper()
		for {
			me.await(&e[1], func() bool { return ball.Load()&1 != 0 || ball.Load()&over != 0 })
			if ball.Load()&over != 0 {
				return
			}
			ball.Add(1)
			e[0].Broadcast()
		}
	}()
	me := newSleeper()
	for b.Loop() {
		ball.Add(1)
		e[1].Broadcast()
		me.await(&e[0], func() bool { return ball.Load()&1 == 0 })
	}
	ball.Or(over)
	e[1].Broadcast()
	<-done
}
