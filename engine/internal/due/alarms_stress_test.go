package due_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/engine/internal/due"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/testkit"
)

// TestAlarms_Stress lets goroutines put work into places and set each place's alarm, to the same times again and again so
// that many calls return without the lock; the rings take the work. All of it is taken in the end, without anybody looking
// twice: "Nothing is missed". No two rings overlap: "One at a time".
func TestAlarms_Stress(t *testing.T) {
	testkit.Watchdog(t)
	const setters, places = 4, 3
	clock := atomicx.NewClock()
	s := due.NewAlarms(&clock)
	type place struct {
		due.Alarm
		work  atomic.Int64
		plain int64 // of the rings: the race detector checks that each sees what the one before has done
	}
	var (
		alarms [places]place
		inside atomic.Int32
		taken  atomic.Int64
		early  atomic.Int64
	)
	for i := range alarms {
		x := &alarms[i]
		x.Init(s, func(now int64) {
			if inside.Add(1) != 1 {
				t.Error("two rings at a time")
			}
			n := x.work.Swap(0)
			x.plain += n
			taken.Add(n)
			if clock.Now() < now {
				early.Add(1)
			}
			if n > 0 && rand.IntN(4) == 0 {
				x.Set(now + rand.Int64N(2000)) // for nothing, most of the time
			}
			inside.Add(-1)
		})
	}
	var wg sync.WaitGroup
	rounds := testkit.Rounds(60_000)
	for range setters {
		wg.Go(func() {
			for range rounds {
				x := &alarms[rand.IntN(places)]
				x.work.Add(1)
				switch at := clock.Now() + rand.Int64N(20_000); rand.IntN(8) {
				case 0:
					x.SetEarlier(0) // at once
				default:
					x.SetEarlier(at &^ 0xfff)
				}
			}
		})
	}
	wg.Wait()
	testkit.Await(func() bool { return taken.Load() == setters*int64(rounds) })
	assert.Zero(t, early.Load())
	s.Close()
	<-s.Done()
	var sum int64
	for i := range alarms {
		sum += alarms[i].plain
	}
	assert.Equal(t, setters*int64(rounds), sum)
}

// TestAlarm_StressSetEarlier: of several times at once the earliest one stays.
func TestAlarm_StressSetEarlier(t *testing.T) {
	testkit.Watchdog(t)
	clock := atomicx.NewClock()
	s := due.NewAlarms(&clock)
	defer s.Close()
	var x due.Alarm
	x.Init(s, func(int64) { t.Error("rung") })
	far := clock.Now() + int64(1e15)
	const setters = 2
	var round, done atomic.Int64
	var wg sync.WaitGroup
	rounds := int64(testkit.Rounds(100_000))
	for i := range int64(setters) {
		wg.Go(func() {
			for r := int64(1); r <= rounds; r++ {
				for round.Load() < r {
					runtime.Gosched()
				}
				x.SetEarlier(far + (i+r)%setters)
				done.Add(1)
			}
		})
	}
	for r := int64(1); r <= rounds; r++ {
		x.Clear()
		round.Store(r)
		for done.Load() < r*setters {
			runtime.Gosched()
		}
		if x.At() != far {
			assert.Equal(t, far, x.At(), "round %d", r)
			round.Store(rounds)
			break
		}
	}
	wg.Wait()
}

// TestAlarms_StressClose closes while others set alarms and rings are in progress: "Close is final".
func TestAlarms_StressClose(t *testing.T) {
	testkit.Watchdog(t)
	rang := 0
	for i, n := 0, testkit.Rounds(2000); i < n || rang == 0; i++ {
		clock := atomicx.NewClock()
		s := due.NewAlarms(&clock)
		var x, y due.Alarm
		var over atomic.Bool
		var rings atomic.Int64
		ring := func(now int64) {
			if over.Load() {
				t.Error("a ring after Done")
			}
			rings.Add(1)
			x.Set(now)        // for ever
			runtime.Gosched() // so that the others get mu with one processor too
		}
		x.Init(s, ring)
		y.Init(s, ring)
		x.Set(0)
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 20 {
				y.Set(clock.Now() + rand.Int64N(1000))
				y.Clear()
			}
		})
		wg.Go(func() {
			for range rand.IntN(100) {
				_ = rings.Load()
			}
			s.Close()
			<-s.Done()
			over.Store(true)
		})
		wg.Wait()
		if rings.Load() > 0 {
			rang++
		}
		assert.Equal(t, due.Never, x.At())
		assert.Equal(t, due.Never, y.At())
	}
	assert.Positive(t, rang, "no ring was ever in progress")
}
