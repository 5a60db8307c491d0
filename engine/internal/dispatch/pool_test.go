package dispatch_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/dispatch"
)

func TestNewPool_Refuses(t *testing.T) {
	assert.Panics(t, func() { dispatch.NewPool(0, nil) })
}

func TestPool_FirstInFirstOut(t *testing.T) {
	p, release := blockedPool(t, 1)
	const n = 20
	order := make(chan int, n)
	for i := range n {
		p.NewTask(func() dispatch.Again { order <- i; return false }, dispatch.Options{}).Wake()
	}
	assert.Equal(t, n, p.Queued())
	assert.Equal(t, 1, p.Running())
	assert.Equal(t, 1, p.Workers())
	release()
	for i := range n {
		assert.Equal(t, i, receive(t, order))
	}
}

// TestSEED06_RoundRobin: a task that always wants more, one that has more for a while and one that is fresh take turns,
// whatever the order they came in.
func TestSEED06_RoundRobin(t *testing.T) {
	p, release := blockedPool(t, 1)
	var order []string // the single worker's own
	ended := make(chan struct{})
	add := func(name string, turns int) *dispatch.Task {
		task := p.NewTask(func() dispatch.Again {
			order = append(order, name)
			turns--
			if len(order) == 12 {
				close(ended)
			}
			return turns != 0
		}, dispatch.Options{})
		task.Wake()
		return task
	}
	hog := add("hog", -1)
	add("group", 4)
	add("fresh", 1)
	release()
	receive(t, ended)
	hog.Stop()
	receive(t, hog.Done())
	assert.Equal(t, []string{
		"hog", "group", "fresh",
		"hog", "group",
		"hog", "group",
		"hog", "group",
		"hog", "hog", "hog",
	}, order[:12])
}

// TestSEED15_StuckFunctions: two functions that never return hold their workers and nothing else. Under a limiter below the
// pool's size a third task keeps running; and if all workers are stuck a dedicated one does. The state names the stuck.
func TestSEED15_StuckFunctions(t *testing.T) {
	t.Run("limiter", func(t *testing.T) {
		p := newPool(t, 2)
		l := p.NewLimiter(1)
		stuck, behind := newGate(p, dispatch.Options{Limiter: l}), newGate(p, dispatch.Options{Limiter: l})
		stuck.Wake()
		receive(t, stuck.begun)
		behind.Wake()
		third := newGate(p, dispatch.Options{})
		for n := 1; n <= 10; n++ {
			third.Wake()
			receive(t, third.begun)
			third.result <- false
		}
		assert.Equal(t, dispatch.Running, stuck.State())
		assert.Equal(t, dispatch.Waiting, behind.State())
		behind.Stop()
		stuck.result <- false
	})
	t.Run("dedicated", func(t *testing.T) {
		p, release := blockedPool(t, 2)
		third, fourth := newGate(p, dispatch.Options{Dedicated: true}), newGate(p, dispatch.Options{})
		fourth.Wake()
		for n := 1; n <= 10; n++ {
			third.Wake()
			receive(t, third.begun)
			third.result <- false
		}
		assert.Equal(t, 2, p.Running())
		assert.Equal(t, dispatch.Queued, fourth.State())
		release()
		receive(t, fourth.begun)
		fourth.result <- false
	})
}

// TestBUG013_FunctionDoesNotReturn: a panic, a panic with nil, and runtime.Goexit cost neither a worker nor the task; the
// hook hears of each, with a stack that shows the place; deferred functions of the task have run by then.
func TestBUG013_FunctionDoesNotReturn(t *testing.T) {
	failure := errors.New("broken")
	for name, c := range map[string]struct {
		leave func()
		check func(t *testing.T, v any)
	}{
		"string": {func() { panic("broken") }, func(t *testing.T, v any) { assert.Equal(t, "broken", v) }},
		"error":  {func() { panic(failure) }, func(t *testing.T, v any) { assert.Equal(t, failure, v) }},
		"runtime": {func() { panic([]int(nil)[:1:1][0]) }, func(t *testing.T, v any) {
			assert.ErrorAs(t, v.(error), new(runtime.Error))
		}},
		"nil":    {func() { panic(nil) }, func(t *testing.T, v any) { assert.IsType(t, new(runtime.PanicNilError), v) }},
		"goexit": {leaveByGoexit, func(t *testing.T, v any) { assert.Equal(t, dispatch.ErrGoexit, v) }},
		"goexit while panicking": {
			func() { defer runtime.Goexit(); panic("broken") },
			func(t *testing.T, v any) { assert.Equal(t, dispatch.ErrGoexit, v) },
		},
		"panic while exiting": {
			func() { defer func() { panic("broken") }(); runtime.Goexit() },
			func(t *testing.T, v any) { assert.Equal(t, "broken", v) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, opt dispatch.Options) {
				type report struct {
					v                  any
					stack              string
					onWorker, here     bool
					deferred, reported int
				}
				const failures = 10
				reports := make(chan report, failures)
				var p *dispatch.Pool
				var task *dispatch.Task
				runs, deferred, reported := 0, 0, 0 // plain: all in order, though the goroutines change
				p = newPoolHook(t, 1, func(v any, stack []byte) {
					reported++
					reports <- report{v, string(stack), p.OnWorker(), task.RunningHere(), deferred, reported}
				})
				opt.Limiter = p.NewLimiter(1)
				ended := make(chan int, 1)
				task = p.NewTask(func() dispatch.Again {
					defer func() { deferred++ }()
					runs++
					if runs <= failures {
						c.leave()
					}
					ended <- runs
					return false
				}, opt)
				task.Wake()
				assert.Equal(t, failures+1, receive(t, ended), "each failed run counts as one that wants more")
				for n := 1; n <= failures; n++ {
					r := receive(t, reports)
					c.check(t, r.v)
					assert.Contains(t, r.stack, "TestBUG013")
					assert.True(t, r.onWorker)
					assert.True(t, r.here)
					assert.Equal(t, n, r.deferred)
					assert.Equal(t, n, r.reported)
				}
				await(t, "rest", task.Idle)
				assert.Equal(t, 0, opt.Limiter.Held())
				assert.Equal(t, 0, p.Running())
			})
		})
	}
}

func leaveByGoexit() { runtime.Goexit() }

// TestBUG013_BrokenHook: a hook that panics or ends its goroutine costs nothing either.
func TestBUG013_BrokenHook(t *testing.T) {
	for name, hook := range map[string]func(any, []byte){
		"none":   nil,
		"panic":  func(any, []byte) { panic("hook") },
		"goexit": func(any, []byte) { runtime.Goexit() },
	} {
		for name2, leave := range map[string]func(){
			"panic":  func() { panic("task") },
			"goexit": runtime.Goexit,
		} {
			t.Run(name+"/"+name2, func(t *testing.T) {
				p := newPoolHook(t, 1, hook)
				runs := 0
				ended := make(chan int, 1)
				p.NewTask(func() dispatch.Again {
					runs++
					if runs <= 5 {
						leave()
					}
					ended <- runs
					return false
				}, dispatch.Options{}).Wake()
				assert.Equal(t, 6, receive(t, ended))
			})
		}
	}
}

// TestBUG013_PoolKeepsItsSize: after many tasks have ended their goroutines, all workers still run at the same time.
func TestBUG013_PoolKeepsItsSize(t *testing.T) {
	const workers = 4
	p := newPoolHook(t, workers, nil)
	var left atomic.Int64
	left.Store(200)
	ended := make(chan struct{})
	for range 20 {
		p.NewTask(func() dispatch.Again {
			switch n := left.Add(-1); {
			case n == 0:
				close(ended)
			case n < 0:
				return false
			}
			runtime.Goexit()
			return false
		}, dispatch.Options{}).Wake()
	}
	receive(t, ended)
	var gates []*gate
	for range workers {
		g := newGate(p, dispatch.Options{})
		gates = append(gates, g)
		g.Wake()
	}
	for _, g := range gates {
		receive(t, g.begun)
	}
	assert.Equal(t, workers, p.Running())
	for _, g := range gates {
		g.result <- false
	}
}

// TestBUG013_GoexitWhileClosing: the goroutine that takes over finds the pool closed, and the pool still ends.
func TestBUG013_GoexitWhileClosing(t *testing.T) {
	both(t, func(t *testing.T, opt dispatch.Options) {
		p := newPoolHook(t, 1, nil)
		task := p.NewTask(func() dispatch.Again {
			p.Close()
			runtime.Goexit()
			return false
		}, opt)
		task.Wake()
		await(t, "the pool's end", p.Wait)
		receive(t, task.Done())
	})
}

func TestPoolClose(t *testing.T) {
	both(t, func(t *testing.T, opt dispatch.Options) {
		p := newPool(t, 1)
		l := p.NewLimiter(1)
		inRun := newGate(p, opt)
		inRun.Wake()
		receive(t, inRun.begun)
		inRun.Wake()
		block := newGate(p, dispatch.Options{Limiter: l, Dedicated: true})
		block.Wake()
		receive(t, block.begun)
		var others []*gate
		for i := range 6 {
			o := dispatch.Options{Dedicated: opt.Dedicated}
			if i%2 == 0 {
				o.Limiter = l
			}
			g := newGate(p, o)
			others = append(others, g)
			if i < 4 && !opt.Dedicated || i%2 == 0 {
				g.Wake() // queued or waiting; the rest is at rest
			}
		}

		p.Close()
		closed := make(chan struct{})
		close(closed)
		assert.False(t, p.Wait(closed), "runs are in progress")
		for _, g := range others {
			receive(t, g.Done())
			g.Wake()
			assert.Equal(t, dispatch.Stopped, g.State())
		}
		assert.Equal(t, dispatch.Running, inRun.State())
		late := newGate(p, opt)
		receive(t, late.Done())
		late.Wake()
		assert.Equal(t, dispatch.Stopped, late.State())

		inRun.result <- true
		block.result <- true
		await(t, "the pool's end", p.Wait)
		receive(t, inRun.Done())
		receive(t, block.Done())
		assert.Equal(t, 0, p.Queued())
		assert.True(t, p.Wait(closed), "the end counts, though done is closed too")
	})
}

func TestPoolClose_FromARun(t *testing.T) {
	both(t, func(t *testing.T, opt dispatch.Options) {
		p := newPool(t, 2)
		task := p.NewTask(func() dispatch.Again { p.Close(); return true }, opt)
		task.Wake()
		await(t, "the pool's end", p.Wait)
		receive(t, task.Done())
	})
}

// TestBUG043_ConcurrentClose: Close, Stop and Wait from many goroutines at once, with tasks being made and woken.
func TestBUG043_ConcurrentClose(t *testing.T) {
	for range 200 {
		p := dispatch.NewPool(2, nil)
		var all sync.WaitGroup
		var closed atomic.Bool
		var late atomic.Int64
		for i := range 8 {
			all.Go(func() {
				task := p.NewTask(func() dispatch.Again {
					if closed.Load() {
						late.Add(1) // a run that started before may get here too: see below
					}
					return true
				}, dispatch.Options{Dedicated: i%4 == 0})
				task.Wake()
				if i%2 == 0 {
					task.Stop()
				}
				p.Close()
				closed.Store(true)
				assert.True(t, p.Wait(nil))
				<-task.Done()
			})
		}
		ended := make(chan struct{})
		go func() { all.Wait(); close(ended) }()
		receive(t, ended)
		// At most the runs in progress when Close returned, one on each goroutine, looked after the flag was set.
		assert.LessOrEqual(t, late.Load(), int64(2+2))
	}
}

// TestBUG001_PingPong wakes a task and waits for its answer, over and over, with nothing else that could wake a worker: a
// lost wake-up is a hang. Several pairs run at once, so that workers race to park, to search and to be called back.
func TestBUG001_PingPong(t *testing.T) {
	rounds := 20000
	if testing.Short() || raceEnabled {
		rounds = 2000
	}
	for _, c := range []struct{ workers, pairs int }{{1, 1}, {1, 3}, {2, 1}, {2, 3}, {4, 2}} {
		t.Run(fmt.Sprintf("workers=%d/pairs=%d", c.workers, c.pairs), func(t *testing.T) {
			both(t, func(t *testing.T, opt dispatch.Options) {
				p := newPool(t, c.workers)
				ended := make(chan struct{}, c.pairs)
				for range c.pairs {
					answer := make(chan struct{}, 1)
					task := p.NewTask(func() dispatch.Again { answer <- struct{}{}; return false }, opt)
					go func() {
						for range rounds {
							task.Wake()
							<-answer
						}
						ended <- struct{}{}
					}()
				}
				for range c.pairs {
					receive(t, ended)
				}
			})
		})
	}
}

// TestPool_AllWorkersHelp: a burst of Wakes brings all parked workers to work, one each.
func TestPool_AllWorkersHelp(t *testing.T) {
	const workers = 8
	p := newPool(t, workers)
	for range 50 {
		var gates []*gate
		for range workers {
			g := newGate(p, dispatch.Options{})
			gates = append(gates, g)
			g.Wake()
		}
		for _, g := range gates {
			receive(t, g.begun) // hangs if one of them waits behind another
		}
		for _, g := range gates {
			g.result <- false
			g.Stop()
		}
	}
}

// TestPool_TurnWakesNobody: a task that takes turn after turn keeps its worker, and costs the parked ones no wake-up.
func TestPool_TurnWakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 3
		p := dispatch.NewPool(workers, nil)
		synctest.Wait()
		turns := 0
		task := p.NewTask(func() dispatch.Again {
			assert.Equal(t, workers-1, p.Inside().Parked)
			turns++
			return turns < 1000
		}, dispatch.Options{})
		task.Wake()
		synctest.Wait()
		assert.Equal(t, dispatch.Resting, task.State())
		p.Close()
		p.Wait(nil)
	})
}

// TestPool_KeepsNoStoppedTask: what a stopped task held can be collected while the pool lives on.
func TestPool_KeepsNoStoppedTask(t *testing.T) {
	both(t, func(t *testing.T, opt dispatch.Options) {
		p := newPool(t, 1)
		const n = 10
		freed := make(chan int, n)
		func() {
			for i := range n {
				big := new([1 << 10]byte)
				runtime.AddCleanup(big, func(i int) { freed <- i }, i)
				ran := make(chan struct{}, 1)
				task := p.NewTask(func() dispatch.Again { big[0]++; ran <- struct{}{}; return false }, opt)
				task.Wake()
				receive(t, ran)
				task.WakeAfter(watchdog * 1000)
				task.Stop()
				task.WakeAfter(watchdog * 1000)
				receive(t, task.Done())
			}
		}()
		var got []int
		await(t, "the collector", func(done <-chan struct{}) bool {
			for len(got) < n {
				runtime.GC()
				select {
				case i := <-freed:
					got = append(got, i)
				case <-done:
					return false
				default:
					runtime.Gosched()
				}
			}
			return true
		})
		slices.Sort(got)
		require.Len(t, slices.Compact(got), n)
	})
}
