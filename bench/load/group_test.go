package load_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
)

// script is a group target that does what a test tells it to, on the producer's goroutine.
type script struct {
	// deliver is called instead of the n-th message's delivery (from 0), with all members. Nil delivers it to the first one.
	deliver func(n int, d load.Delivery, members []load.Sink)
	figures load.Figures
	behind  int64
	joinErr error
}

func (*script) Name() string                              { return "script" }
func (*script) Open(load.Scenario) (load.Instance, error) { return nil, errors.New("no group") }

func (s *script) OpenGroup(load.Scenario) (load.GroupInstance, error) { return &scripted{s: s}, nil }

type scripted struct {
	s       *script
	mu      sync.Mutex
	n       int
	members []load.Sink
	dead    func(member, partition int, payload []byte, attempts int)
}

func (x *scripted) Producer(int) (load.Producer, error) { return x, nil }
func (x *scripted) Flush(context.Context) error         { return nil }
func (x *scripted) Close() error                        { return nil }
func (x *scripted) Figures() load.Figures               { return x.s.figures }

func (x *scripted) Join(_ string, sink load.Sink) (load.Seat, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.members = append(x.members, sink)
	return left{}, x.s.joinErr
}

// left is a seat that is left at once.
type left struct{}

func (left) Leave()       {}
func (left) Evict() error { return nil }
func (left) Gone() <-chan struct{} {
	gone := make(chan struct{})
	close(gone)
	return gone
}

func (x *scripted) Dead(deliver func(member, partition int, payload []byte, attempts int)) error {
	x.dead = deliver
	return nil
}

func (x *scripted) Positions(_, _ int) (position, end int64, err error) {
	return 100 - x.s.behind, 100, nil
}

func (x *scripted) Publish(_ context.Context, partition int, payload []byte) error {
	x.mu.Lock()
	n, members := x.n, x.members
	x.n++
	x.mu.Unlock()
	d := load.Delivery{Partition: partition, Payload: bytes.Clone(payload), Attempt: 1}
	if x.s.deliver == nil {
		return members[0].Deliver(d, settle{})
	}
	x.s.deliver(n, d, members)
	return nil
}

// settle is how a message is settled.
type settle struct{ err error }

func (s settle) Ack() error               { return s.err }
func (s settle) Nack(time.Duration) error { return s.err }

var errFenced = errors.New("fenced")

// groupOf is a scenario of ten messages, one producer, one partition and two members.
func groupOf(c load.Group) load.Scenario {
	c.Members = 2
	return load.Scenario{
		Name: "script", Producers: 1, Partitions: 1, Group: c, Duration: time.Minute, Messages: 10, Seed: 1, SampleEvery: 1,
		NoPlacement: true, NoFloor: true, Patience: 5 * time.Millisecond,
	}
}

// TestGroup_WhatTheModeAllows delivers messages again, for a reason or for none.
func TestGroup_WhatTheModeAllows(t *testing.T) {
	// twice delivers message 3 to a and then to b. With lost, a has lost the partition.
	twice := func(lost bool, first, second load.Settler) func(int, load.Delivery, []load.Sink) {
		return func(n int, d load.Delivery, m []load.Sink) {
			_ = m[0].Deliver(d, first)
			if n == 3 {
				if lost {
					m[0].Lost([]int{0})
				}
				_ = m[1].Deliver(d, second)
			}
		}
	}
	for name, x := range map[string]struct {
		group   load.Group
		script  script
		faults  load.Faults
		redone  load.Redone
		because string
	}{
		"nothing": {load.Group{Kind: load.Assigned}, script{}, load.Faults{}, load.Redone{}, ""},
		"at least once, for no reason": {
			load.Group{Kind: load.Assigned}, script{deliver: twice(false, nil, nil)},
			load.Faults{Duplicated: 1}, load.Redone{}, "3 came again after it was processed",
		},
		"at least once, from who has lost it": {
			load.Group{Kind: load.Assigned}, script{deliver: twice(true, nil, nil)},
			load.Faults{}, load.Redone{Repeated: 1}, "",
		},
		"at least once, time was up": {
			load.Group{Kind: load.Shared}, script{deliver: twice(false, nil, nil), figures: load.Figures{Expired: 1}},
			load.Faults{}, load.Redone{Repeated: 1}, "",
		},
		"at least once, more than was lost": {
			load.Group{Kind: load.Assigned}, script{deliver: func(n int, d load.Delivery, m []load.Sink) {
				twice(true, nil, nil)(n, d, m)
				if n == 3 {
					_ = m[1].Deliver(d, nil)
				}
			}},
			load.Faults{Duplicated: 1}, load.Redone{Repeated: 1}, "3 came again after it was processed",
		},
		"at most once": {
			load.Group{Kind: load.Assigned, Mode: load.AtMostOnce}, script{deliver: twice(true, nil, nil)},
			load.Faults{Duplicated: 1}, load.Redone{}, "3 came again",
		},
		"manual, acknowledged": {
			load.Group{Kind: load.Assigned, Mode: load.Manual}, script{deliver: twice(false, settle{}, settle{})},
			load.Faults{Duplicated: 1}, load.Redone{}, "3 came again after it was processed",
		},
		"manual, refused": {
			load.Group{Kind: load.Assigned, Mode: load.Manual},
			script{deliver: func(n int, d load.Delivery, m []load.Sink) {
				if n == 3 {
					_ = m[0].Deliver(d, settle{errFenced})
					d.Attempt = 2
				}
				_ = m[1].Deliver(d, settle{})
			}},
			load.Faults{}, load.Redone{Redelivered: 1, Fenced: 1}, "",
		},
		"manual, accepted twice": {
			load.Group{Kind: load.Shared, Mode: load.Manual},
			script{figures: load.Figures{Expired: 1}, deliver: func(n int, d load.Delivery, m []load.Sink) {
				if n == 3 {
					d2 := d
					d2.Attempt = 2
					_ = m[0].Deliver(d, ackFunc(func() error { return m[1].Deliver(d2, settle{}) }))
					return
				}
				_ = m[0].Deliver(d, settle{})
			}},
			load.Faults{Duplicated: 1}, load.Redone{Repeated: 1, Fenced: 1}, "an acknowledgement of 3 was accepted",
		},
		"two owners": {
			load.Group{Kind: load.Assigned, Mode: load.Manual},
			script{deliver: func(n int, d load.Delivery, m []load.Sink) {
				if n == 3 {
					return // within the next
				}
				if n == 4 {
					d3 := kept
					_ = m[0].Deliver(d3, ackFunc(func() error { return m[1].Deliver(d, settle{}) }))
					return
				}
				_ = m[0].Deliver(d, settle{})
			}},
			load.Faults{Overlapped: 1}, load.Redone{}, "at once",
		},
		"behind": {
			load.Group{Kind: load.Assigned}, script{behind: 7}, load.Faults{Uncommitted: 7}, load.Redone{}, "",
		},
		"a wrong attempt": {
			load.Group{Kind: load.Assigned}, script{deliver: func(_ int, d load.Delivery, m []load.Sink) {
				d.Attempt = 2
				_ = m[0].Deliver(d, nil)
			}},
			load.Faults{Miscounted: 10}, load.Redone{}, "says that it is attempt 2",
		},
		"a batch": {
			load.Group{Kind: load.Assigned, Mode: load.Manual, Ack: load.AckBatch},
			script{deliver: func(_ int, d load.Delivery, m []load.Sink) {
				m[0].Batch([]load.Delivery{d}, func() error { return nil })
			}},
			load.Faults{}, load.Redone{}, "",
		},
		"a batch of which it is not known": {
			load.Group{Kind: load.Assigned, Mode: load.Manual, Ack: load.AckBatch},
			script{deliver: func(n int, d load.Delivery, m []load.Sink) {
				m[0].Batch([]load.Delivery{d}, func() error { return errFenced })
				if n == 3 {
					d.Attempt = 2
					m[0].Batch([]load.Delivery{d}, func() error { return nil })
				}
			}},
			load.Faults{}, load.Redone{Repeated: 1, Fenced: 10}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := x.script
			if s.deliver != nil {
				inner := s.deliver
				s.deliver = func(n int, d load.Delivery, m []load.Sink) {
					inner(n, d, m)
					kept = d
				}
			}
			res, err := load.Run(t.Context(), &s, groupOf(x.group))
			require.NoError(t, err)
			assert.Equal(t, x.faults, res.Faults)
			assert.Equal(t, x.redone, res.Group.Redone)
			if x.because != "" {
				assert.ErrorContains(t, res.Err(), x.because)
			}
		})
	}
}

// kept is the last delivery of the script that runs.
var kept load.Delivery

// ackFunc does something else before an acknowledgement is accepted.
type ackFunc func() error

func (f ackFunc) Ack() error               { return f() }
func (f ackFunc) Nack(time.Duration) error { return nil }

// TestGroup_DeadLetters has every delivery fail that may.
func TestGroup_DeadLetters(t *testing.T) {
	run := func(attempts int) load.Result {
		s := groupOf(load.Group{Kind: load.Assigned, Fail: 0.9, Deliveries: 2})
		s.Messages = 100
		x := &script{}
		in := &deadly{script: x, attempts: attempts}
		res, err := load.Run(t.Context(), in, s)
		require.NoError(t, err)
		return res
	}
	res := run(2)
	assert.False(t, res.Faults.Any(), "%+v", res.Lanes)
	assert.Equal(t, uint64(100), res.Group.Attempts[0])
	assert.Equal(t, res.Group.Redelivered, res.Group.Attempts[1])
	assert.Greater(t, res.Group.Dead, uint64(50))
	assert.Equal(t, uint64(100)+res.Group.Redelivered, res.Received)

	res = run(1)
	assert.Positive(t, res.Miscounted, "given up too early, or miscounted")
	assert.ErrorContains(t, res.Err(), "dead letter")
}

// deadly delivers each message twice if the first time failed, and then buries it.
type deadly struct {
	*script
	attempts int
}

func (d *deadly) OpenGroup(load.Scenario) (load.GroupInstance, error) {
	x := &scripted{s: d.script}
	d.deliver = func(_ int, m load.Delivery, members []load.Sink) {
		if members[0].Deliver(m, nil) == nil {
			return
		}
		m.Attempt = 2
		if members[0].Deliver(m, nil) != nil {
			x.dead(0, m.Partition, m.Payload, d.attempts)
		}
	}
	return x, nil
}

// TestGroup_SlowMember is in a bubble, where times are exact: 1000 messages a second go to two members in turn.
func TestGroup_SlowMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := groupOf(load.Group{Kind: load.Shared, Slow: 40 * time.Millisecond})
		s.Rate, s.Duration, s.Messages, s.Patience = 100, 10*time.Second, 0, time.Second
		s.UseSynctestClock()
		res, err := load.Run(t.Context(), &script{deliver: func(n int, d load.Delivery, m []load.Sink) {
			if n%10 == 0 {
				go func() { _ = m[0].Deliver(d, nil) }()
				return
			}
			_ = m[1].Deliver(d, nil)
		}}, s)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		x := res.Group.Slow
		require.NotNil(t, x)
		assert.InDelta(t, 90, x.MinBefore, 1)
		assert.InDelta(t, 90, x.MinDuring, 1)
		assert.InDelta(t, 1, x.Kept, 0.02)
		assert.InDelta(t, 10, x.SlowDuring, 0.5)
		assert.Zero(t, x.E2EDuring.Max, "the others were not held up")
		assert.Equal(t, int64(40*time.Millisecond), res.Group.DoneLatency.Max, "the slow one takes its time")
	})
}

// TestGroup_Gaps has a member come and go each second, and the partition stand still for 300 ms when that happens once.
func TestGroup_Gaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := groupOf(load.Group{Kind: load.Assigned, Churn: time.Second})
		s.Rate, s.Duration, s.Messages, s.Patience = 100, 5500*time.Millisecond, 0, time.Second
		s.UseSynctestClock()
		res, err := load.Run(t.Context(), &script{deliver: func(n int, d load.Delivery, m []load.Sink) {
			if n == 200 { // at 2 s
				time.Sleep(300 * time.Millisecond)
			}
			to := 0
			if n >= 400 {
				to = 1
			}
			_ = m[to].Deliver(d, nil)
		}}, s)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		x := res.Group
		assert.Equal(t, uint64(5), x.Joins)
		assert.Equal(t, uint64(5), x.Leaves)
		assert.Equal(t, uint64(1), x.GapMoved.Count)
		assert.Equal(t, int64(10*time.Millisecond), x.GapMoved.Max)
		assert.GreaterOrEqual(t, x.GapStayed.Count, uint64(3))
		assert.InDelta(t, 310e6, max(x.GapStayed.Max, x.GapQuiet), 11e6)
		assert.GreaterOrEqual(t, x.GapQuiet, int64(10*time.Millisecond))
	})
}

func TestGroup_JoinFails(t *testing.T) {
	boom := errors.New("boom")
	_, err := load.Run(t.Context(), &script{joinErr: boom}, groupOf(load.Group{Kind: load.Assigned}))
	require.ErrorIs(t, err, boom)
	require.ErrorIs(t, err, load.ErrTarget)

	_, err = load.Run(t.Context(), &direct{}, groupOf(load.Group{Kind: load.Assigned}))
	require.ErrorIs(t, err, load.ErrNoGroups)
}

// TestGroup_BadCombinations: each is refused with a sentence that names what does not fit.
func TestGroup_BadCombinations(t *testing.T) {
	for want, change := range map[string]func(*load.Scenario){
		"kind \"x\": must": func(s *load.Scenario) { s.Group.Kind = "x" },
		"mode \"x\": must": func(s *load.Scenario) { s.Group.Mode = "x" },
		"ack \"x\": must":  func(s *load.Scenario) { s.Group.Mode, s.Group.Ack = load.Manual, "x" },
		"members is 0":     func(s *load.Scenario) { s.Group.Members = 0 },
		"readers is 1":     func(s *load.Scenario) { s.Readers = 1 },
		"subscribers is 1": func(s *load.Scenario) { s.Subscribers = 1 },
		"fail is 1":        func(s *load.Scenario) { s.Group.Fail = 1 },
		fmt.Sprint("deliveries is ", math.MaxInt): func(s *load.Scenario) { s.Group.Deliveries = math.MaxInt },
		"concurrency is 10001":                    func(s *load.Scenario) { s.Group.Concurrency = 10001 },
		"deliveries is -1":                        func(s *load.Scenario) { s.Group.Deliveries = -1 },
		"churn is 1ns":                            func(s *load.Scenario) { s.Group.Churn = 1 },
		"evict is 2":                              func(s *load.Scenario) { s.Group.Churn, s.Group.Evict = time.Second, 2 },
		"only in mode manual":                     func(s *load.Scenario) { s.Group.Ack = load.AckEach },
		"nobody leaves without churn":             func(s *load.Scenario) { s.Group.Evict = 0.5 },
		"share nothing that could move":           func(s *load.Scenario) { s.Group.Kind, s.Group.Churn = load.Broadcast, time.Second },
		"are called":                              func(s *load.Scenario) { s.Group.Kind, s.Group.Poll = load.Broadcast, true },
		"handles one message at a time":           func(s *load.Scenario) { s.Group.Poll, s.Group.Concurrency = true, 2 },
		"it can refuse only in mode":              func(s *load.Scenario) { s.Group.Poll, s.Group.Fail = true, 0.1 },
		"acknowledged as a whole":                 func(s *load.Scenario) { s.Group.Mode, s.Group.Ack, s.Group.Fail = load.Manual, load.AckBatch, 0.1 },
		"not consecutive": func(s *load.Scenario) {
			s.Group.Kind, s.Group.Mode, s.Group.Ack = load.Shared, load.Manual, load.AckBatch
		},
		"do not go together":            func(s *load.Scenario) { s.Rate, s.Group.Slow, s.Group.Churn = 100, 1, time.Second },
		"slow and hang do not":          func(s *load.Scenario) { s.Rate, s.Group.Slow, s.Group.Hang = 100, 1, true },
		"besides the slow member":       func(s *load.Scenario) { s.Rate, s.Group.Slow, s.Group.Members = 100, 1, 1 },
		"slow needs a rate":             func(s *load.Scenario) { s.Group.Slow = 1 },
		"nothing is taken away":         func(s *load.Scenario) { s.Group.Kind, s.Group.Timeout = load.Broadcast, time.Second },
		"rate is 2000: handlers that":   func(s *load.Scenario) { s.Rate, s.Group.Handler = 2000, time.Millisecond },
		"rate is 0.001":                 func(s *load.Scenario) { s.Rate = 0.001 },
		"members is set: the scenario ": func(s *load.Scenario) { s.Readers, s.Group.Kind = 1, "" },
	} {
		s := groupOf(load.Group{Kind: load.Assigned})
		require.NoError(t, s.Validate())
		change(&s)
		err := s.Validate()
		require.ErrorIs(t, err, load.ErrScenario, want)
		assert.ErrorContains(t, err, want)
	}
}

func TestGroupScenarios(t *testing.T) {
	names := map[string]bool{}
	for _, s := range append(load.Scenarios(), load.GroupScenarios()...) {
		require.NoError(t, s.Validate(), s.Name)
		assert.NotEmpty(t, s.About)
		assert.False(t, names[s.Name], "twice")
		names[s.Name] = true
		same, ok := load.ScenarioNamed(s.Name)
		assert.True(t, ok)
		assert.Equal(t, s, same)
	}
}
