package dispatch_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leatlog/leat/engine/internal/dispatch"
)

// BenchmarkTaskWake measures a Wake that finds nothing to do because the task is in that state already. It is what a
// producer pays when it says to a busy lane that there is more.
func BenchmarkTaskWake(b *testing.B) {
	b.Run("state=queued", func(b *testing.B) {
		p, release := blockedPool(b, 1)
		defer release()
		t := p.NewTask(func() dispatch.Again { return false }, dispatch.Options{})
		t.Wake()
		b.ReportAllocs()
		for b.Loop() {
			t.Wake()
		}
	})
	b.Run("state=woken", func(b *testing.B) {
		p := newPool(b, 1)
		started, end := make(chan struct{}), make(chan struct{})
		t := p.NewTask(func() dispatch.Again { started <- struct{}{}; <-end; return false }, dispatch.Options{})
		t.Wake()
		<-started
		b.ReportAllocs()
		for b.Loop() {
			t.Wake()
		}
		t.Stop()
		close(end)
	})
	b.Run("state=stopped", func(b *testing.B) {
		t := newPool(b, 1).NewTask(func() dispatch.Again { return false }, dispatch.Options{})
		t.Stop()
		b.ReportAllocs()
		for b.Loop() {
			t.Wake()
		}
	})
}

// BenchmarkTaskTurn measures one turn of a worker: end of a run, start of the next, for tasks that always want more. It is
// what a lane pays for each quantum.
func BenchmarkTaskTurn(b *testing.B) {
	for _, c := range []struct {
		workers, tasks, max int
		dedicated           bool
	}{
		{workers: 1, tasks: 1},
		{workers: 1, tasks: 1000},
		{workers: 1, tasks: 1000, max: 1},
		{workers: 2, tasks: 1000},
		{workers: 1, tasks: 1, dedicated: true},
	} {
		name := fmt.Sprintf("workers=%d/tasks=%d/limit=%d/dedicated=%t", c.workers, c.tasks, c.max, c.dedicated)
		b.Run(name, func(b *testing.B) {
			p := newPool(b, c.workers)
			opt := dispatch.Options{Dedicated: c.dedicated}
			if c.max > 0 {
				opt.Limiter = p.NewLimiter(c.max)
			}
			// Each task has an equal share of the turns.
			share := b.N/c.tasks + 1
			ended := make(chan struct{}, c.tasks)
			tasks := make([]*dispatch.Task, c.tasks)
			for i := range tasks {
				left := share
				tasks[i] = p.NewTask(func() dispatch.Again {
					left--
					if left == 0 {
						ended <- struct{}{}
						return false
					}
					return true
				}, opt)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for _, t := range tasks {
				t.Wake()
			}
			for range tasks {
				<-ended
			}
		})
	}
}

// BenchmarkTaskRoundTrip measures Wake until the run has answered, one at a time, so that the worker has gone to look for
// work or to park in between. The floor is what Go charges for waking a goroutine through a channel and for its answer.
func BenchmarkTaskRoundTrip(b *testing.B) {
	for _, dedicated := range []bool{false, true} {
		b.Run(fmt.Sprintf("impl=task/dedicated=%t", dedicated), func(b *testing.B) {
			answer := make(chan struct{}, 1)
			t := newPool(b, 1).NewTask(func() dispatch.Again { answer <- struct{}{}; return false },
				dispatch.Options{Dedicated: dedicated})
			b.ReportAllocs()
			for b.Loop() {
				t.Wake()
				<-answer
			}
		})
	}
	b.Run("impl=floor", func(b *testing.B) {
		ask, answer := make(chan struct{}, 1), make(chan struct{}, 1)
		go func() {
			for range ask {
				answer <- struct{}{}
			}
		}()
		b.ReportAllocs()
		for b.Loop() {
			ask <- struct{}{}
			<-answer
		}
		close(ask)
	})
}

// BenchmarkTaskPaced measures what a producer pays for a Wake that it makes every so often, whether or not the worker has
// found the time to park in between, beside its own work, which is the gap.
func BenchmarkTaskPaced(b *testing.B) {
	for _, gap := range []time.Duration{0, 200, 500, 1000, 2000, 5000} {
		b.Run(fmt.Sprintf("gap=%v", gap), func(b *testing.B) {
			var runs atomic.Int64
			t := newPool(b, 1).NewTask(func() dispatch.Again { runs.Add(1); return false }, dispatch.Options{})
			var spent time.Duration
			b.ReportAllocs()
			for b.Loop() {
				begin := time.Now()
				t.Wake()
				woken := time.Now()
				spent += woken.Sub(begin)
				for time.Since(woken) < gap {
				}
			}
			b.ReportMetric(float64(spent)/float64(b.N), "wake-ns/op")
			b.ReportMetric(float64(runs.Load())/float64(b.N), "runs/op")
		})
	}
}

// BenchmarkTaskWakeAfter measures setting the timer again.
func BenchmarkTaskWakeAfter(b *testing.B) {
	t := newPool(b, 1).NewTask(func() dispatch.Again { return false }, dispatch.Options{})
	b.ReportAllocs()
	for b.Loop() {
		t.WakeAfter(time.Hour)
	}
}

// BenchmarkPoolOnWorker measures what a call pays to know whether it would wait for itself.
func BenchmarkPoolOnWorker(b *testing.B) {
	p := newPool(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		p.OnWorker()
	}
}
