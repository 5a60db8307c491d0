package target_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/target"
	"github.com/leatlog/leat/internal/testkit"
)

// moment makes a scenario last for a moment only.
func moment(t *testing.T, name string) load.Scenario {
	t.Helper()
	s, ok := load.ScenarioNamed(name)
	require.True(t, ok)
	s.Warmup, s.Duration, s.NoPlacement, s.NoFloor = 5*time.Millisecond, 60*time.Millisecond, true, true
	if s.Rate > 5000 {
		s.Rate = 5000
	}
	if s.Rate == 0 {
		s.Messages, s.Duration = 400, time.Minute // so many, however busy the machine is
	}
	if s.Group.Fail > 0 {
		s.Messages, s.Duration = 300, time.Minute // some of them fail, likewise
	}
	if s.Group.Churn > 0 {
		s.Group.Churn, s.Duration = time.Millisecond, time.Hour // see until
	}
	return s
}

// until runs a scenario until something has happened so often: members that come beyond the first ones, or partitions that one
// has lost.
type until struct {
	target.Leat
	joins, losses int
	end           context.CancelFunc
}

func (u until) OpenGroup(s load.Scenario) (load.GroupInstance, error) {
	in, err := u.Leat.OpenGroup(s)
	return &untilInstance{GroupInstance: in, u: u, joins: u.joins + s.Group.Members, losses: u.losses}, err
}

type untilInstance struct {
	load.GroupInstance
	u     until
	joins int // the churner's

	mu     sync.Mutex
	losses int
}

func (u *untilInstance) Join(name string, sink load.Sink) (load.Seat, error) {
	if u.joins--; u.joins == 0 && u.u.joins > 0 {
		u.u.end()
	}
	return u.GroupInstance.Join(name, untilSink{sink, u})
}

type untilSink struct {
	load.Sink
	u *untilInstance
}

func (x untilSink) Lost(partitions []int) {
	x.Sink.Lost(partitions)
	x.u.mu.Lock()
	defer x.u.mu.Unlock()
	if x.u.losses--; x.u.losses == 0 && x.u.u.losses > 0 {
		x.u.u.end()
	}
}

// right runs a scenario, of which the rate may be missed on a machine that is busy, and nothing else may go wrong.
func right(t *testing.T, tgt load.Target, s load.Scenario) load.Result {
	t.Helper()
	testkit.Watchdog(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if s.Group.Churn > 0 {
		tgt = until{joins: 12, end: cancel}
	}
	if s.Group.Hang && s.Group.Kind == load.Assigned {
		tgt = until{losses: 1, end: cancel}
	}
	res, err := load.Run(ctx, tgt, s)
	require.NoError(t, err)
	require.False(t, res.Faults.Any(), "%v: %+v", res.Err(), res.Lanes)
	require.NotNil(t, res.Group)
	return res
}

// TestLeat_Groups runs every scenario with a group in every mode, pushed and polled, as far as they go together; in a short run
// only with its own kind of group.
func TestLeat_Groups(t *testing.T) {
	t.Cleanup(func() { testkit.NoLeaks(t) })
	for _, named := range load.GroupScenarios() {
		for _, kind := range []load.Kind{load.Assigned, load.Shared, load.Broadcast} {
			for _, mode := range []load.Mode{load.AtLeastOnce, load.AtMostOnce, load.Manual} {
				for _, poll := range []bool{false, true} {
					s := moment(t, named.Name)
					s.Group.Kind, s.Group.Mode, s.Group.Poll = kind, mode, poll
					if s.Validate() != nil || testing.Short() && kind != named.Group.Kind {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%s/poll=%t", named.Name, kind, mode, poll), func(t *testing.T) {
						t.Parallel() // they wait
						res := right(t, target.Leat{}, s)
						x := res.Group
						assert.Equal(t, kind, x.Kind)
						assert.Equal(t, mode, x.Mode)
						assert.Equal(t, s.Group.Churn > 0, x.Leaves >= 12)
						if mode == load.AtMostOnce {
							assert.Equal(t, res.Sent*uint64(s.Consumers()), res.Received)
							assert.Zero(t, x.Redelivered+x.Repeated+x.Dead)
						}
						if s.Group.Fail > 0 && mode != load.AtMostOnce {
							assert.Positive(t, x.Redelivered)
							assert.GreaterOrEqual(t, len(x.Attempts), 2)
						}
					})
				}
			}
		}
	}
}

// TestLeat_GroupsByForce puts members out: what they had comes again, and the counters tell that from what must not.
func TestLeat_GroupsByForce(t *testing.T) {
	for _, kind := range []load.Kind{load.Assigned, load.Shared} {
		for _, mode := range []load.Mode{load.AtLeastOnce, load.AtMostOnce, load.Manual} {
			for _, poll := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/poll=%t", kind, mode, poll), func(t *testing.T) {
					defer testkit.NoLeaks(t)
					s := moment(t, "churn")
					s.Group.Kind, s.Group.Mode, s.Group.Poll, s.Group.Evict = kind, mode, poll, 1
					res := right(t, target.Leat{}, s)
					assert.GreaterOrEqual(t, res.Group.Joins, uint64(12))
					assert.Equal(t, res.Group.Joins, res.Group.Evictions)
					assert.Zero(t, res.Group.Leaves)
					if kind == load.Assigned {
						assert.Positive(t, res.Group.LostPartitions)
					}
				})
			}
		}
	}
}

// TestLeat_GroupHangs hangs a member: it loses what it has, and nothing is lost.
func TestLeat_GroupHangs(t *testing.T) {
	t.Cleanup(func() { testkit.NoLeaks(t) })
	for _, kind := range []load.Kind{load.Assigned, load.Shared, load.Broadcast} {
		for _, mode := range []load.Mode{load.AtLeastOnce, load.Manual} {
			t.Run(fmt.Sprintf("%s/%s", kind, mode), func(t *testing.T) {
				t.Parallel() // they wait
				s := moment(t, "slow-consumer")
				s.Duration = 200 * time.Millisecond
				if kind == load.Assigned {
					s.Duration = 2 * time.Second // until it has lost a partition, a moment after half of that
				}
				s.Group.Kind, s.Group.Mode, s.Group.Slow, s.Group.Hang = kind, mode, 0, true
				if kind != load.Broadcast {
					s.Group.Timeout = 50 * time.Millisecond
				}
				res := right(t, target.Leat{}, s)
				if res.Interrupted { // or else the machine was too busy for all of it
					assert.Positive(t, res.Group.LostPartitions)
				}
			})
		}
	}
}

// TestLeat_GroupWays runs what TestLeat_Groups does not: batches, concurrency, work that computes.
func TestLeat_GroupWays(t *testing.T) {
	for name, change := range map[string]func(*load.Scenario){
		"a batch at once": func(s *load.Scenario) { s.Group.Mode, s.Group.Ack = load.Manual, load.AckBatch },
		"a poll at once":  func(s *load.Scenario) { s.Group.Mode, s.Group.Ack, s.Group.Poll = load.Manual, load.AckBatch, true },
		"a shared poll at once": func(s *load.Scenario) {
			s.Group = load.Group{Kind: load.Shared, Members: 2, Mode: load.Manual, Ack: load.AckBatch, Poll: true}
		},
		"several handlers": func(s *load.Scenario) {
			s.Group = load.Group{Kind: load.Shared, Members: 2, Concurrency: 3, Handler: time.Millisecond}
		},
		"work that computes":     func(s *load.Scenario) { s.Group.Handler = 5 * time.Microsecond },
		"batches at a time each": func(s *load.Scenario) { s.Publish = "batch"; s.Group.Handler = 300 * time.Microsecond },
		"more partitions":        func(s *load.Scenario) { s.Partitions = 50; s.Group.Members = 7 },
		"more members":           func(s *load.Scenario) { s.Partitions = 2; s.Group.Members = 9 },
	} {
		t.Run(name, func(t *testing.T) {
			defer testkit.NoLeaks(t)
			s := moment(t, "group")
			change(&s)
			right(t, target.Leat{}, s)
		})
	}
}

// TestLeat_GroupSameSeedSameFailures: which deliveries fail does not depend on how fast anybody is.
func TestLeat_GroupSameSeedSameFailures(t *testing.T) {
	s := moment(t, "redelivery")
	s.Rate, s.Duration, s.Messages = 0, time.Minute, 2000
	a := right(t, target.Leat{}, s)
	b := right(t, target.Leat{}, s)
	assert.Equal(t, a.Group.Attempts, b.Group.Attempts)
	assert.Equal(t, a.Group.Redone, b.Group.Redone)
	s.Seed++
	c := right(t, target.Leat{}, s)
	assert.NotEqual(t, a.Group.Attempts, c.Group.Attempts)
}

func TestLeat_GroupKeepsWhatIsBehind(t *testing.T) {
	s := moment(t, "slow-consumer")
	s.Rate, s.Duration = 1e8, time.Minute
	err := load.Check(target.Leat{}, s)
	require.ErrorIs(t, err, load.ErrUnsupported)
	assert.ErrorContains(t, err, "rate 1e+08")

	_, err = load.Run(t.Context(), target.Chan{}, moment(t, "group"))
	require.ErrorIs(t, err, load.ErrNoGroups)
	assert.ErrorContains(t, err, "chan has no consumer groups")
}

// faulty is Leat with a fault in front of its members.
type faulty struct {
	target.Leat
	fault fault
}

// fault does something wrong, once. It is called for each delivery until it says that it is through.
type fault func(d load.Delivery, how load.Settler, next func(load.Delivery, load.Settler) error) (err error, through bool)

func (f faulty) OpenGroup(s load.Scenario) (load.GroupInstance, error) {
	in, err := f.Leat.OpenGroup(s)
	return &faultyInstance{GroupInstance: in, fault: f.fault, over: make(chan struct{})}, err
}

type faultyInstance struct {
	load.GroupInstance
	mu      sync.Mutex
	fault   fault
	through bool
	over    chan struct{} // closed when it is through
}

// Producer returns a producer that waits for the fault before its last messages. So the fault comes while the run goes on, however
// slow the members are, and not when the run has given up what it had not got by then.
func (f *faultyInstance) Producer(i int) (load.Producer, error) {
	p, err := f.GroupInstance.Producer(i)
	return &faultyProducer{Producer: p, f: f}, err
}

type faultyProducer struct {
	load.Producer
	f *faultyInstance
	n int
}

func (p *faultyProducer) Publish(ctx context.Context, partition int, payload []byte) error {
	if p.n++; p.n == 90 { // of a hundred or more
		if err := p.Flush(ctx); err != nil {
			return err
		}
		select {
		case <-p.f.over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return p.Producer.Publish(ctx, partition, payload)
}

func (f *faultyInstance) Join(name string, sink load.Sink) (load.Seat, error) {
	return f.GroupInstance.Join(name, faultySink{sink, f})
}

type faultySink struct {
	load.Sink
	f *faultyInstance
}

func (x faultySink) Deliver(d load.Delivery, how load.Settler) error {
	f := x.f
	f.mu.Lock()
	if !f.through {
		var err error
		if err, f.through = f.fault(d, how, x.Sink.Deliver); f.through {
			close(f.over)
		}
		f.mu.Unlock()
		return err
	}
	f.mu.Unlock()
	return x.Sink.Deliver(d, how)
}

// after lets n deliveries to partition 1 go before the fault.
func after(n int, f fault) fault {
	return func(d load.Delivery, how load.Settler, next func(load.Delivery, load.Settler) error) (error, bool) {
		if n--; n > 0 || d.Partition != 1 {
			return next(d, how), false
		}
		return f(d, how, next)
	}
}

// TestPlantedFaults plants faults between the target and the members of each scenario: the counters must show each. A short run has
// two of them.
func TestPlantedFaults(t *testing.T) {
	for name, plant := range map[string]struct {
		fault func() fault
		want  func(f load.Faults) uint64
		skip  func(s *load.Scenario) bool
	}{
		"dropped": {
			func() fault {
				return func(load.Delivery, load.Settler, func(load.Delivery, load.Settler) error) (error, bool) {
					return nil, true
				}
			},
			func(f load.Faults) uint64 { return f.Lost }, nil,
		},
		"repeated": {
			func() fault {
				return func(d load.Delivery, how load.Settler, next func(load.Delivery, load.Settler) error) (error, bool) {
					err := next(d, how)
					if err != nil { // it is to come again
						return err, false
					}
					return next(d, how), true
				}
			},
			func(f load.Faults) uint64 { return f.Duplicated }, nil,
		},
		"out of order": {
			func() fault {
				var kept *load.Delivery
				return func(d load.Delivery, how load.Settler, next func(load.Delivery, load.Settler) error) (error, bool) {
					switch {
					case kept == nil && d.Attempt == 1:
						kept = &load.Delivery{Partition: d.Partition, Payload: bytes.Clone(d.Payload), Attempt: 1}
						return nil, false
					case kept == nil || d.Partition != kept.Partition || d.Attempt > 1 || !sameProducer(d, *kept):
						return next(d, how), false
					}
					err := next(d, how)
					_ = next(*kept, how)
					return err, true
				}
			},
			func(f load.Faults) uint64 { return min(f.Reordered, f.Gap) },
			func(s *load.Scenario) bool { return s.Group.Kind == load.Shared }, // which has no order
		},
		"damaged": {
			func() fault {
				return func(d load.Delivery, how load.Settler, next func(load.Delivery, load.Settler) error) (error, bool) {
					d.Payload = bytes.Clone(d.Payload)
					d.Payload[len(d.Payload)/2] ^= 4
					return next(d, how), true
				}
			},
			func(f load.Faults) uint64 { return min(f.Corrupt, f.Lost) }, nil,
		},
		"miscounted": {
			func() fault {
				return func(d load.Delivery, how load.Settler, next func(load.Delivery, load.Settler) error) (error, bool) {
					d.Attempt++
					return next(d, how), true
				}
			},
			func(f load.Faults) uint64 { return f.Miscounted }, nil,
		},
		"two at once": {
			func() fault {
				return func(d load.Delivery, how load.Settler, next func(load.Delivery, load.Settler) error) (error, bool) {
					copied := load.Delivery{Partition: d.Partition, Payload: bytes.Clone(d.Payload), Attempt: d.Attempt}
					var both sync.WaitGroup
					both.Go(func() { _ = next(copied, how) })
					err := next(d, how)
					both.Wait()
					return err, true
				}
			},
			func(f load.Faults) uint64 { return f.Duplicated },
			func(s *load.Scenario) bool { return s.Group.Fail > 0 },
		},
	} {
		for _, named := range load.GroupScenarios() {
			s := moment(t, named.Name)
			if plant.skip != nil && plant.skip(&s) || testing.Short() && name != "dropped" && name != "repeated" {
				continue
			}
			t.Run(name+"/"+named.Name, func(t *testing.T) {
				testkit.Watchdog(t)
				s.Patience = 100 * time.Millisecond
				s.Messages = 400 // else a busy machine might be done before the fault's turn comes
				s.Duration = time.Minute
				res, err := load.Run(t.Context(), faulty{fault: after(5, plant.fault())}, s)
				require.NoError(t, err)
				assert.Positive(t, plant.want(res.Faults), "%+v", res.Faults)
				require.ErrorIs(t, res.Err(), load.ErrFaults)
				assert.ErrorContains(t, res.Err(), "group, partition ")
			})
		}
	}
}

// sameProducer reports whether two messages are of one producer: their bytes 14 and 15 say which.
func sameProducer(a, b load.Delivery) bool { return bytes.Equal(a.Payload[14:16], b.Payload[14:16]) }

// TestPlantedFaults_Swallowed: a handler has failed, and the target takes it for a success.
func TestPlantedFaults_Swallowed(t *testing.T) {
	t.Parallel() // it takes all of a run's patience
	testkit.Watchdog(t)
	s := moment(t, "redelivery")
	res, err := load.Run(t.Context(), faulty{fault: func(d load.Delivery, how load.Settler, next func(load.Delivery, load.Settler) error) (error, bool) {
		return nil, next(d, how) != nil
	}}, s)
	require.NoError(t, err)
	assert.Equal(t, load.Faults{Lost: 1}, res.Faults)
	assert.ErrorContains(t, res.Err(), "was delivered 1 times and never processed")
}

// behind is Leat whose positions lag, and that accepts every acknowledgement.
type behind struct{ target.Leat }

func (b behind) OpenGroup(s load.Scenario) (load.GroupInstance, error) {
	in, err := b.Leat.OpenGroup(s)
	return behindInstance{in}, err
}

type behindInstance struct{ load.GroupInstance }

func (b behindInstance) Positions(member, partition int) (position, end int64, err error) {
	position, end, err = b.GroupInstance.Positions(member, partition)
	return max(position-1, 0), end, err
}

func TestPlantedFaults_Uncommitted(t *testing.T) {
	t.Parallel() // it takes all of a run's patience
	testkit.Watchdog(t)
	s := moment(t, "group")
	res, err := load.Run(t.Context(), behind{}, s)
	require.NoError(t, err)
	assert.Equal(t, load.Faults{Uncommitted: 4}, res.Faults)
	assert.ErrorContains(t, res.Err(), "uncommitted 4")
}
