package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestBUG038_GroupNoticesNewPartitions: partitions that come while a group runs are shared out, and read from their first
// record on, however fast they come and whatever the group's Start was. BUG-116: they have dense numbers.
func TestBUG038_GroupNoticesNewPartitions(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for _, pull := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, pull), func(t *testing.T) {
				e := open(t, engine.Config{})
				topic := create(t, e, "t", engine.FirstAt(engine.TopicConfig{Partitions: 2, Partitioner: engine.RoundRobin()}, 1000))
				g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind, Start: engine.Latest()}, "t")
				x, l := newTally(), newLedger(t)
				var work sync.WaitGroup
				var members []*engine.Member
				for _, name := range []string{"a", "b"} {
					if !pull {
						members = append(members, join(t, g, x.handler(name), l.member(name, engine.MemberConfig{})))
						continue
					}
					c := consumer(t, g, l.member(name, engine.MemberConfig{}))
					members = append(members, c.Member)
					h := x.handler(name)
					work.Go(func() {
						for {
							ms, err := c.Poll(background, 7)
							if err != nil {
								assert.ErrorIs(t, err, engine.ErrMemberClosed)
								return
							}
							for i := range ms {
								_ = h.OnMessage(background, &ms[i])
							}
						}
					})
				}
				const n = 2000
				var grown sync.WaitGroup
				grown.Go(func() {
					for k := 3; k <= 9; k++ {
						assert.NoError(t, topic.SetPartitions(k))
						assert.NoError(t, topic.SetPartitions(k))
						assert.ErrorIs(t, topic.SetPartitions(k-1), engine.ErrShrink)
						if k%3 == 0 {
							m := join(t, g, x.handler("c"), engine.MemberConfig{})
							m.Close()
						}
						runtime.Gosched()
					}
				})
				for range n {
					_, err := topic.Publish(background, value("x"))
					require.NoError(t, err)
				}
				grown.Wait()
				for i := range 9 {
					publish(t, topic, i, 1)
				}
				await(func() bool { return x.total() == n+9 })
				x.once(t, n+9)
				s := g.Stats()
				require.Len(t, s.Partitions, 9)
				for i, p := range s.Partitions {
					assert.Equal(t, i, p.Partition)
					if kind == engine.Assigned {
						assert.NotEmpty(t, p.Owner)
					}
				}
				for _, m := range members {
					m.Close()
				}
				work.Wait()
				for _, m := range members {
					<-m.Done()
				}
				await(func() bool { return len(names(g)) == 0 })
				l.closed()
			})
		}
	}
}

// TestBUG038_GrownWithoutMembers: the same when nobody is there to notice.
func TestBUG038_GrownWithoutMembers(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{})
		publish(t, topic, 0, 5)
		g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind}, "t")
		require.NoError(t, topic.SetPartitions(3))
		for i := range 3 {
			publish(t, topic, i, 2)
		}
		s := g.Stats()
		assert.EqualValues(t, 6, s.Lag())
		var b book
		join(t, g, &b, engine.MemberConfig{})
		await(func() bool { return b.len() == 6 })
		assert.Equal(t, upTo(5, 7), b.offsets(0))
		assert.Equal(t, upTo(0, 2), b.offsets(2))
	}
}

// TestGroup_TopicsOfMembers: each member gets only of the topics that it wants, and what nobody wants nobody gets; they come
// by turns.
func TestGroup_TopicsOfMembers(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		t.Run(kind.String(), func(t *testing.T) {
			e := open(t, engine.Config{})
			var topics []*engine.Topic
			for _, name := range []string{"x", "y", "z"} {
				topics = append(topics, create(t, e, name, engine.TopicConfig{Partitions: 2}))
			}
			g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind, Assignor: engine.Deal}, "x", "y", "z")
			var mu sync.Mutex
			got := map[string]int{}
			member := func(name string, wants ...string) *engine.Member {
				return join(t, g, handle(func(m *engine.Message) error {
					mu.Lock()
					defer mu.Unlock()
					got[name+" "+m.Topic]++
					return nil
				}), engine.MemberConfig{Name: name, Topics: wants})
			}
			member("a", "x")
			b := member("b", "x", "y")
			for _, topic := range topics {
				publish(t, topic, 0, 10)
				publish(t, topic, 1, 10)
			}
			await(func() bool { s := g.Stats(); return s.Lag() == 20 })
			await(func() bool { mu.Lock(); defer mu.Unlock(); return got["a x"]+got["b x"] == 20 && got["b y"] == 20 })
			assert.LessOrEqual(t, len(got), 3)
			if kind == engine.Assigned {
				assert.Equal(t, []string{"a", "b", "b", "b", "", ""}, owners(g))
			}
			assert.Equal(t, engine.Offset(0), committed(t, g, "z", 0))
			assert.ErrorIs(t, b.Seek("q", 0, engine.Earliest()), engine.ErrUnknownTopic)
			assert.ErrorIs(t, b.Pause("q"), engine.ErrUnknownTopic)
			assert.ErrorIs(t, b.Pause("x", 0, 2), engine.ErrUnknownPartition)
			if kind == engine.Assigned {
				assert.ErrorIs(t, b.Seek("x", 0, engine.Earliest()), engine.ErrNotAssigned)
			}
			// A topic that is deleted goes, its records with it, and its partitions are lost; a member that wants nothing else ends.
			require.NoError(t, e.DeleteTopic("x"))
			await(func() bool { return len(names(g)) == 1 })
			assert.Equal(t, []string{"b"}, names(g))
			assert.Len(t, g.Stats().Partitions, 4)
			_, err := g.Join(ignore, engine.MemberConfig{Topics: []string{"x"}})
			assert.ErrorIs(t, err, engine.ErrTopicDeleted)
			publish(t, topics[1], 0, 10)
			await(func() bool { mu.Lock(); defer mu.Unlock(); return got["b y"] == 30 })
			create(t, e, "x", engine.TopicConfig{}) // another one
			assert.Len(t, g.Stats().Partitions, 4)
			require.NoError(t, e.DeleteTopic("y"))
			<-b.Done()
			assert.ErrorIs(t, b.Err(), engine.ErrTopicDeleted)
			require.NoError(t, e.DeleteTopic("z"))
			_, err = g.Join(ignore, engine.MemberConfig{})
			assert.ErrorIs(t, err, engine.ErrTopicDeleted)
			require.NoError(t, e.DeleteGroup("g"))
		})
	}
}

// TestGroup_TopicDeletedUnderIt: with handlers that are busy, polls that wait and tokens that are out.
func TestGroup_TopicDeletedUnderIt(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for _, mode := range []engine.Mode{engine.AtLeastOnce, engine.AtMostOnce, engine.Manual} {
			t.Run(fmt.Sprint(kind, mode), func(t *testing.T) {
				e := open(t, engine.Config{Workers: 4})
				topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
				g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind, Mode: mode, Assignor: engine.Deal}, "t")
				l := newLedger(t)
				b := newBlocker()
				push := join(t, g, b, l.member("a", engine.MemberConfig{}))
				publish(t, topic, 0, 1)
				m := <-b.in
				token := m.Token()
				pull := consumer(t, g, l.member("b", engine.MemberConfig{}))
				if kind == engine.Assigned {
					settledAs(g, "a", "b")
					l.take()
				}
				var polled sync.WaitGroup
				polled.Go(func() {
					_, err := pull.Poll(background, 1)
					assert.ErrorIs(t, err, engine.ErrTopicDeleted)
				})
				require.NoError(t, e.DeleteTopic("t"))
				polled.Wait()
				<-pull.Done()
				assert.ErrorIs(t, pull.Err(), engine.ErrTopicDeleted)
				assert.ErrorIs(t, push.Err(), engine.ErrTopicDeleted)
				select {
				case <-push.Done():
					t.Error("its handler is running")
				default:
				}
				if mode == engine.Manual {
					assert.Error(t, token.Ack())
				}
				b.release()
				<-push.Done()
				if kind == engine.Assigned {
					l.closed()
					assert.ElementsMatch(t, []string{"a lost t/0", "b lost t/1"}, l.take())
				}
				assert.Empty(t, g.Stats().Partitions)
			})
		}
	}
}

// TestGroup_Drain waits for everything that members with handlers have to do, whatever they do with it, and for nothing that
// is for polls.
func TestGroup_Drain(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for _, mode := range []engine.Mode{engine.AtLeastOnce, engine.AtMostOnce, engine.Manual} {
			t.Run(fmt.Sprint(kind, mode), func(t *testing.T) {
				e := open(t, engine.Config{})
				in := create(t, e, "in", engine.TopicConfig{Partitions: 3, Partitioner: engine.RoundRobin()})
				out := create(t, e, "out", engine.TopicConfig{})
				first := newGroup(t, e, "first", engine.GroupConfig{Kind: kind, Mode: mode, Backoff: []time.Duration{1}}, "in")
				second := newGroup(t, e, "second", engine.GroupConfig{Kind: kind, Mode: mode}, "out")
				polled := newGroup(t, e, "polled", engine.GroupConfig{Kind: kind, Mode: mode}, "out")
				empty := newGroup(t, e, "empty", engine.GroupConfig{Kind: kind, Mode: mode}, "out")
				consumer(t, polled, engine.MemberConfig{})
				var got atomic.Int64
				for range 2 {
					join(t, first, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
						if m.Attempt == 1 && m.Offset%10 == 0 && mode != engine.AtMostOnce {
							return errPoison
						}
						_, err := out.Publish(ctx, value("x"))
						if mode == engine.Manual && err == nil {
							return m.Ack()
						}
						return err
					}), engine.MemberConfig{})
					join(t, second, handle(func(m *engine.Message) error {
						got.Add(1)
						return done(m, mode)
					}), engine.MemberConfig{})
				}
				for range 300 {
					_, err := in.Publish(background, value("x"))
					require.NoError(t, err)
				}
				require.NoError(t, e.Drain(soon(t)))
				assert.EqualValues(t, 300, got.Load())
				s := empty.Stats()
				assert.EqualValues(t, 300, s.Lag())
			})
		}
	}
}

// TestGroup_CloseUnderLoad closes the engine while everything runs: all members end, with ErrClosed, all callbacks come in
// pairs, and the hook is told of each before Close returns.
func TestGroup_CloseUnderLoad(t *testing.T) {
	watchdog(t)
	for i := range rounds(60) {
		kind := engine.GroupKind(i % 2)
		var ended journal
		e, err := engine.Open(engine.Config{Workers: 3, Hooks: engine.Hooks{
			MemberEnded: func(_, m string, err error) {
				for range i % 5 {
					runtime.Gosched()
				}
				assert.ErrorIs(t, err, engine.ErrClosed)
				ended.add("%s", m)
				if i%7 == 0 {
					runtime.Goexit()
				}
			},
		}})
		require.NoError(t, err)
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 3, Partitioner: engine.RoundRobin()})
		g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind, Mode: engine.Mode(i % 3)}, "t")
		l := newLedger(t)
		var work sync.WaitGroup
		var members []*engine.Member
		for j := range 4 {
			name := fmt.Sprint("m", j)
			if j%2 == 0 {
				members = append(members, join(t, g, ignore, l.member(name, engine.MemberConfig{Dedicated: j == 2})))
				continue
			}
			c := consumer(t, g, l.member(name, engine.MemberConfig{}))
			members = append(members, c.Member)
			work.Go(func() {
				for {
					if _, err := c.Poll(background, 5); err != nil {
						assert.ErrorIs(t, err, engine.ErrClosed)
						return
					}
				}
			})
		}
		work.Go(func() {
			for {
				if err := topic.PublishAsync(background, value("x"), nil); err != nil {
					return
				}
				runtime.Gosched() // with one processor others would wait for their turn
			}
		})
		if i%3 > 0 {
			await(func() bool { return part(t, topic, 0).Next() > 100 })
		}
		require.NoError(t, e.Close())
		for _, m := range members {
			assert.ErrorIs(t, m.Err(), engine.ErrClosed)
			<-m.Done()
		}
		assert.ElementsMatch(t, []string{"m0", "m1", "m2", "m3"}, ended.all())
		l.closed()
		work.Wait()
		_, err = e.Group("g")
		assert.ErrorIs(t, err, engine.ErrClosed)
		_, err = g.Join(ignore, engine.MemberConfig{})
		assert.ErrorIs(t, err, engine.ErrClosed)
		_, err = g.Consumer(engine.MemberConfig{})
		assert.ErrorIs(t, err, engine.ErrClosed)
		assert.ErrorIs(t, g.Evict("m0"), engine.ErrClosed)
		_, err = g.Committed("t", 0)
		assert.ErrorIs(t, err, engine.ErrClosed)
		assert.ErrorIs(t, e.DeleteGroup("g"), engine.ErrClosed)
		_, err = e.CreateGroup("h", engine.GroupConfig{Topics: []string{"t"}})
		assert.ErrorIs(t, err, engine.ErrClosed)
		assert.Empty(t, e.Groups())
		_ = g.Stats()
	}
}

// TestGroup_HookDeletesIt: a group can be deleted by the hook that is told of its last member, and the hook may close the
// engine.
func TestGroup_HookDeletesIt(t *testing.T) {
	watchdog(t)
	for _, what := range []string{"delete", "close"} {
		var e *engine.Engine
		told := make(chan error, 1)
		e, err := engine.Open(engine.Config{Hooks: engine.Hooks{MemberEnded: func(group, _ string, _ error) {
			if what == "delete" {
				told <- e.DeleteGroup(group)
			} else {
				told <- e.Close()
			}
		}}})
		require.NoError(t, err)
		create(t, e, "t", engine.TopicConfig{})
		g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
		m := join(t, g, ignore, engine.MemberConfig{})
		m.Close()
		require.NoError(t, <-told)
		<-m.Done()
		assert.Empty(t, e.Groups())
		require.NoError(t, e.Close())
	}
}

// TestGroup_LoggerThatAsks: a logger may call the engine in all its methods.
func TestGroup_LoggerThatAsks(t *testing.T) {
	watchdog(t)
	var e *engine.Engine
	e, err := engine.Open(engine.Config{Logger: askingLogger(func() {
		if e != nil {
			if g, err := e.Group("g"); err == nil {
				_ = g.Stats()
			}
		}
	})})
	require.NoError(t, err)
	create(t, e, "t", engine.TopicConfig{})
	g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
	m := join(t, g, ignore, engine.MemberConfig{Name: "m"})
	require.NoError(t, e.ResetOffsets("g", "t", engine.Earliest(), engine.ResetOptions{Force: true}))
	require.NoError(t, g.Evict("m"))
	<-m.Done()
	require.NoError(t, e.DeleteGroup("g"))
	require.NoError(t, e.Close())
}

// TestGroup_FailOnGap ends the member that finds one, with an error that says which.
func TestGroup_FailOnGap(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for _, mode := range []engine.Mode{engine.AtLeastOnce, engine.Manual} {
			for _, pull := range []bool{false, true} {
				t.Run(fmt.Sprint(kind, mode, pull), func(t *testing.T) {
					e := open(t, engine.Config{})
					topic := create(t, e, "t", bounded(4, engine.DropOldest))
					g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind, Mode: mode, Gap: engine.FailOnGap}, "t")
					publish(t, topic, 0, 10)
					var m *engine.Member
					if pull {
						c := consumer(t, g, engine.MemberConfig{})
						m = c.Member
						_, err := c.Poll(soon(t), 5)
						var out *engine.OffsetError
						require.ErrorAs(t, err, &out)
						assert.Equal(t, engine.Offset(0), out.Asked)
						_, err = c.Poll(soon(t), 5)
						require.ErrorAs(t, err, &out)
					} else {
						m = join(t, g, ignore, engine.MemberConfig{})
					}
					<-m.Done()
					var out *engine.OffsetError
					require.True(t, errors.As(m.Err(), &out), "%v", m.Err())
					assert.Equal(t, engine.Offset(6), out.First)
					require.NoError(t, e.ResetOffsets("g", "t", engine.Earliest(), engine.ResetOptions{}))
					var b book
					join(t, g, &b, engine.MemberConfig{})
					await(func() bool { return b.len() == 4 })
				})
			}
		}
	}
}

// TestGroup_GapIsTold to the group's OnGap and the hook, before what comes behind it.
func TestGroup_GapIsTold(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for _, pull := range []bool{false, true} {
			var told journal
			e := open(t, engine.Config{Hooks: engine.Hooks{Gap: func(topic, g string, gap engine.GapError) {
				told.add("hook %s %s %d-%d", topic, g, gap.From, gap.To)
			}}})
			topic := create(t, e, "t", bounded(4, engine.DropOldest))
			g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind, OnGap: func(topic string, gap engine.GapError) {
				told.add("%s %d-%d", topic, gap.From, gap.To)
				panic("bad")
			}}, "t")
			publish(t, topic, 0, 10)
			if pull {
				c := consumer(t, g, engine.MemberConfig{})
				assert.Equal(t, engine.Offset(6), poll(t, c, 10)[0].Offset)
			} else {
				var b book
				join(t, g, &b, engine.MemberConfig{})
				await(func() bool { return b.len() == 4 })
			}
			assert.Equal(t, []string{"t 0-6", "hook t g 0-6"}, told.all())
		}
	}
}
