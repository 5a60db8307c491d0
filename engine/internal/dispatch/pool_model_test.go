package dispatch_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/internal/testkit"
)

// model is what a pool is meant to be, one step after the other: lists of task numbers. It says not only how many tasks
// run, but which.
type model struct {
	workers  int
	queue    []int
	limiters []modelLimiter
	tasks    []modelTask
}

type modelLimiter struct {
	max, held int
	waiting   []int
}

type modelTask struct {
	limiter   int // -1: none
	dedicated bool
	state     dispatch.State
	woken     bool
	stopped   bool
	deadline  time.Time // zero: no timer
	runs      int
}

func (m *model) wake(i int) {
	switch t := &m.tasks[i]; {
	case t.stopped:
	case t.state == dispatch.Running:
		t.woken = true
	case t.state == dispatch.Resting:
		if t.limiter >= 0 {
			l := &m.limiters[t.limiter]
			if l.held == l.max {
				t.state = dispatch.Waiting
				l.waiting = append(l.waiting, i)
				return
			}
			l.held++
		}
		m.ready(i)
	}
}

// ready puts a task that holds its permit on the run queue.
func (m *model) ready(i int) {
	m.tasks[i].state = dispatch.Queued
	m.queue = append(m.queue, i)
}

// release takes back the permit of a task.
func (m *model) release(i int) {
	if m.tasks[i].limiter < 0 {
		return
	}
	l := &m.limiters[m.tasks[i].limiter]
	l.held--
	if len(l.waiting) > 0 {
		l.held++
		next := l.waiting[0]
		l.waiting = l.waiting[1:]
		m.ready(next)
	}
}

func (m *model) finish(i int, again bool) {
	t := &m.tasks[i]
	again = again || t.woken
	t.woken = false
	t.state = dispatch.Resting
	m.release(i)
	switch {
	case t.stopped:
		t.state = dispatch.Stopped
	case again:
		m.wake(i)
	}
}

func (m *model) stop(i int) {
	t := &m.tasks[i]
	t.deadline = time.Time{}
	if t.stopped {
		return
	}
	t.stopped, t.woken = true, false
	was := t.state
	if was == dispatch.Running {
		return
	}
	t.state = dispatch.Stopped
	switch was {
	case dispatch.Queued:
		m.queue = slices.DeleteFunc(m.queue, func(j int) bool { return j == i })
		m.release(i)
	case dispatch.Waiting:
		l := &m.limiters[t.limiter]
		l.waiting = slices.DeleteFunc(l.waiting, func(j int) bool { return j == i })
	}
}

// settle lets workers take what they can.
func (m *model) settle() {
	var rest []int
	free := m.workers - m.running()
	for _, i := range m.queue {
		t := &m.tasks[i]
		if !t.dedicated {
			if free == 0 {
				rest = append(rest, i)
				continue
			}
			free--
		}
		t.state = dispatch.Running
		t.runs++
	}
	m.queue = rest
}

func (m *model) running() (n int) {
	for _, t := range m.tasks {
		if t.state == dispatch.Running && !t.dedicated {
			n++
		}
	}
	return n
}

// inside is the bookkeeping of a pool at rest: who does not run is parked, and nobody searches.
func (m *model) inside() dispatch.Inside {
	known := m.workers
	for _, t := range m.tasks {
		if t.dedicated && t.state != dispatch.Stopped {
			known++
		}
	}
	return dispatch.Inside{Parked: m.workers - m.running(), Known: known}
}

// pick draws one of the tasks for which ok holds, or skips the action if there is none.
func (m *model) pick(t *rapid.T, ok func(modelTask) bool) int {
	var those []int
	for i, task := range m.tasks {
		if ok(task) {
			those = append(those, i)
		}
	}
	if len(those) == 0 {
		t.Skip("no such task")
	}
	return rapid.SampledFrom(those).Draw(t, "task")
}

func anyTask(modelTask) bool { return true }

// TestPool_Model makes random calls and lets runs end in all ways. After each step, when all goroutines have come to rest,
// every task must be in the state that the model says. Deadlines are all different, so that the model knows their order.
func TestPool_Model(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { rapid.Check(inside{t}, checkModel) })
}

// inside hides from rapid that it has a *testing.T, whose Deadline it would call, and that is not allowed in a bubble.
type inside struct{ rapid.TB }

func checkModel(t *rapid.T) {
	m := &model{workers: rapid.IntRange(1, 3).Draw(t, "workers")}
	hooked := 0
	p := dispatch.NewPool(m.workers, func(any, []byte) { hooked++ })
	var limiters []*dispatch.Limiter
	for range rapid.IntRange(0, 2).Draw(t, "limiters") {
		max := rapid.IntRange(1, 3).Draw(t, "max")
		limiters = append(limiters, p.NewLimiter(max))
		m.limiters = append(m.limiters, modelLimiter{max: max})
	}
	var tasks []*dispatch.Task
	var runs []int
	var results []chan func() dispatch.Again
	quit := make(chan struct{})
	for i := range rapid.IntRange(1, 8).Draw(t, "tasks") {
		spec := modelTask{limiter: -1, dedicated: rapid.IntRange(0, 4).Draw(t, "dedicated") == 0}
		opt := dispatch.Options{Dedicated: spec.dedicated}
		if n := len(limiters); n > 0 {
			if spec.limiter = rapid.IntRange(-1, n-1).Draw(t, "limiter"); spec.limiter >= 0 {
				opt.Limiter = limiters[spec.limiter]
			}
		}
		result := make(chan func() dispatch.Again)
		results = append(results, result)
		runs = append(runs, 0)
		m.tasks = append(m.tasks, spec)
		tasks = append(tasks, p.NewTask(func() dispatch.Again {
			runs[i]++
			select {
			case f := <-result:
				return f()
			case <-quit:
				return false
			}
		}, opt))
	}
	defer func() {
		p.Close()
		close(quit)
		p.Wait(nil)
	}()

	failures := 0
	t.Repeat(map[string]func(*rapid.T){
		"wake": func(t *rapid.T) {
			i := m.pick(t, anyTask)
			tasks[i].Wake()
			m.wake(i)
		},
		"finish": func(t *rapid.T) {
			i := m.pick(t, func(task modelTask) bool { return task.state == dispatch.Running })
			again := true
			switch rapid.IntRange(0, 9).Draw(t, "how") {
			case 0:
				failures++
				results[i] <- func() dispatch.Again { panic(errors.New("broken")) }
			case 1:
				failures++
				results[i] <- func() dispatch.Again { runtime.Goexit(); return false }
			default:
				again = rapid.Bool().Draw(t, "again")
				results[i] <- func() dispatch.Again { return dispatch.Again(again) }
			}
			m.finish(i, again)
		},
		"stop": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "seldom") != 0 {
				t.Skip("not now")
			}
			i := m.pick(t, anyTask)
			tasks[i].Stop()
			m.stop(i)
		},
		"wake after": func(t *rapid.T) {
			i := m.pick(t, anyTask)
			d := time.Duration(rapid.IntRange(-1, 100).Draw(t, "d"))
			for d > 0 && slices.ContainsFunc(m.tasks, func(o modelTask) bool { return o.deadline.Equal(time.Now().Add(d)) }) {
				d++
			}
			tasks[i].WakeAfter(d)
			switch {
			case m.tasks[i].stopped:
			case d <= 0:
				m.tasks[i].deadline = time.Time{}
				m.wake(i)
			default:
				m.tasks[i].deadline = time.Now().Add(d)
			}
		},
		"stop timer": func(t *rapid.T) {
			i := m.pick(t, anyTask)
			tasks[i].StopTimer()
			m.tasks[i].deadline = time.Time{}
		},
		"time passes": func(t *rapid.T) {
			i := m.pick(t, func(task modelTask) bool { return !task.deadline.IsZero() })
			// To the deadline of that task, past all that come before it.
			for until := m.tasks[i].deadline; ; {
				next := until
				for _, task := range m.tasks {
					if !task.deadline.IsZero() && task.deadline.Before(next) {
						next = task.deadline
					}
				}
				testkit.Pass(time.Until(next))
				for j := range m.tasks {
					if m.tasks[j].deadline.Equal(next) {
						m.tasks[j].deadline = time.Time{}
						m.wake(j)
						m.settle()
					}
				}
				if next.Equal(until) {
					return
				}
			}
		},
		"": func(t *rapid.T) {
			synctest.Wait()
			m.settle()
			for i, task := range tasks {
				want := m.tasks[i]
				require.Equal(t, want.state, task.State(), "task %d", i)
				require.Equal(t, want.runs, runs[i], "runs of task %d", i)
				require.Equal(t, want.state == dispatch.Stopped, isClosed(task.Done()), "task %d", i)
			}
			require.Equal(t, len(m.queue), p.Queued())
			require.Equal(t, m.running(), p.Running())
			require.Equal(t, m.inside(), p.Inside())
			for i, l := range limiters {
				require.Equal(t, m.limiters[i].held, l.Held(), "limiter %d", i)
				require.Equal(t, len(m.limiters[i].waiting), l.Waiting(), "limiter %d", i)
			}
			require.Equal(t, failures, hooked, "calls of the hook")
		},
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
