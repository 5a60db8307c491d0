package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// groupOver is over for calls on groups and their members.
func groupOver(err error) bool {
	for _, ok := range []error{
		engine.ErrUnknownGroup, engine.ErrGroupExists, engine.ErrGroupActive, engine.ErrGroupDeleted, engine.ErrMemberExists,
		engine.ErrUnknownMember, engine.ErrMemberClosed, engine.ErrFenced, engine.ErrReplaced, engine.ErrRemoved, engine.ErrNotAssigned,
		engine.ErrConsumerBusy, engine.ErrUnknownPartition, engine.ErrNoToken, engine.ErrNotOwner, engine.ErrShrink,
	} {
		if errors.Is(err, ok) {
			return true
		}
	}
	return over(err)
}

// TestBUG055_NoLockOrder lets everything run at once that takes locks of groups, on two groups that share topics: joins, leaves,
// evictions, commits, seeks, resets, pauses, tokens and their ends by time, topics that come, grow and go, groups that come and
// go, and statistics. Nothing hangs, callbacks come in pairs, and no call has an answer that is none of its own.
func TestBUG055_NoLockOrder(t *testing.T) {
	watchdog(t)
	for _, workers := range []int{1, 4} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			ok := func(err error) {
				if !groupOver(err) {
					t.Errorf("%v", err)
				}
			}
			e, err := engine.Open(engine.Config{Workers: workers, Hooks: engine.Hooks{
				MemberEnded: func(string, string, error) { runtime.Gosched() },
			}})
			require.NoError(t, err)
			for _, name := range []string{"x", "y"} {
				create(t, e, name, engine.TopicConfig{Partitions: 2, OnFull: engine.DropOldest, Retention: engine.Retention{MaxRecords: 500}})
			}
			create(t, e, "dead", engine.TopicConfig{OnFull: engine.DropOldest, Retention: engine.Retention{MaxRecords: 500}})
			c := engine.GroupConfig{
				Topics: []string{"x", "y"}, Backoff: []time.Duration{time.Millisecond}, MaxDeliveries: 2, DeadLetter: "dead",
				RevokeTimeout: time.Millisecond, ProgressTimeout: 20 * time.Millisecond, Grace: time.Millisecond,
				Settling: engine.Settling{AckWait: []time.Duration{time.Millisecond}},
			}
			var ledgers sync.Map // by group: each counts its own generations
			var ids atomic.Int64
			handler := engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
				switch m.Offset % 16 {
				case 0:
					return errPoison
				case 1:
					runtime.Gosched()
				case 2:
					go func(k engine.Token) { ok(k.Ack()) }(m.Token())
					return nil
				case 3:
					ok(m.Nack(time.Millisecond))
				case 4:
					ok(m.Extend())
				case 5:
					if m.Attempt == 1 {
						time.Sleep(2 * time.Millisecond) // longer than it may
					}
				}
				ok(m.Ack())
				return nil
			})
			n := rounds(300)
			var work sync.WaitGroup
			for who := range 8 {
				work.Go(func() {
					rnd := rand.New(rand.NewPCG(uint64(who), uint64(workers)))
					var members []*engine.Member
					var pulls []*engine.Consumer
					for range n {
						name := []string{"assigned", "shared"}[rnd.IntN(2)]
						topic := []string{"x", "y"}[rnd.IntN(2)]
						g, err := e.Group(name)
						if err != nil {
							c := c
							c.Mode = engine.Mode(rnd.IntN(3))
							if name == "shared" {
								c.Kind = engine.Shared
							}
							_, err := e.CreateGroup(name, c)
							ok(err)
							continue
						}
						var m *engine.Member
						if len(members) > 0 {
							m = members[rnd.IntN(len(members))]
						}
						switch k := rnd.IntN(26); {
						case k < 4:
							l, _ := ledgers.LoadOrStore(g, newLedger(t))
							mc := l.(*ledger).member(fmt.Sprint("m", ids.Add(1)%6, "-", name), engine.MemberConfig{
								Static: rnd.IntN(3) == 0 && name == "assigned", Dedicated: rnd.IntN(4) == 0,
							})
							if rnd.IntN(3) == 0 {
								p, err := g.Consumer(mc)
								ok(err)
								if err == nil {
									pulls, members = append(pulls, p), append(members, p.Member)
								}
								break
							}
							m, err := g.Join(handler, mc)
							ok(err)
							if err == nil {
								members = append(members, m)
							}
						case k < 7 && len(members) > 2:
							members[0].Close()
							members = members[1:]
						case k < 12 && len(pulls) > 0:
							p := pulls[rnd.IntN(len(pulls))]
							ctx, cancel := context.WithTimeout(background, time.Millisecond)
							ms, err := p.Poll(ctx, 1+rnd.IntN(20))
							cancel()
							ok(err)
							for i := range ms {
								if i%2 == 0 {
									ok(ms[i].Ack())
								}
							}
							ok(p.CommitTo(topic, rnd.IntN(2), rnd.Int64N(100)))
							ok(p.Commit())
							if rnd.IntN(4) == 0 {
								p.Close()
							}
						case k == 12 && m != nil:
							ok(m.Seek(topic, rnd.IntN(2), engine.Last(rnd.Int64N(50))))
						case k == 13 && m != nil:
							ok(m.Pause(topic))
							ok(m.Resume(topic))
						case k == 14:
							ok(g.Evict(fmt.Sprint("m", rnd.IntN(6), "-", name)))
						case k == 15:
							ok(e.ResetOffsets(name, topic, engine.Last(10), engine.ResetOptions{Force: rnd.IntN(2) == 0}))
						case k == 16:
							_ = g.Stats()
							_ = e.Stats()
						case k == 17:
							_, err := e.DescribeGroup(name)
							ok(err)
							_, err = g.Committed(topic, 0)
							ok(err)
						case k == 18 && rnd.IntN(8) == 0:
							ok(e.DeleteTopic(topic))
							_, err := e.CreateTopic(topic, engine.TopicConfig{Partitions: 2, OnFull: engine.DropOldest, Retention: engine.Retention{MaxRecords: 500}})
							ok(err)
						case k == 19 && rnd.IntN(4) == 0:
							if topic, err := e.Topic(topic); err == nil && topic.Partitions() < 6 {
								ok(topic.SetPartitions(topic.Partitions() + 1))
							}
						case k == 20:
							ok(e.DeleteGroup(name))
						default:
							topic, err := e.Topic(topic)
							ok(err)
							if err == nil {
								ok(topic.PublishAsync(background, engine.Record{Key: []byte{byte(rnd.Uint32())}, Value: []byte("v")}, nil))
								_, err := topic.Publish(background, value("x"))
								ok(err)
							}
						}
					}
					for _, m := range members {
						m.Close()
					}
				})
			}
			work.Wait()
			require.NoError(t, e.Close())
			ledgers.Range(func(_, l any) bool { l.(*ledger).closed(); return true })
		})
	}
}

// TestGroup_Churn: members of all kinds join and leave all the time while records flow; in the end each record has been
// processed, by one member at a time for each partition of an assigned group, and if nobody was put out, once.
func TestGroup_Churn(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for _, mode := range []engine.Mode{engine.AtLeastOnce, engine.AtMostOnce, engine.Manual} {
			for _, evict := range []bool{false, true} {
				t.Run(fmt.Sprint(kind, mode, evict), func(t *testing.T) {
					e := open(t, engine.Config{Workers: 4})
					topic := create(t, e, "t", engine.TopicConfig{Partitions: 4, Partitioner: engine.RoundRobin()})
					g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind, Mode: mode}, "t")
					l, x := newLedger(t), newTally()
					var inside [4]atomic.Int32
					count := x.handler("all")
					h := engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
						if kind == engine.Assigned && !evict && inside[m.Partition].Add(1) > 1 {
							t.Error("two at once in a partition")
						}
						if m.Offset%8 == 0 {
							runtime.Gosched()
						}
						_ = count.OnMessage(ctx, m)
						inside[m.Partition].Add(-1)
						if mode == engine.Manual {
							if err := m.Ack(); err != nil && !evict {
								t.Errorf("ack: %v", err)
							}
						}
						return nil
					})
					join(t, g, h, l.member("stays", engine.MemberConfig{}))
					var work sync.WaitGroup
					stop := make(chan struct{})
					for who := range 3 {
						work.Go(func() {
							rnd := rand.New(rand.NewPCG(uint64(who), 1))
							name := fmt.Sprint("m", who)
							for {
								select {
								case <-stop:
									return
								default:
								}
								if who == 0 {
									p, err := g.Consumer(l.member(name, engine.MemberConfig{}))
									if !assert.NoError(t, err) {
										return
									}
									for range rnd.IntN(4) {
										ctx, cancel := context.WithTimeout(background, time.Millisecond)
										ms, _ := p.Poll(ctx, 10)
										cancel()
										for i := range ms {
											_ = h.OnMessage(background, &ms[i])
										}
									}
									if evict && rnd.IntN(2) == 0 {
										assert.NoError(t, g.Evict(name))
									}
									p.Close()
									<-p.Done()
									continue
								}
								m, err := g.Join(h, l.member(name, engine.MemberConfig{Static: kind == engine.Assigned && who == 1}))
								if !assert.NoError(t, err) {
									return
								}
								for range rnd.IntN(30) {
									runtime.Gosched()
								}
								if evict && rnd.IntN(2) == 0 {
									assert.NoError(t, g.Evict(name))
								} else {
									m.Close()
								}
								<-m.Done()
								if kind == engine.Assigned && who == 1 {
									_ = g.Evict(name) // not away for long
								}
							}
						})
					}
					n := rounds(4000)
					for range n {
						_, err := topic.Publish(background, value("x"))
						require.NoError(t, err)
					}
					close(stop)
					work.Wait()
					require.NoError(t, e.Drain(soon(t)))
					if evict && mode != engine.AtMostOnce {
						x.mu.Lock()
						assert.Equal(t, n, len(x.seen), "each at least once")
						x.mu.Unlock()
					} else if !evict {
						x.once(t, n)
					} else {
						x.mu.Lock()
						for p, times := range x.seen {
							assert.Equal(t, 1, times, "%+v at most once", p)
						}
						x.mu.Unlock()
					}
					s := g.Stats()
					assert.Zero(t, s.Lag())
					require.NoError(t, e.Close())
					l.closed()
				})
			}
		}
	}
}

// TestGroup_AcksRace: an acknowledgement, a nack, a rejection, an extension and the end of its time race for each record: one of
// them settles it, the others learn that they were too late, and the position gets to the end.
func TestGroup_AcksRace(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		e := open(t, engine.Config{Workers: 4})
		topic := create(t, e, "t", engine.TopicConfig{})
		g := newGroup(t, e, "g", engine.GroupConfig{
			Kind: kind, Mode: engine.Manual, MaxDeliveries: engine.Unlimited, Backoff: []time.Duration{time.Millisecond},
			// In the end there is time enough for one of them, also if the machine is slow.
			Settling: engine.Settling{AckWait: []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond, time.Minute}},
		}, "t")
		var settled, fenced atomic.Int64
		join(t, g, handle(func(m *engine.Message) error {
			k := m.Token()
			var won atomic.Int32
			try := func(f func() error) func() {
				return func() {
					switch err := f(); {
					case err == nil:
						won.Add(1)
					case errors.Is(err, engine.ErrFenced):
						fenced.Add(1)
					default:
						t.Errorf("%v", err)
					}
				}
			}
			reject := func() error {
				if m.Attempt < 3 {
					return k.Nack(0)
				}
				return k.Reject(nil)
			}
			together(1, try(k.Ack), try(func() error { return k.Nack(0) }), try(reject), func() { _ = k.Extend() }, func() {
				if m.Offset%64 == 0 {
					time.Sleep(time.Millisecond) // the time that the record has
				}
			})
			if won.Load() > 1 {
				t.Errorf("settled %d times", won.Load())
			}
			settled.Add(int64(won.Load()))
			return nil
		}), engine.MemberConfig{MaxConcurrency: 2})
		n := rounds(1000)
		publish(t, topic, 0, n)
		require.NoError(t, e.Drain(soon(t)))
		assert.Equal(t, engine.Offset(n), committed(t, g, "t", 0))
		assert.GreaterOrEqual(t, settled.Load(), int64(n))
		assert.Positive(t, fenced.Load())
		p := g.Stats().Partitions[0]
		assert.Zero(t, p.InFlight+p.Delayed+p.Dead)
	}
}

// TestGroup_StressClosedNotDeleted: who calls a group while the engine is being closed is told that, and not that a topic is gone.
func TestGroup_StressClosedNotDeleted(t *testing.T) {
	watchdog(t)
	for range rounds(40) {
		e := open(t, engine.Config{})
		create(t, e, "t", engine.TopicConfig{})
		create(t, e, "u", engine.TopicConfig{})
		g := newGroup(t, e, "g", engine.GroupConfig{}, "t", "u")
		until := func(call func() error) func() {
			return func() {
				for {
					err := call()
					if errors.Is(err, engine.ErrClosed) {
						return
					}
					if err != nil && !errors.Is(err, engine.ErrGroupActive) {
						t.Error(err)
						return
					}
				}
			}
		}
		together(1,
			until(func() error {
				m, err := g.Join(handle(func(*engine.Message) error { return nil }), engine.MemberConfig{})
				if err == nil {
					m.Close()
				}
				return err
			}),
			until(func() error { _, err := g.Committed("t", 0); return err }),
			until(func() error { return e.ResetOffsets("g", "u", engine.Earliest(), engine.ResetOptions{}) }),
			func() { runtime.Gosched(); _ = e.Close() },
		)
	}
}
