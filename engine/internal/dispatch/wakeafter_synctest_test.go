package dispatch_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/internal/testkit"
)

// timed is a task that notes when it ran, in nanoseconds from the start of the bubble.
type timed struct {
	*dispatch.Task
	mu   sync.Mutex
	runs []time.Duration // under mu
}

func (x *timed) ran() []time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.runs)
}

func newTimed(p *dispatch.Pool, opt dispatch.Options) *timed {
	x := new(timed)
	start := time.Now()
	x.Task = p.NewTask(func() dispatch.Again {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.runs = append(x.runs, time.Since(start))
		return false
	}, opt)
	return x
}

// inBubble runs test in a synctest bubble, with a pool that must have ended at the end of it.
func inBubble(t *testing.T, test func(t *testing.T, p *dispatch.Pool, opt dispatch.Options)) {
	both(t, func(t *testing.T, opt dispatch.Options) {
		synctest.Test(t, func(t *testing.T) {
			p := dispatch.NewPool(2, nil)
			test(t, p, opt)
			p.Close()
			p.Wait(nil)
		})
	})
}

func TestWakeAfter_RunsAtTheTime(t *testing.T) {
	inBubble(t, func(t *testing.T, p *dispatch.Pool, opt dispatch.Options) {
		x := newTimed(p, opt)
		x.WakeAfter(10)
		testkit.Pass(9)
		assert.Empty(t, x.ran())
		testkit.Pass(1)
		assert.Equal(t, []time.Duration{10}, x.ran())
		testkit.Pass(time.Hour)
		assert.Len(t, x.ran(), 1, "once")

		x.WakeAfter(5) // the timer is used again
		testkit.Pass(time.Hour)
		assert.Equal(t, []time.Duration{10, 10 + time.Hour + 5}, x.ran())
	})
}

func TestWakeAfter_NotPositiveIsNow(t *testing.T) {
	inBubble(t, func(t *testing.T, p *dispatch.Pool, opt dispatch.Options) {
		x := newTimed(p, opt)
		for _, d := range []time.Duration{0, -1, -time.Hour} {
			x.WakeAfter(time.Minute) // replaced
			x.WakeAfter(d)
			synctest.Wait()
		}
		testkit.Pass(time.Hour)
		assert.Equal(t, []time.Duration{0, 0, 0}, x.ran())
	})
}

func TestWakeAfter_LaterReplacesEarlier(t *testing.T) {
	inBubble(t, func(t *testing.T, p *dispatch.Pool, opt dispatch.Options) {
		x := newTimed(p, opt)
		x.WakeAfter(10)
		x.WakeAfter(30) // later
		time.Sleep(20)
		x.WakeAfter(5) // and sooner
		testkit.Pass(time.Hour)
		assert.Equal(t, []time.Duration{25}, x.ran())
	})
}

func TestWakeAfter_StopTimer(t *testing.T) {
	inBubble(t, func(t *testing.T, p *dispatch.Pool, opt dispatch.Options) {
		x := newTimed(p, opt)
		x.StopTimer() // none yet
		x.WakeAfter(10)
		x.StopTimer()
		testkit.Pass(time.Hour)
		assert.Empty(t, x.ran())
		x.WakeAfter(10)
		testkit.Pass(time.Hour)
		assert.Len(t, x.ran(), 1)
	})
}

func TestWakeAfter_StopTakesTheTimerDown(t *testing.T) {
	inBubble(t, func(t *testing.T, p *dispatch.Pool, opt dispatch.Options) {
		x, y := newTimed(p, opt), newTimed(p, opt)
		x.WakeAfter(10)
		x.Stop()
		y.Stop()
		y.WakeAfter(10)
		testkit.Pass(time.Hour)
		assert.Empty(t, x.ran())
		assert.Empty(t, y.ran())
	})
}

func TestWakeAfter_CloseTakesTheTimerDown(t *testing.T) {
	inBubble(t, func(t *testing.T, p *dispatch.Pool, opt dispatch.Options) {
		x := newTimed(p, opt)
		x.WakeAfter(10)
		p.Close()
		testkit.Pass(time.Hour)
		assert.Empty(t, x.ran())
	})
}

// TestWakeAfter_FromTheRun is a task that paces itself, as a lane does that waits out a backoff.
func TestWakeAfter_FromTheRun(t *testing.T) {
	inBubble(t, func(t *testing.T, p *dispatch.Pool, opt dispatch.Options) {
		var task *dispatch.Task
		start := time.Now()
		var runs []time.Duration
		task = p.NewTask(func() dispatch.Again {
			runs = append(runs, time.Since(start))
			if len(runs) < 4 {
				task.WakeAfter(time.Second << len(runs))
			}
			return false
		}, opt)
		task.Wake()
		time.Sleep(time.Hour)
		await(t, "rest", task.Idle) // for the race detector
		assert.Equal(t, []time.Duration{0, 2 * time.Second, 6 * time.Second, 14 * time.Second}, runs)
	})
}

// TestBUG094_AtTheDeadline replaces or stops the timer just before, at, and just after the instant at which it fires. At
// that instant either may win, but the new time is kept, there is at most one run too many, and after Stop there is none.
func TestBUG094_AtTheDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, p *dispatch.Pool, opt dispatch.Options) {
		for i := range 300 {
			after := time.Duration(9 + i%3)
			x := newTimed(p, opt)
			x.WakeAfter(10)
			time.Sleep(after)
			x.WakeAfter(100)
			testkit.Pass(time.Hour)
			runs := x.ran()
			if after < 10 || after == 10 && len(runs) == 1 {
				assert.Equal(t, []time.Duration{after + 100}, runs)
			} else {
				assert.Equal(t, []time.Duration{10, after + 100}, runs)
			}

			x.WakeAfter(10)
			time.Sleep(after)
			x.Stop()
			<-x.Done()
			stopped := x.ran()
			if after != 10 {
				assert.Len(t, stopped, len(runs)+int(after)/10)
			}
			testkit.Pass(time.Hour)
			assert.Equal(t, stopped, x.ran())
		}
	})
}

// TestBUG026_IdleIsParked: once the tasks rest, synctest.Wait returns, which it does only when all goroutines are parked,
// and an hour passes in an instant without anybody waking up to look.
func TestBUG026_IdleIsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := dispatch.NewPool(4, nil)
		var runs atomic.Int64
		for i := range 1000 {
			p.NewTask(func() dispatch.Again { runs.Add(1); return false }, dispatch.Options{Dedicated: i%100 == 0}).Wake()
		}
		synctest.Wait()
		assert.EqualValues(t, 1000, runs.Load())
		assert.Equal(t, 0, p.Running())
		assert.Equal(t, 0, p.Queued())
		time.Sleep(time.Hour)
		assert.EqualValues(t, 1000, runs.Load())
		p.Close()
		p.Wait(nil)
	})
}
