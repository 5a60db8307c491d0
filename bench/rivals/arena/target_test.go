package arena_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/rivals/arena"
)

// hostedScenario is as much as the lines of these tests carry.
func hostedScenario() load.Scenario {
	return load.Scenario{
		Name: "test", Producers: 2, Partitions: 1, Readers: 1, Duration: time.Minute, Messages: 1000,
		NoFloor: true, NoPlacement: true,
	}
}

// ways are a line whose Produce and Consume are functions.
type ways struct {
	queue
	produce func(context.Context, *arena.Feed) error
	consume func() error
}

func (w *ways) Produce(ctx context.Context, p int, f *arena.Feed) error {
	if w.produce != nil {
		return w.produce(ctx, f)
	}
	return w.queue.Produce(ctx, p, f)
}

func (w *ways) Consume(ctx context.Context, i int) error {
	if w.consume != nil {
		return w.consume()
	}
	return w.queue.Consume(ctx, i)
}

func hostedTarget(change func(*ways)) load.Target {
	return arena.Target(&arena.Rival{Name: "ways", Open: func(j *arena.Job) (arena.Line, error) {
		w := &ways{queue: queue{job: j, c: make(chan [64]byte, 16)}}
		change(w)
		return w, nil
	}})
}

func TestTarget(t *testing.T) {
	x := hostedTarget(func(*ways) {})
	assert.Equal(t, "ways", x.Name())
	s := hostedScenario()
	res, err := load.Run(t.Context(), x, s)
	require.NoError(t, err)
	require.NoError(t, res.Err())
	assert.Equal(t, uint64(1000), res.Received)
	assert.Equal(t, "ways", res.Engine)

	s.Rate, s.Readers, s.Subscribers = 100_000, 0, 1
	res, err = load.Run(t.Context(), x, s)
	require.NoError(t, err)
	require.NotErrorIs(t, res.Err(), load.ErrFaults)
	assert.Positive(t, res.Latency.E2E.Count)
	assert.Equal(t, res.Sent, res.Latency.E2E.Count, "with a rate each message is measured")
}

func TestTarget_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := hostedScenario()
	s.Messages, s.Window = 0, 10*time.Millisecond
	s.Intervals = func(time.Duration, time.Duration, *load.Histogram, *load.Histogram, *load.Histogram) { cancel() }
	res, err := load.Run(ctx, hostedTarget(func(*ways) {}), s)
	require.NoError(t, err)
	assert.True(t, res.Interrupted)
	require.NoError(t, res.Err())
}

// TestTarget_FindsFaults: what a line does wrong is found here, too.
func TestTarget_FindsFaults(t *testing.T) {
	// at100 lets go of a producer's message 100 otherwise than of all others.
	at100 := func(do func(w *ways, m [64]byte)) func(*ways) {
		return func(w *ways) {
			w.produce = func(_ context.Context, f *arena.Feed) error {
				i := 0
				for n := f.Due(7); n > 0; n = f.Due(7) {
					for range n {
						if m := [64]byte(f.Next()); i == 100 {
							do(w, m)
						} else {
							w.c <- m
						}
						i++
					}
				}
				return nil
			}
		}
	}
	for want, change := range map[string]func(*ways){
		"lost 2,":       at100(func(*ways, [64]byte) {}),
		"duplicated 2,": at100(func(w *ways, m [64]byte) { w.c <- m; w.c <- m }),
		"corrupt 2":     at100(func(w *ways, m [64]byte) { m[40]++; w.c <- m }),
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel() // what is lost takes all of a run's patience
			res, err := load.Run(t.Context(), hostedTarget(change), hostedScenario())
			require.NoError(t, err)
			require.ErrorIs(t, res.Err(), load.ErrFaults)
			assert.Contains(t, res.Faults.String(), want)
		})
	}
}

// TestTarget_Fails: errors and panics of a line end the run and are told.
func TestTarget_Fails(t *testing.T) {
	broken := errors.New("broken")
	for name, x := range map[string]struct {
		want   error
		change func(*ways)
	}{
		"produce":       {broken, func(w *ways) { w.produce = func(context.Context, *arena.Feed) error { return broken } }},
		"produce panic": {arena.ErrRival, func(w *ways) { w.produce = func(context.Context, *arena.Feed) error { panic("no") } }},
		"produce ends":  {load.ErrTarget, func(w *ways) { w.produce = func(context.Context, *arena.Feed) error { return nil } }},
		"consume":       {broken, func(w *ways) { w.consume = func() error { return broken } }},
		"consume panic": {arena.ErrRival, func(w *ways) { w.consume = func() error { panic("no") } }},
	} {
		s := hostedScenario()
		if name == "consume" || name == "consume panic" {
			s.Messages = 10 // fit into the channel
		}
		_, err := load.Run(t.Context(), hostedTarget(x.change), s)
		require.ErrorIs(t, err, x.want, name)
	}
	// What it says at the very end is no failure if everything has arrived.
	res, err := load.Run(t.Context(), hostedTarget(func(w *ways) {
		w.produce = func(ctx context.Context, f *arena.Feed) error { return errors.Join(w.queue.Produce(ctx, 0, f), broken) }
	}), hostedScenario())
	require.NoError(t, err)
	assert.Contains(t, strings.Join(res.Notes, "\n"), "closing the target: broken")
	_, err = load.Run(t.Context(), arena.Target(&arena.Rival{Name: "shut", Open: func(*arena.Job) (arena.Line, error) { return nil, broken }}), hostedScenario())
	require.ErrorIs(t, err, broken)
}

// early opens a target whose producers are held back early.
type early struct{ load.Target }

const earlyMost = 200

func (e early) Open(s load.Scenario) (load.Instance, error) {
	in, err := e.Target.Open(s)
	if err == nil {
		arena.HoldBack(in, earlyMost)
	}
	return in, err
}

// unbounded is a list that grows. Its consumer begins when it is as long as it may be, and then gives the producers every chance to
// make it longer.
type unbounded struct {
	job  *arena.Job
	mu   sync.Mutex
	list [][]byte
	most int
	end  bool
}

func (u *unbounded) Produce(_ context.Context, _ int, f *arena.Feed) error {
	for n := f.Due(64); n > 0; n = f.Due(64) {
		for range n {
			m := append([]byte(nil), f.Next()...)
			u.mu.Lock()
			u.list = append(u.list, m)
			u.most = max(u.most, len(u.list))
			u.mu.Unlock()
		}
	}
	return nil
}

func (u *unbounded) Consume(context.Context, int) error {
	s := u.job.Sinks[0]
	for least := earlyMost; !s.Full(); {
		runtime.Gosched()
		u.mu.Lock()
		list, end := u.list, u.end
		if len(list) < least && !end {
			u.mu.Unlock()
			continue
		}
		u.mu.Unlock()
		for range 1000 {
			runtime.Gosched()
		}
		u.mu.Lock()
		list, u.list, least = u.list, nil, 1
		u.mu.Unlock()
		for _, m := range list {
			s.See(m)
		}
		if end {
			return nil
		}
	}
	return nil
}

func (u *unbounded) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.end = true
	return nil
}

// TestTarget_Bounded: something without a bound is held back when its consumers are too slow, so that memory does for it.
func TestTarget_Bounded(t *testing.T) {
	s := hostedScenario()
	s.Messages, s.Patience = 5000, 0
	u := &unbounded{}
	x := arena.Target(&arena.Rival{Name: "unbounded", Open: func(j *arena.Job) (arena.Line, error) {
		u.job = j
		return u, nil
	}})
	res, err := load.Run(t.Context(), early{x}, s)
	require.NoError(t, err)
	require.NoError(t, res.Err())
	assert.GreaterOrEqual(t, u.most, earlyMost)
	assert.LessOrEqual(t, u.most, earlyMost+64*(2*s.Producers+1), "each producer adds 64 at once, and up to 64 seen are not told of yet")
}

// TestTarget_None: what moves its messages by itself cannot be given any.
func TestTarget_None(t *testing.T) {
	assert.Nil(t, arena.Target(&arena.Rival{Kind: "publish"}))
	assert.Nil(t, arena.Target(&arena.Rival{Start: func(arena.Spec) (arena.Runner, error) { return nil, nil }}))
}
