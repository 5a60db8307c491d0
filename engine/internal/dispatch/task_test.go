package dispatch_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/dispatch"
)

// gate is a task whose every run reports its number, from 1, and then waits to be told what to return.
type gate struct {
	*dispatch.Task
	runs   int // the task's own
	begun  chan int
	result chan dispatch.Again
}

func newGate(p *dispatch.Pool, opt dispatch.Options) *gate {
	g := &gate{begun: make(chan int), result: make(chan dispatch.Again)}
	g.Task = p.NewTask(func() dispatch.Again {
		g.runs++
		g.begun <- g.runs
		return <-g.result
	}, opt)
	return g
}

// both runs a test for a task on the pool's workers and for a dedicated one.
func both(t *testing.T, test func(t *testing.T, opt dispatch.Options)) {
	t.Run("pool", func(t *testing.T) { test(t, dispatch.Options{}) })
	t.Run("dedicated", func(t *testing.T) { test(t, dispatch.Options{Dedicated: true}) })
}

func TestNewTask_Refuses(t *testing.T) {
	p, other := newPool(t, 1), newPool(t, 1)
	assert.Panics(t, func() { p.NewTask(nil, dispatch.Options{}) })
	assert.Panics(t, func() {
		p.NewTask(func() dispatch.Again { return false }, dispatch.Options{Limiter: other.NewLimiter(1)})
	})
}

func TestTaskWake_RunsOnceEach(t *testing.T) {
	both(t, func(t *testing.T, opt dispatch.Options) {
		g := newGate(newPool(t, 2), opt)
		assert.Equal(t, dispatch.Resting, g.State())
		for n := 1; n <= 3; n++ {
			g.Wake()
			assert.Equal(t, n, receive(t, g.begun))
			assert.Equal(t, dispatch.Running, g.State())
			g.result <- false
			await(t, "rest", g.Idle)
			assert.Equal(t, dispatch.Resting, g.State())
		}
	})
}

func TestTaskWake_WhileQueuedCountsOnce(t *testing.T) {
	p, release := blockedPool(t, 1)
	var runs atomic.Int64
	ran := make(chan struct{}, 10)
	task := p.NewTask(func() dispatch.Again { runs.Add(1); ran <- struct{}{}; return false }, dispatch.Options{})
	for range 5 {
		task.Wake()
	}
	assert.Equal(t, dispatch.Queued, task.State())
	assert.Equal(t, 1, p.Queued())
	release()
	receive(t, ran)
	await(t, "rest", task.Idle)
	assert.EqualValues(t, 1, runs.Load())
	assert.Equal(t, 0, p.Queued())
}

func TestTaskWake_DuringRunRunsOnceMore(t *testing.T) {
	both(t, func(t *testing.T, opt dispatch.Options) {
		g := newGate(newPool(t, 2), opt)
		g.Wake()
		receive(t, g.begun)
		for range 5 {
			g.Wake()
		}
		g.result <- false
		assert.Equal(t, 2, receive(t, g.begun), "the Wakes during the first run call for one more")
		g.result <- false
		await(t, "rest", g.Idle)
		assert.Equal(t, dispatch.Resting, g.State(), "and for no more than one")
	})
}

func TestTaskWake_FromItsOwnRun(t *testing.T) {
	both(t, func(t *testing.T, opt dispatch.Options) {
		var task *dispatch.Task
		runs := 0
		ended := make(chan int, 1)
		task = newPool(t, 1).NewTask(func() dispatch.Again {
			runs++
			if runs < 10 {
				task.Wake()
			} else {
				ended <- runs
			}
			return false
		}, opt)
		task.Wake()
		assert.Equal(t, 10, receive(t, ended))
	})
}

func TestTask_AgainGivesAnotherTurn(t *testing.T) {
	both(t, func(t *testing.T, opt dispatch.Options) {
		g := newGate(newPool(t, 1), opt)
		g.Wake()
		for n := 1; n <= 3; n++ {
			assert.Equal(t, n, receive(t, g.begun))
			g.result <- n < 3
		}
		await(t, "rest", g.Idle)
		assert.Equal(t, dispatch.Resting, g.State())
	})
}

func TestTaskStop_AtRest(t *testing.T) {
	both(t, func(t *testing.T, opt dispatch.Options) {
		g := newGate(newPool(t, 1), opt)
		select {
		case <-g.Done():
			t.Fatal("done before Stop")
		default:
		}
		g.Stop()
		g.Stop()
		receive(t, g.Done())
		assert.Equal(t, dispatch.Stopped, g.State())
		g.Wake()
		g.WakeAfter(0)
		g.WakeAfter(time.Nanosecond)
		assert.Equal(t, dispatch.Stopped, g.State())
	})
}

func TestTaskStop_WhileQueued(t *testing.T) {
	p, release := blockedPool(t, 1)
	first, second := newGate(p, dispatch.Options{}), newGate(p, dispatch.Options{})
	first.Wake()
	second.Wake()
	assert.Equal(t, 2, p.Queued())
	first.Stop()
	receive(t, first.Done())
	assert.Equal(t, 1, p.Queued(), "a stopped task leaves the queue at once")
	release()
	receive(t, second.begun)
	second.result <- false
	assert.Equal(t, dispatch.Stopped, first.State())
}

// TestTaskStop_InTheMiddleOfAWake holds the window open that the proof in task.go speaks of under "Stop is final".
func TestTaskStop_InTheMiddleOfAWake(t *testing.T) {
	both(t, func(t *testing.T, opt dispatch.Options) {
		p := newPool(t, 1)
		opt.Limiter = p.NewLimiter(1)
		task := p.NewTask(func() dispatch.Again { t.Error("ran"); return false }, opt)
		task.StopBeforeLink()
		receive(t, task.Done())
		assert.Equal(t, dispatch.Stopped, task.State())
		assert.Equal(t, 0, opt.Limiter.Held(), "no permit is lost")
		assert.Equal(t, 0, p.Queued())
		other := newGate(p, dispatch.Options{Limiter: opt.Limiter})
		other.Wake()
		receive(t, other.begun)
		other.result <- false
	})
}

func TestTaskStop_WhileRunning(t *testing.T) {
	both(t, func(t *testing.T, opt dispatch.Options) {
		for _, again := range []dispatch.Again{false, true} {
			g := newGate(newPool(t, 1), opt)
			g.Wake()
			receive(t, g.begun)
			g.Wake()
			g.Stop()
			g.Wake()
			assert.Equal(t, dispatch.Running, g.State())
			select {
			case <-g.Done():
				t.Fatal("done while the last run is in progress")
			default:
			}
			g.result <- again
			receive(t, g.Done())
			assert.Equal(t, dispatch.Stopped, g.State())
		}
	})
}

func TestTaskStop_FromItsOwnRun(t *testing.T) {
	both(t, func(t *testing.T, opt dispatch.Options) {
		var task *dispatch.Task
		task = newPool(t, 1).NewTask(func() dispatch.Again { task.Stop(); return true }, opt)
		task.Wake()
		receive(t, task.Done())
	})
}

func TestTaskIdle(t *testing.T) {
	both(t, func(t *testing.T, opt dispatch.Options) {
		g := newGate(newPool(t, 1), opt)
		closed := make(chan struct{})
		close(closed)
		assert.True(t, g.Idle(nil), "at once: no run is in progress")

		g.Wake()
		receive(t, g.begun)
		assert.False(t, g.Idle(closed), "in a run, and done is closed")

		waiting := make(chan bool)
		for range 2 {
			go func() { waiting <- g.Idle(nil) }()
		}
		g.result <- true // the next run starts at once, and Idle does not wait for that one
		assert.Equal(t, 2, receive(t, g.begun))
		// The two may have called Idle during the first run or the second; now both end.
		g.result <- false
		assert.True(t, receive(t, waiting))
		assert.True(t, receive(t, waiting))
	})
}

// TestTaskIdle_SettlesAFlag is the use that Idle is made for: set a flag that runs look at, then wait for those who may
// not have seen it. plain is written without any synchronization of its own, so the race detector checks the claim.
func TestTaskIdle_SettlesAFlag(t *testing.T) {
	p := newPool(t, 2)
	var paused atomic.Bool
	plain := 0
	task := p.NewTask(func() dispatch.Again {
		if paused.Load() {
			return false
		}
		plain++
		return true
	}, dispatch.Options{})
	for range 100 {
		paused.Store(false)
		task.Wake()
		paused.Store(true)
		await(t, "the run in progress", task.Idle)
		plain++
	}
}

func TestTask_RunsSeeEarlierRuns(t *testing.T) {
	const turns = 10000
	p := newPool(t, 4)
	n := 0 // plain: the race detector checks that runs are in order, on whichever worker
	ended := make(chan struct{})
	task := p.NewTask(func() dispatch.Again {
		n++
		if n == turns {
			close(ended)
		}
		return n < turns
	}, dispatch.Options{})
	// Others keep the workers in motion, so that the task moves between them.
	for range 8 {
		p.NewTask(func() dispatch.Again { return true }, dispatch.Options{}).Wake()
	}
	task.Wake()
	receive(t, ended)
}

func TestTaskRunningHere(t *testing.T) {
	both(t, func(t *testing.T, opt dispatch.Options) {
		p, elsewhere := newPool(t, 2), newPool(t, 1)
		var task, other *dispatch.Task
		type answer struct{ here, other, onWorker, elsewhere, child bool }
		answers := make(chan answer, 1)
		other = p.NewTask(func() dispatch.Again { return false }, opt)
		task = p.NewTask(func() dispatch.Again {
			child := make(chan bool)
			go func() { child <- task.RunningHere() || p.OnWorker() }()
			answers <- answer{task.RunningHere(), other.RunningHere(), p.OnWorker(), elsewhere.OnWorker(), <-child}
			return false
		}, opt)
		assert.False(t, task.RunningHere())
		assert.False(t, p.OnWorker())
		task.Wake()
		assert.Equal(t, answer{here: true, onWorker: true}, receive(t, answers))
	})
}

func TestState_String(t *testing.T) {
	for s, text := range map[dispatch.State]string{
		dispatch.Resting: "resting",
		dispatch.Queued:  "queued",
		dispatch.Waiting: "waiting",
		dispatch.Running: "running",
		dispatch.Stopped: "stopped",
		99:               "State(99)",
	} {
		assert.Equal(t, text, s.String())
	}
}

func TestTask_AllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates by itself")
	}
	both(t, func(t *testing.T, opt dispatch.Options) {
		p := newPool(t, 1)
		opt.Limiter = p.NewLimiter(1)
		answer := make(chan struct{}, 1)
		turn := 0
		task := p.NewTask(func() dispatch.Again {
			turn++
			if turn%3 != 0 {
				return true
			}
			answer <- struct{}{}
			return false
		}, opt)
		round := func() {
			task.Wake()
			<-answer
			task.WakeAfter(time.Hour)
			task.StopTimer()
		}
		round()
		require.Zero(t, testing.AllocsPerRun(1000, round))
	})
}
