package engine_test

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestGroup_OrderOfCallbacks: assigned before the first record, revoked behind the last one and before the next owner is
// assigned.
func TestGroup_OrderOfCallbacks(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{})
	g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
	var b book
	note := func(what string) { b.add(&engine.Message{Record: value(what)}) }
	member := func(name string) *engine.Member {
		return join(t, g, handle(func(m *engine.Message) error { note(name + ":" + string(m.Value)); return nil }), engine.MemberConfig{
			Name: name,
			OnAssigned: func(as []engine.Assignment) {
				assert.Equal(t, engine.Offset(b.len()/2), as[0].Position)
				note(name + " assigned")
			},
			OnRevoked: func([]engine.Assignment) { note(name + " revoked") },
		})
	}
	member("z")
	publish(t, topic, 0, 1)
	committedIs(t, g, "t", 0, 1)
	assert.Equal(t, 2, b.len())
	require.NoError(t, e.ResetOffsets("g", "t", engine.At(1), engine.ResetOptions{Force: true}))
	settledAs(g, "z")
	values := func() (all []string) {
		for _, d := range b.entries() {
			all = append(all, d.value)
		}
		return all
	}
	assert.Equal(t, []string{"z assigned", "z:0/0", "z assigned"}, values())
}

// TestBUG067_PairsOfCallbacks lets a second change come while the callback of the first one is running: each of the
// callbacks, in its turn, blocks while the member leaves, and another one of that name joins.
func TestBUG067_PairsOfCallbacks(t *testing.T) {
	watchdog(t)
	for _, what := range []string{"assigned", "revoked"} {
		for _, static := range []bool{false, true} {
			t.Run(what, func(t *testing.T) {
				e := open(t, engine.Config{})
				topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
				g := newGroup(t, e, "g", engine.GroupConfig{Assignor: engine.Deal}, "t")
				l := newLedger(t)
				in, out := make(chan struct{}, 10), make(chan struct{})
				block := func([]engine.Assignment) { in <- struct{}{}; <-out }
				c := engine.MemberConfig{Static: static}
				if what == "assigned" {
					c.OnAssigned = block
				} else {
					c.OnRevoked = block
				}
				x := newTally()
				m := join(t, g, x.handler("old"), l.member("m", c))
				if what == "assigned" {
					<-in
				} else {
					await(func() bool { return len(l.take()) > 0 })
				}
				m.Close()
				if what == "revoked" {
					<-in
				}
				again := join(t, g, x.handler("new"), l.member("m", engine.MemberConfig{Static: static}))
				publish(t, topic, 0, 10)
				publish(t, topic, 1, 10)
				assert.Zero(t, x.total(), "the old one has the partitions until its callback has returned")
				close(out)
				<-m.Done()
				await(func() bool { return x.of("new") == 20 })
				settledAs(g, "m", "m")
				x.once(t, 20)
				again.Close()
				<-again.Done()
				l.closed()
			})
		}
	}
}

// TestGroup_CallbacksThatEndBadly panic or end their goroutine: the partition moves on all the same.
func TestGroup_CallbacksThatEndBadly(t *testing.T) {
	watchdog(t)
	for name, end := range map[string]func(){"panic": func() { panic("bad") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			e := open(t, engine.Config{})
			topic := create(t, e, "t", engine.TopicConfig{Partitions: 4})
			g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
			l, x := newLedger(t), newTally()
			bad := func(name string) engine.MemberConfig {
				return l.member(name, engine.MemberConfig{
					OnAssigned: func([]engine.Assignment) { end() },
					OnRevoked:  func([]engine.Assignment) { end() },
					OnLost:     func([]engine.Assignment, error) { end() },
				})
			}
			a := join(t, g, x.handler("a"), bad("a"))
			b := join(t, g, x.handler("b"), bad("b"))
			await(func() bool { return len(a.Assignment()) == 2 && len(b.Assignment()) == 2 })
			for i := range 4 {
				publish(t, topic, i, 5)
			}
			await(func() bool { return x.total() == 20 })
			require.NoError(t, g.Evict("b"))
			<-b.Done()
			assert.ErrorIs(t, b.Err(), engine.ErrRemoved)
			settledAs(g, "a", "a", "a", "a")
			publish(t, topic, 3, 1)
			await(func() bool { return x.total() == 21 })
			a.Close()
			<-a.Done()
			l.closed()
			x.once(t, 21)
		})
	}
}

// TestGroup_CallbacksThatCallEverything: what a callback calls does not wait for the callback, and works.
func TestGroup_CallbacksThatCallEverything(t *testing.T) {
	watchdog(t)
	for _, kind := range []string{"push", "pull"} {
		for _, at := range []string{"assigned", "revoked", "lost"} {
			t.Run(kind+"/"+at, func(t *testing.T) {
				e := open(t, engine.Config{Workers: 2})
				topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
				g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
				var m *engine.Member
				var c *engine.Consumer
				var called atomic.Int32
				ready := make(chan struct{})
				all := func(as []engine.Assignment) {
					<-ready
					assert.NotEmpty(t, as)
					publish(t, topic, as[0].Partition, 1)
					_ = m.Pause("t")
					_ = m.Resume("t")
					err := m.Seek("t", as[0].Partition, engine.Earliest())
					assert.True(t, err == nil || errors.Is(err, engine.ErrNotAssigned) || errors.Is(err, engine.ErrMemberClosed) || errors.Is(err, engine.ErrRemoved), "%v", err)
					_ = m.Assignment()
					_ = g.Stats()
					_ = e.Stats()
					_, err = e.DescribeGroup("g")
					assert.NoError(t, err)
					assert.ErrorIs(t, e.DeleteGroup("g"), engine.ErrGroupActive)
					assert.ErrorIs(t, e.Drain(background), engine.ErrSelfBlock)
					if c != nil {
						_ = c.Commit()
						_ = c.CommitSync(background)
						_ = c.CommitTo("t", as[0].Partition, 0)
						_, err := c.Poll(gone(), 1)
						assert.Error(t, err)
					}
					other, err := g.Join(ignore, engine.MemberConfig{})
					assert.NoError(t, err)
					other.Close()
					assert.NoError(t, topic.SetPartitions(topic.Partitions()+1))
					m.Close()
					called.Add(1)
				}
				config := engine.MemberConfig{Name: "m", OnRevoked: func([]engine.Assignment) {}}
				switch at {
				case "assigned":
					config.OnAssigned = all
				case "revoked":
					config.OnRevoked = all
				default:
					config.OnLost = func(as []engine.Assignment, _ error) { all(as) }
				}
				if kind == "pull" {
					c = consumer(t, g, config)
					m = c.Member
				} else {
					m = join(t, g, ignore, config)
				}
				close(ready)
				switch at {
				case "revoked":
					await(func() bool { return !describe(t, g, "m").Calling })
					m.Close()
				case "lost":
					await(func() bool { return !describe(t, g, "m").Calling })
					require.NoError(t, g.Evict("m"))
				}
				if c != nil {
					<-c.Done()
				}
				<-m.Done()
				assert.Positive(t, called.Load())
			})
		}
	}
}

// TestGroup_CloseInsideACallback closes the engine from each of the callbacks: it does not wait for itself.
func TestGroup_CloseInsideACallback(t *testing.T) {
	watchdog(t)
	for _, at := range []string{"assigned", "revoked", "lost"} {
		e, err := engine.Open(engine.Config{Workers: 1})
		require.NoError(t, err)
		create(t, e, "t", engine.TopicConfig{})
		g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
		closed := make(chan error, 10)
		c := engine.MemberConfig{Name: "m"}
		end := func([]engine.Assignment) { closed <- e.Close() }
		switch at {
		case "assigned":
			c.OnAssigned = end
		case "revoked":
			c.OnRevoked = end
		default:
			c.OnLost = func(as []engine.Assignment, _ error) { end(as) }
		}
		m := join(t, g, ignore, c)
		switch at {
		case "revoked":
			m.Close()
		case "lost":
			require.NoError(t, g.Evict("m"))
		}
		require.NoError(t, <-closed)
		<-m.Done()
		require.NoError(t, e.Close())
		assert.Error(t, m.Err())
	}
}

// TestGroup_CloseInsideAHandler: the same for handlers of each kind, and for the member's own Close.
func TestGroup_CloseInsideAHandler(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for _, mode := range []engine.Mode{engine.AtLeastOnce, engine.AtMostOnce, engine.Manual} {
			for _, what := range []string{"member", "engine"} {
				e, err := engine.Open(engine.Config{Workers: 1})
				require.NoError(t, err)
				topic := create(t, e, "t", engine.TopicConfig{})
				g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind, Mode: mode}, "t")
				var m *engine.Member
				calls := 0
				ready := make(chan struct{})
				m = join(t, g, handle(func(*engine.Message) error {
					<-ready
					calls++
					if what == "engine" {
						assert.NoError(t, e.Close())
					} else {
						m.Close()
						select {
						case <-m.Done():
							t.Error("done before the handler has returned")
						default:
						}
					}
					return nil
				}), engine.MemberConfig{})
				close(ready)
				require.NoError(t, topic.PublishBatch(background, make([]engine.Record, 2)))
				<-m.Done()
				require.NoError(t, e.Close())
				assert.Equal(t, 1, calls, "no delivery begins after Close")
				want := engine.ErrMemberClosed
				if what == "engine" {
					want = engine.ErrClosed
				}
				assert.ErrorIs(t, m.Err(), want)
				if what == "member" && mode != engine.Manual {
					_, err := g.Committed("t", 0)
					assert.ErrorIs(t, err, engine.ErrClosed)
				}
			}
		}
	}
}

// TestGroup_PauseInAssigned: what is paused before its first record stays so, and a seek there counts.
func TestGroup_PauseInAssigned(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
	publish(t, topic, 0, 10)
	publish(t, topic, 1, 10)
	for _, mode := range []engine.Mode{engine.AtLeastOnce, engine.Manual} {
		g := newGroup(t, e, []string{"a", "", "m"}[mode], engine.GroupConfig{Mode: mode}, "t")
		var b book
		var m *engine.Member
		ready := make(chan struct{})
		m = join(t, g, &b, engine.MemberConfig{OnAssigned: func(as []engine.Assignment) {
			<-ready
			assert.NoError(t, m.Pause("t", 1))
			assert.NoError(t, m.Seek("t", 0, engine.At(5)))
			assert.NoError(t, m.Seek("t", 1, engine.Last(3)))
		}})
		close(ready)
		await(func() bool { return b.len() == 5 })
		assert.Equal(t, upTo(5, 10), b.offsets(0))
		assert.Empty(t, b.offsets(1))
		assert.True(t, g.Stats().Partitions[1].Paused)
		require.NoError(t, m.Resume("t"))
		await(func() bool { return b.len() == 8 })
		assert.Equal(t, upTo(7, 10), b.offsets(1))
		m.Close()
		<-m.Done()
	}
}
