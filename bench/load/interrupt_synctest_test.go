package load_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/target"
)

// opens is Leat that calls a function when it has been opened.
type opens struct {
	target.Leat
	opened func()
}

func (o opens) Open(s load.Scenario) (load.Instance, error) {
	defer o.opened()
	return o.Leat.Open(s)
}

func (o opens) OpenGroup(s load.Scenario) (load.GroupInstance, error) {
	defer o.opened()
	return o.Leat.OpenGroup(s)
}

// interruptible are all named scenarios, and others that wait in other ways, in a form that is fit for virtual time: a rate, so that
// producers sleep.
func interruptible(t *testing.T) map[string]load.Scenario {
	all := map[string]load.Scenario{}
	add := func(name string, s load.Scenario) {
		if s.Rate == 0 || s.Rate > 1000 {
			s.Rate = 1000
		}
		if s.Group.Handler > 100*time.Millisecond {
			s.Rate = 0 // more than handlers can do is refused; without a rate the backlog makes producers sleep
		}
		s.Warmup, s.Duration, s.NoFloor, s.Stop = 100*time.Millisecond, time.Second, true, s.Stop/10
		s.Replays = 0 // they never sleep
		if s.Sync != "" {
			s.Producers, s.Dir = 2, t.TempDir()
		}
		all[name] = s
	}
	for _, s := range slices.Concat(load.Scenarios(), load.DurableScenarios(), load.GroupScenarios()) {
		add(s.Name, s)
	}
	for _, publish := range []string{"sync", "batch", "appender", "reserve"} {
		s, _ := load.ScenarioNamed("partitions")
		s.Publish = publish
		add("partitions "+publish, s)
	}
	for _, c := range []load.Group{
		{Kind: load.Assigned, Poll: true},
		{Kind: load.Assigned, Mode: load.AtMostOnce},
		{Kind: load.Assigned, Mode: load.Manual, Ack: load.AckBatch, Poll: true},
		{Kind: load.Shared, Mode: load.Manual},
		{Kind: load.Shared, Mode: load.Manual, Poll: true, Churn: 20 * time.Millisecond, Evict: 0.5},
		{Kind: load.Broadcast},
		{Kind: load.Broadcast, Mode: load.Manual, Ack: load.AckBatch},
	} {
		for _, handler := range []time.Duration{0, time.Hour} {
			c.Handler, c.Members = handler, 4
			s, _ := load.ScenarioNamed("group")
			s.Group = c
			add(fmt.Sprintf("%s %s poll=%v handler=%v", c.Kind, c.Mode, c.Poll, handler), s)
		}
	}
	for _, slow := range []time.Duration{0, time.Hour} { // 0: hangs
		s, _ := load.ScenarioNamed("slow-consumer")
		s.Group.Slow, s.Group.Hang = slow, slow == 0
		add(fmt.Sprintf("slow-consumer %v", slow), s)
	}
	s, _ := load.ScenarioNamed("redelivery")
	s.Group.Mode, s.Group.Backoff = load.Manual, time.Hour
	add("redelivery backoff=1h", s)
	return all
}

// TestRun_InterruptedInEachPhase ends each scenario in each phase: within seconds there is a result, and nothing is called lost. Messages
// that handlers were at work with are unfinished.
func TestRun_InterruptedInEachPhase(t *testing.T) {
	for name, s := range interruptible(t) {
		t.Run(name, func(t *testing.T) {
			for phase, after := range map[string]time.Duration{
				"before": 0, "opening": 0, "warm-up": 50 * time.Millisecond, "measured": 400 * time.Millisecond, "slow": 900 * time.Millisecond,
				"draining": 1102 * time.Millisecond, "closing": 1106 * time.Millisecond,
			} {
				if testing.Short() && (phase == "before" || phase == "warm-up" || phase == "slow") {
					continue // the others go through all of the code
				}
				synctest.Test(t, func(t *testing.T) {
					s := s
					s.UseSynctestClock()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					opened := func() {}
					var began time.Time
					switch phase {
					case "before":
						cancel()
						began = time.Now()
					case "opening":
						opened = func() { cancel(); began = time.Now() }
					default:
						opened = func() { time.AfterFunc(after, cancel); began = time.Now().Add(after) }
					}
					res, err := load.Run(ctx, opens{opened: opened}, s)
					took := time.Since(began)
					require.NoError(t, err, phase)
					assert.False(t, res.Any(), "%s: %v", phase, res.Err())
					assert.Less(t, took, 4*time.Second, phase)
					if after < time.Second {
						assert.True(t, res.Interrupted, phase)
						assert.NoError(t, res.Err(), phase)
					}
					if after == 0 {
						assert.Equal(t, []string{"ended while the target was being opened: nothing was measured"}, res.Notes)
						assert.Zero(t, res.Sent)
					}
					if s.Group.Handler == time.Hour && after > 0 {
						assert.Equal(t, res.Sent*uint64(s.Consumers()), res.Unfinished, phase)
						assert.Positive(t, res.Unfinished, phase)
					}
				})
			}
		})
	}
}

// TestRun_HandlersThatDoNotFinish: a run whose handlers would take for ever ends by itself, says how much is left, and calls none of it
// lost; one whose handlers need a while longer waits for them.
func TestRun_HandlersThatDoNotFinish(t *testing.T) {
	for handler, ends := range map[time.Duration]time.Duration{
		time.Hour: 5400 * time.Millisecond, 3 * time.Second: 6 * time.Second, 300 * time.Millisecond: 4 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := load.ScenarioNamed("group")
			s.Warmup, s.Duration, s.NoFloor, s.Group.Handler = 0, 300*time.Millisecond, true, handler
			s.UseSynctestClock()
			began := time.Now()
			res, err := load.Run(t.Context(), target.Leat{}, s)
			require.NoError(t, err)
			assert.LessOrEqual(t, time.Since(began), ends)
			assert.False(t, res.Any())
			assert.False(t, res.Interrupted)
			assert.NotEmpty(t, s.Warnings())
			if handler < 5*time.Second/2 {
				assert.NoError(t, res.Err())
				return
			}
			assert.Positive(t, res.Unfinished)
			require.ErrorIs(t, res.Err(), load.ErrUnfinished)
			assert.NotErrorIs(t, res.Err(), load.ErrFaults)
			var text bytes.Buffer
			require.NoError(t, res.WriteText(&text))
			assert.Contains(t, text.String(), "UNFINISHED: ")
		})
	}
}

// TestRun_InterruptedWhilePublishIsStuck: a publish that ends only with its context does not keep anybody, and is no failure.
func TestRun_InterruptedWhilePublishIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		s := open(10, time.Hour)
		s.Patience = time.Hour
		began := time.Now()
		res, err := load.Run(ctx, &direct{publish: func(ctx context.Context, _, n int) error {
			if n == 100 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}, s)
		require.NoError(t, err)
		assert.True(t, res.Interrupted)
		assert.Equal(t, uint64(100), res.Sent)
		assert.False(t, res.Any())
		assert.Less(t, time.Since(began), time.Minute+2*time.Second)
	})
}

// TestRun_InterruptedWhileOpeningIsStuck: nobody waits for it for ever.
func TestRun_InterruptedWhileOpeningIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		s := open(10, time.Hour)
		s.Patience = time.Hour
		began := time.Now()
		_, err := load.Run(ctx, opens{opened: func() { time.Sleep(time.Minute) }}, s)
		require.ErrorIs(t, err, load.ErrStuck)
		assert.Less(t, time.Since(began), 10*time.Second)
		time.Sleep(time.Minute) // what was opened at last is closed
	})
}

// TestRun_CloseThatGetsOn: members that leave one after the other take long all together, and nobody is stuck.
func TestRun_CloseThatGetsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := groupOf(load.Group{Kind: load.Shared})
		s.UseSynctestClock()
		s.Group.Members = 20
		x := &leaving{}
		res, err := load.Run(t.Context(), x, s)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		for _, seat := range x.seats {
			<-seat
		}
	})
}

// leaving is a script whose members take a second each to leave, one after the other.
type leaving struct {
	script
	seats []chan struct{}
}

type leavingSeat struct {
	left
	gone <-chan struct{}
}

func (s leavingSeat) Gone() <-chan struct{} { return s.gone }

func (l *leaving) OpenGroup(load.Scenario) (load.GroupInstance, error) {
	return &leavingInstance{scripted{s: &l.script}, l}, nil
}

type leavingInstance struct {
	scripted
	l *leaving
}

func (x *leavingInstance) Join(name string, sink load.Sink) (load.Seat, error) {
	gone := make(chan struct{})
	x.l.seats = append(x.l.seats, gone)
	_, err := x.scripted.Join(name, sink)
	return leavingSeat{gone: gone}, err
}

func (x *leavingInstance) Close() error {
	for _, gone := range x.l.seats {
		time.Sleep(time.Second)
		close(gone)
	}
	return nil
}
