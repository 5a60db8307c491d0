package load_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
)

// slowLeavers is a script whose members take their time to be gone once they are put out, and only then tell what they have lost. 0 is
// for ever.
type slowLeavers struct {
	script
	takes time.Duration
}

func (l *slowLeavers) OpenGroup(load.Scenario) (load.GroupInstance, error) {
	return &slowLeaving{scripted{s: &l.script}, l}, nil
}

type slowLeaving struct {
	scripted
	l *slowLeavers
}

func (x *slowLeaving) Join(name string, sink load.Sink) (load.Seat, error) {
	_, err := x.scripted.Join(name, sink)
	return slowSeat{sink: sink, takes: x.l.takes, gone: make(chan struct{})}, err
}

type slowSeat struct {
	left
	sink  load.Sink
	takes time.Duration
	gone  chan struct{}
}

func (s slowSeat) Evict() error {
	if s.takes > 0 {
		time.AfterFunc(s.takes, func() {
			s.sink.Lost([]int{0})
			close(s.gone)
		})
	}
	return nil
}

func (s slowSeat) Gone() <-chan struct{} { return s.gone }

// TestGroup_WaitsForWhoLeftLast: what was taken from a member that left just before the end counts, and what came again since is no fault;
// but nobody waits for that longer than patience lasts, nor long once the run is interrupted, nor at all when it is cut.
func TestGroup_WaitsForWhoLeftLast(t *testing.T) {
	const never = 0
	for name, x := range map[string]struct {
		takes, interrupt time.Duration
		loses            bool // the last messages never come
		ends             time.Duration
		note             bool
	}{
		"at once":                    {takes: time.Millisecond, ends: time.Second},
		"soon":                       {takes: 3 * time.Second, ends: 3100 * time.Millisecond},
		"never":                      {takes: never, ends: 6 * time.Second, note: true},
		"never, interrupted":         {takes: never, interrupt: 500 * time.Millisecond, ends: 2500 * time.Millisecond, note: true},
		"never, interrupted late":    {takes: never, interrupt: 3 * time.Second, ends: 5 * time.Second, note: true},
		"never, interrupted and cut": {takes: never, interrupt: 500 * time.Millisecond, loses: true, ends: 2500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := groupOf(load.Group{Kind: load.Assigned, Churn: 100 * time.Millisecond, Evict: 1})
				s.UseSynctestClock()
				s.Rate, s.Duration, s.Messages, s.Patience = 100, time.Second, 0, 5*time.Second
				l := &slowLeavers{takes: x.takes}
				l.deliver = func(n int, d load.Delivery, m []load.Sink) {
					if x.loses && n >= 30 {
						return
					}
					_ = m[0].Deliver(d, nil)
					if n == 20 && x.takes > 0 { // the first one has been put out after message 10
						_ = m[1].Deliver(d, nil)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if x.interrupt > 0 {
					time.AfterFunc(x.interrupt, cancel)
				}
				began := time.Now()
				res, err := load.Run(ctx, l, s)
				require.NoError(t, err)
				assert.InDelta(t, x.ends.Seconds(), time.Since(began).Seconds(), 0.05)
				assert.Zero(t, res.Duplicated)
				assert.Zero(t, res.Lost)
				assert.Equal(t, x.note, slices.Contains(res.Notes, "a member that left is not gone"), "%q", res.Notes)
				time.Sleep(time.Minute)
			})
		})
	}
}
