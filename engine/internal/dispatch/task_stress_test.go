package dispatch_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/internal/atomicx"
)

// worn is a task under stress. Its function checks the sentences of the proof in task.go as far as they can be seen from
// inside a run.
type worn struct {
	*dispatch.Task
	t *testing.T

	todo   atomic.Int64 // raised by wakers before Wake, taken by runs
	inside atomic.Int32 // runs in progress
	over   atomic.Bool  // set after Done was seen closed
	noted  atomic.Int64 // runs that found nothing to do

	plain int64 // what runs took from todo; no synchronization of its own: the race detector checks "Runs in order"
}

func (x *worn) run(l *span) dispatch.Again {
	defer x.inside.Add(-1)
	if x.inside.Add(1) != 1 {
		x.t.Error("two runs at a time")
	}
	if x.over.Load() {
		x.t.Error("a run after Done")
	}
	l.enter(x.t)
	defer l.leave()
	n := x.todo.Swap(0)
	x.plain += n
	if n == 0 {
		x.noted.Add(1)
	}
	switch rand.IntN(16) {
	case 0:
		runtime.Gosched()
	case 1:
		x.WakeAfter(time.Duration(rand.IntN(1000)))
	case 2:
		x.Wake()
	case 3:
		return true
	case 4:
		panic("broken")
	case 5:
		runtime.Goexit()
	}
	if x.over.Load() {
		x.t.Error("a run was in progress at Done")
	}
	return false
}

// span counts who is inside at a time, up to max; 0 is no limit.
type span struct {
	max, now atomic.Int64
}

func (l *span) enter(t *testing.T) {
	if n := l.now.Add(1); l.max.Load() > 0 && n > l.max.Load() {
		t.Errorf("%d runs under a limit of %d", n, l.max.Load())
	}
}

func (l *span) leave() { l.now.Add(-1) }

// TestTask_Stress wakes tasks from many goroutines, by call and by timer, stops some of them half way, and checks what the
// proof in task.go claims: never two runs of a task at a time, each run sees the memory of the earlier ones, every Wake
// that is not stopped has a run after it, nothing runs after Done, and a limiter's bound holds. Wakes are few and the
// tasks' goroutines die often, so that most of them meet a task, or a pool, that is just coming to rest.
func TestTask_Stress(t *testing.T) {
	rounds := 2000
	if testing.Short() || raceEnabled {
		rounds = 200
	}
	var stoppedInRun, stoppedWithWork, wokenInRun atomic.Int64
	reached := func() bool {
		return wokenInRun.Load() > 0 && stoppedInRun.Load() > 0 && stoppedWithWork.Load() > 0
	}
	for round := 0; round < rounds || !reached() && round < 10*rounds; round++ {
		workers := 1 + round%4
		p := newPoolHook(t, workers, nil)
		limits := []*span{new(span), new(span)} // none, and a small one
		limits[1].max.Store(int64(1 + round%2))
		limiter := p.NewLimiter(1 + round%2)
		tasks := make([]*worn, 12)
		for i := range tasks {
			x := &worn{t: t}
			opt := dispatch.Options{Dedicated: i%6 == 5}
			limit := limits[0]
			if i%3 == 0 {
				opt.Limiter, limit = limiter, limits[1]
			}
			x.Task = p.NewTask(func() dispatch.Again { return x.run(limit) }, opt)
			tasks[i] = x
		}
		lasting, doomed := tasks[:8], tasks[8:]

		var wakers, stoppers sync.WaitGroup
		var sent [8]atomic.Int64
		for range 4 {
			wakers.Go(func() {
				for range 100 {
					i := rand.IntN(len(tasks))
					x := tasks[i]
					x.todo.Add(1)
					if i < len(lasting) {
						sent[i].Add(1)
					}
					if x.inside.Load() == 1 {
						wokenInRun.Add(1)
					}
					if rand.IntN(8) == 0 {
						x.WakeAfter(time.Duration(rand.IntN(1000)))
						x.Wake() // a later WakeAfter may replace the timer
					} else {
						x.Wake()
					}
					if rand.IntN(4) == 0 {
						runtime.Gosched()
					}
				}
			})
		}
		for _, x := range doomed {
			stoppers.Go(func() {
				for range rand.IntN(200) {
					runtime.Gosched()
				}
				x.Stop()
				if !isClosed(x.Done()) {
					stoppedInRun.Add(1)
				}
				receive(t, x.Done())
				x.over.Store(true)
				if x.todo.Load() > 0 {
					stoppedWithWork.Add(1)
				}
			})
		}
		wakers.Wait()
		stoppers.Wait()
		for i, x := range lasting {
			await(t, "the work to be taken", func(done <-chan struct{}) bool {
				for x.todo.Load() > 0 {
					if isClosed(done) {
						t.Logf("round %d: task %d is %v with %d to do", round, i, x.State(), x.todo.Load())
						return false
					}
					runtime.Gosched()
				}
				return true
			})
		}
		for i, x := range lasting {
			x.Stop()
			receive(t, x.Done())
			x.over.Store(true)
			assert.Equal(t, sent[i].Load(), x.plain)
		}
		assert.Equal(t, 0, limiter.Held())
		assert.Equal(t, 0, limiter.Waiting())
		p.Close()
		await(t, "the pool's end", p.Wait)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("woken in a run %d, stopped in a run %d, stopped with work left %d", wokenInRun.Load(), stoppedInRun.Load(), stoppedWithWork.Load())
	assert.NotZero(t, wokenInRun.Load(), "never reached: a Wake during a run")
	assert.NotZero(t, stoppedInRun.Load(), "never reached: a Stop during a run")
	assert.NotZero(t, stoppedWithWork.Load(), "never reached: a Stop of a task that was to run")
}

// TestTask_StressEndOfRun aims at one sentence of the proof in task.go: the end of a run does not overlook the mark. The
// waker calls Wake as soon as the run has taken what there was, which is just before the run's end.
func TestTask_StressEndOfRun(t *testing.T) {
	rounds := 200000
	if testing.Short() || raceEnabled {
		rounds = 50000
	}
	both(t, func(t *testing.T, opt dispatch.Options) {
		var todo atomic.Int64
		task := newPool(t, 1).NewTask(func() dispatch.Again { todo.Store(0); return false }, opt)
		await(t, "the task to run", func(done <-chan struct{}) bool {
			for range rounds {
				todo.Store(1)
				task.Wake()
				for turn := uint32(0); todo.Load() != 0; turn++ {
					atomicx.Relax(turn % 1000)
					if turn%1000 == 999 && isClosed(done) {
						return false
					}
				}
			}
			return true
		})
	})
}

// TestQueue_Stress lets many tasks come and go on few workers with nothing between them, so that workers search, park and
// are called back all the time, and checks what the comment on queue claims: no task on the queue is forgotten. Each task
// wakes its neighbour, so that one that is forgotten stops the ring.
func TestQueue_Stress(t *testing.T) {
	hops := int64(200000)
	if testing.Short() || raceEnabled {
		hops = 20000
	}
	for _, c := range []struct{ workers, tasks, tokens int }{{1, 2, 1}, {2, 3, 1}, {2, 8, 2}, {4, 8, 3}, {8, 64, 4}} {
		p := newPool(t, c.workers)
		ended := make(chan struct{}, c.tokens)
		held := make([]atomic.Int64, c.tasks)
		tasks := make([]*dispatch.Task, c.tasks)
		var hop atomic.Int64
		for i := range tasks {
			tasks[i] = p.NewTask(func() dispatch.Again {
				for range held[i].Swap(0) {
					if hop.Add(1) > hops {
						ended <- struct{}{}
						continue
					}
					next := (i + 1) % len(tasks)
					held[next].Add(1)
					tasks[next].Wake()
				}
				return false
			}, dispatch.Options{Dedicated: i%8 == 7})
		}
		for i := range c.tokens {
			held[i%len(tasks)].Add(1)
			tasks[i%len(tasks)].Wake()
		}
		for range c.tokens {
			receive(t, ended)
		}
		assert.GreaterOrEqual(t, hop.Load(), hops)
	}
}
