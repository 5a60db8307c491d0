package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestBUG010_LateOwnerCommitsNothing: an owner that does not give a partition back in time loses it. What it still does there
// counts no more, its context says so, and when it gets the partition again nothing of before comes back.
func TestBUG010_LateOwnerCommitsNothing(t *testing.T) {
	for _, mode := range []engine.Mode{engine.AtLeastOnce, engine.Manual} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := open(t, engine.Config{})
				topic := create(t, e, "t", engine.TopicConfig{})
				g := newGroup(t, e, "g", engine.GroupConfig{Mode: mode, RevokeTimeout: time.Minute, Assignor: engine.Deal}, "t")
				l := newLedger(t)
				acks, causes := make(chan error, 1), make(chan error, 1)
				out := make(chan struct{})
				var after book
				a := join(t, g, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
					if m.Offset == 10 {
						<-ctx.Done()
						causes <- context.Cause(ctx)
						<-out
						acks <- m.Ack()
						return nil
					}
					if mode == engine.Manual {
						assert.NoError(t, m.Ack())
					}
					after.add(m)
					return nil
				}), l.member("b", engine.MemberConfig{}))
				publish(t, topic, 0, 60)
				synctest.Wait()
				assert.Equal(t, engine.Offset(10), committed(t, g, "t", 0))
				var got book
				b := join(t, g, handle(func(m *engine.Message) error {
					if mode == engine.Manual {
						assert.NoError(t, m.Ack())
					}
					got.add(m)
					return nil
				}), l.member("a", engine.MemberConfig{}))
				assert.True(t, g.Stats().Partitions[0].Revoking)
				pass(time.Minute - 1)
				assert.Zero(t, got.len())
				assert.Empty(t, causes)
				pass(1)
				assert.Equal(t, upTo(10, 60), got.offsets(0))
				assert.Equal(t, engine.Offset(60), committed(t, g, "t", 0))
				var lost *engine.LostError
				require.ErrorAs(t, <-causes, &lost)
				assert.Equal(t, "not given back in time", lost.Cause)
				assert.ElementsMatch(t, []string{"b assigned t/0", "b lost t/0", "a assigned t/0"}, l.take())
				close(out)
				synctest.Wait()
				if mode == engine.Manual {
					assert.ErrorIs(t, <-acks, engine.ErrFenced)
					assert.EqualValues(t, 1, g.Stats().Partitions[0].Fenced)
				}
				assert.Equal(t, engine.Offset(60), committed(t, g, "t", 0))
				b.Close()
				synctest.Wait()
				publish(t, topic, 0, 1)
				synctest.Wait()
				assert.Equal(t, append(upTo(0, 10), 60), after.offsets(0))
				a.Close()
				synctest.Wait()
				l.closed()
			})
		})
	}
}

// TestBUG052_PutOutAndBack: a member whose handler hangs is put out after ProgressTimeout, not before: others get its
// partitions and lose nothing, it gets nothing more, and it joins again by itself when the handler has returned.
func TestBUG052_PutOutAndBack(t *testing.T) {
	for _, mode := range []engine.Mode{engine.AtLeastOnce, engine.Manual, engine.AtMostOnce} {
		for _, noRejoin := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, noRejoin), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var told journal
					e := open(t, engine.Config{Workers: 4, Hooks: engine.Hooks{
						MemberPutOut: func(group, member string) { told.add("out %s/%s", group, member) },
						MemberEnded:  func(group, member string, err error) { told.add("%s/%s: %v", group, member, err) },
					}})
					topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
					publish(t, topic, 0, 7) // so that positions are not where they would be without being set
					publish(t, topic, 1, 7)
					g := newGroup(t, e, "g", engine.GroupConfig{
						Mode: mode, ProgressTimeout: time.Minute, Assignor: engine.Deal, Settling: engine.Settling{AckWait: []time.Duration{time.Hour}},
					}, "t")
					l, x := newLedger(t), newTally()
					out := make(chan struct{})
					zombie, healthy := x.handler("zombie"), x.handler("healthy")
					hung := join(t, g, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
						if m.Partition == 0 && m.Offset == 10 {
							<-out
							assert.ErrorIs(t, context.Cause(ctx), engine.ErrFenced)
							if mode == engine.Manual {
								assert.ErrorIs(t, m.Ack(), engine.ErrFenced)
							}
							return nil
						}
						_ = zombie.OnMessage(ctx, m)
						if mode == engine.Manual {
							assert.NoError(t, m.Ack())
						}
						return nil
					}), l.member("a", engine.MemberConfig{NoRejoin: noRejoin}))
					join(t, g, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
						_ = healthy.OnMessage(ctx, m)
						if mode == engine.Manual {
							assert.NoError(t, m.Ack())
						}
						return nil
					}), l.member("b", engine.MemberConfig{}))
					synctest.Wait()
					l.take()
					publish(t, topic, 0, 20)
					publish(t, topic, 1, 20)
					synctest.Wait()
					assert.Equal(t, 20, x.of("healthy"), "others go on")
					assert.Equal(t, 3, x.of("zombie"))
					pass(59 * time.Second)
					s := describe(t, g, "a")
					assert.Equal(t, 1, s.Running, "who is stuck shows")
					assert.Equal(t, 59*time.Second, s.RunningFor)
					assert.Equal(t, []string{"a", "b"}, owners(g))
					assert.Empty(t, told.all())
					pass(time.Minute + time.Second) // it has made progress until its last look
					assert.Equal(t, []string{"b", "b"}, owners(g))
					assert.ElementsMatch(t, []string{"a lost t/0", "b assigned t/0"}, l.take())
					want := 40 - 3 - 1
					if mode != engine.AtMostOnce {
						want++ // the one that the zombie has not settled
					}
					assert.Equal(t, want, x.of("healthy"))
					s = describe(t, g, "a")
					assert.Equal(t, !noRejoin, s.Out)
					assert.Equal(t, 1, s.Running)
					assert.Empty(t, s.Assignment)
					pass(time.Hour)
					close(out)
					synctest.Wait()
					assert.Equal(t, engine.Offset(27), committed(t, g, "t", 0))
					if noRejoin {
						assert.Equal(t, []string{"g/a: " + engine.ErrNoProgress.Error()}, told.all())
						assert.ErrorIs(t, hung.Err(), engine.ErrNoProgress)
						<-hung.Done()
						assert.Equal(t, []string{"b", "b"}, owners(g))
						return
					}
					assert.Equal(t, []string{"out g/a"}, told.all())
					assert.NoError(t, hung.Err())
					assert.Equal(t, []string{"a", "b"}, owners(g))
					assert.Equal(t, []string{"b revoked t/0", "a assigned t/0"}, l.take())
					publish(t, topic, 0, 1)
					synctest.Wait()
					assert.Equal(t, 4, x.of("zombie"))
				})
			})
		}
	}
}

// TestBUG097_SlowIsNotDead: a member that is slow, but does something in each ProgressTimeout, stays; and so does one that has
// nothing to do, for ever.
func TestBUG097_SlowIsNotDead(t *testing.T) {
	for _, mode := range []engine.Mode{engine.AtLeastOnce, engine.Manual} {
		for _, batch := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, batch), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					e := open(t, engine.Config{Hooks: engine.Hooks{MemberPutOut: func(string, string) { t.Error("put out") }}})
					topic := create(t, e, "t", engine.TopicConfig{})
					g := newGroup(t, e, "g", engine.GroupConfig{
						Mode: mode, ProgressTimeout: time.Minute, Settling: engine.Settling{AckWait: []time.Duration{1000 * time.Hour}},
					}, "t")
					l := newLedger(t)
					var b book
					var h engine.Handler = handle(func(m *engine.Message) error {
						time.Sleep(59 * time.Second)
						b.add(m)
						return m.Ack()
					})
					if batch {
						h = batchFunc(func(_ context.Context, ms []engine.Message) error {
							time.Sleep(59 * time.Second)
							for i := range ms {
								b.add(&ms[i])
								_ = ms[i].Ack()
							}
							return nil
						})
					} else if mode == engine.AtLeastOnce {
						h = handle(func(m *engine.Message) error { time.Sleep(59 * time.Second); b.add(m); return nil })
					}
					join(t, g, h, l.member("a", engine.MemberConfig{BatchSize: 3}))
					for i := range 50 {
						publish(t, topic, 0, 1)
						pass(time.Duration(i) * time.Second)
					}
					pass(time.Hour)
					assert.Equal(t, 50, b.len())
					pass(10 * time.Hour)
					publish(t, topic, 0, 1)
					pass(time.Hour)
					assert.Equal(t, 51, b.len())
					assert.Equal(t, []string{"a assigned t/0"}, l.take())
				})
			})
		}
	}
}

// TestGroup_CallbackThatHangs: a member whose callback does not return is put out as well, and comes back after it.
func TestGroup_CallbackThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
		g := newGroup(t, e, "g", engine.GroupConfig{ProgressTimeout: time.Minute, Assignor: engine.Deal}, "t")
		l, x := newLedger(t), newTally()
		out := make(chan struct{})
		join(t, g, x.handler("a"), l.member("a", engine.MemberConfig{OnAssigned: func([]engine.Assignment) { <-out }}))
		join(t, g, x.handler("b"), l.member("b", engine.MemberConfig{}))
		publish(t, topic, 0, 5)
		publish(t, topic, 1, 5)
		pass(time.Minute - 1)
		// Partition 1 was on its way from a to b when a hung: that takes RevokeTimeout.
		assert.True(t, describe(t, g, "a").Calling)
		assert.Equal(t, "a", owners(g)[0])
		pass(2)
		assert.Equal(t, []string{"b", "b"}, owners(g))
		assert.Equal(t, 10, x.of("b"))
		assert.True(t, describe(t, g, "a").Out)
		close(out)
		synctest.Wait()
		assert.Equal(t, []string{"a", "b"}, owners(g))
		publish(t, topic, 0, 5)
		synctest.Wait()
		assert.Equal(t, 5, x.of("a"))
		x.once(t, 15)
	})
}

// TestBUG050_ZombieUnderATakenName: a member that was put out finds another one of its name when it comes back, and does not
// put that one out.
func TestBUG050_ZombieUnderATakenName(t *testing.T) {
	for _, static := range []bool{false, true} {
		t.Run(fmt.Sprint(static), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := open(t, engine.Config{})
				topic := create(t, e, "t", engine.TopicConfig{})
				g := newGroup(t, e, "g", engine.GroupConfig{ProgressTimeout: time.Minute}, "t")
				b := newBlocker()
				old := join(t, g, b, engine.MemberConfig{Name: "a", Static: static})
				publish(t, topic, 0, 3)
				pass(time.Hour)
				assert.True(t, describe(t, g, "a").Out)
				var got book
				m := join(t, g, &got, engine.MemberConfig{Name: "a", Static: static})
				synctest.Wait()
				assert.Equal(t, upTo(0, 3), got.offsets(0))
				b.release()
				synctest.Wait()
				<-old.Done()
				assert.ErrorIs(t, old.Err(), engine.ErrReplaced)
				assert.NoError(t, m.Err())
				publish(t, topic, 0, 1)
				synctest.Wait()
				assert.Equal(t, upTo(0, 4), got.offsets(0))
			})
		})
	}
}

// TestGroup_StaticMembers keep their partitions for a while after they have closed, and nothing moves if they come back in
// time. After that others get them.
func TestGroup_StaticMembers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
		g := newGroup(t, e, "g", engine.GroupConfig{Grace: time.Minute, Assignor: engine.Deal, ExpireAfter: time.Hour}, "t")
		l, x := newLedger(t), newTally()
		static := func(name string) *engine.Member {
			return join(t, g, x.handler(name), l.member(name, engine.MemberConfig{Static: true}))
		}
		a := static("a")
		static("b")
		synctest.Wait()
		l.take()
		a.Close()
		synctest.Wait()
		assert.Equal(t, []string{"a revoked t/0"}, l.take())
		assert.Equal(t, []string{"", "b"}, owners(g))
		assert.True(t, describe(t, g, "a").Away)
		publish(t, topic, 0, 3)
		pass(time.Minute - 1)
		assert.Zero(t, x.total(), "kept for the one that is away")
		a = static("a")
		synctest.Wait()
		assert.Equal(t, 3, x.of("a"))
		assert.Equal(t, []string{"a assigned t/0"}, l.take())
		a.Close()
		pass(time.Minute - 1)
		publish(t, topic, 0, 2)
		synctest.Wait()
		assert.Zero(t, x.of("b"))
		pass(1)
		assert.Equal(t, 2, x.of("b"))
		assert.Equal(t, []string{"a revoked t/0", "b assigned t/0"}, l.take())
		assert.Equal(t, []string{"b"}, names(g))

		// One that comes under the name of another puts that one out, and has what it had.
		second := static("b")
		synctest.Wait()
		assert.ElementsMatch(t, []string{"b lost t/0 t/1", "b assigned t/0 t/1"}, l.take())
		publish(t, topic, 1, 1)
		synctest.Wait()
		x.once(t, 6)

		// One that is away can be put out by hand.
		second.Close()
		synctest.Wait()
		assert.Equal(t, []string{"b"}, names(g))
		assert.ErrorIs(t, e.DeleteGroup("g"), engine.ErrGroupActive)
		assert.ErrorIs(t, e.ResetOffsets("g", "t", engine.Earliest(), engine.ResetOptions{}), engine.ErrGroupActive)
		require.NoError(t, g.Evict("b"))
		assert.Empty(t, names(g))
		assert.ErrorIs(t, g.Evict("b"), engine.ErrUnknownMember)
		require.NoError(t, e.DeleteGroup("g"))
	})
}

// TestGroup_Expiry: a group without members is deleted after ExpireAfter, counted from when the last one has left; never while
// there is one, be it that it is only leaving or away.
func TestGroup_Expiry(t *testing.T) {
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		t.Run(kind.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := open(t, engine.Config{})
				topic := create(t, e, "t", engine.TopicConfig{})
				c := engine.GroupConfig{Kind: kind, ExpireAfter: time.Hour, RevokeTimeout: 100 * time.Hour}
				newGroup(t, e, "unused", c, "t")
				c.ExpireAfter = engine.Unlimited
				newGroup(t, e, "for ever"[:3], c, "t")
				c.ExpireAfter = time.Hour
				g := newGroup(t, e, "g", c, "t")
				b := newBlocker()
				m := join(t, g, b, engine.MemberConfig{})
				publish(t, topic, 0, 1)
				pass(time.Hour - 1)
				assert.Equal(t, []string{"for", "g", "unused"}, e.Groups())
				pass(1)
				assert.Equal(t, []string{"for", "g"}, e.Groups())
				pass(10 * time.Hour)
				m.Close()
				pass(10 * time.Hour)
				assert.Equal(t, []string{"for", "g"}, e.Groups(), "its handler runs")
				b.release()
				<-m.Done()
				pass(time.Hour - 1)
				assert.Equal(t, []string{"for", "g"}, e.Groups())
				pass(1)
				assert.Equal(t, []string{"for"}, e.Groups())
				_, err := g.Join(ignore, engine.MemberConfig{})
				assert.ErrorIs(t, err, engine.ErrGroupDeleted)
				_, err = e.Group("g")
				assert.ErrorIs(t, err, engine.ErrUnknownGroup)
				newGroup(t, e, "g", c, "t")
				pass(time.Hour - time.Minute)
				g = groupOf(t, e, "g")
				m = join(t, g, ignore, engine.MemberConfig{})
				pass(2 * time.Minute)
				m.Close()
				pass(59 * time.Minute)
				assert.Contains(t, e.Groups(), "g", "the time begins anew")
				pass(time.Minute)
				assert.NotContains(t, e.Groups(), "g")
			})
		})
	}
}

// TestGroup_RevokeOfAHungCallback: a revoked callback that does not return in time is a loss, which nobody is told twice.
func TestGroup_RevokeOfAHungCallback(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
		g := newGroup(t, e, "g", engine.GroupConfig{RevokeTimeout: time.Second, Assignor: engine.Deal}, "t")
		l, x := newLedger(t), newTally()
		out, late := make(chan struct{}), make(chan error, 1)
		var a *engine.Consumer
		a = consumer(t, g, l.member("a", engine.MemberConfig{OnRevoked: func([]engine.Assignment) {
			assert.NoError(t, a.CommitTo("t", 1, 2))
			<-out
			late <- a.CommitTo("t", 1, 3)
		}}))
		publish(t, topic, 0, 3)
		publish(t, topic, 1, 3)
		assert.Len(t, poll(t, a, 6), 6)
		b := join(t, g, x.handler("b"), l.member("b", engine.MemberConfig{}))
		assert.NoError(t, a.CommitSync(background)) // gives back partition 1, but for the callback
		pass(time.Second - 1)
		assert.Equal(t, []string{"a", "a"}, owners(g))
		pass(1)
		assert.Equal(t, []string{"a", "b"}, owners(g))
		publish(t, topic, 1, 2)
		synctest.Wait()
		assert.Equal(t, 2, x.of("b"))
		close(out)
		synctest.Wait()
		err := <-late
		assert.ErrorIs(t, err, engine.ErrFenced)
		assert.ErrorIs(t, err, engine.ErrNotAssigned)
		assert.Equal(t, []string{"a assigned t/0 t/1", "a revoked t/1", "b assigned t/1"}, l.take())
		b.Close()
		synctest.Wait()
		assert.Equal(t, []string{"a", "a"}, owners(g))
		a.Close()
		synctest.Wait()
		l.closed()
	})
}

// TestGroup_DrainAndHungMembers: Drain names the groups that keep it from its end.
func TestGroup_DrainAndHungMembers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := open(t, engine.Config{CloseTimeout: time.Second})
		topic := create(t, e, "t", engine.TopicConfig{})
		g := newGroup(t, e, "grp", engine.GroupConfig{}, "t")
		b := newBlocker()
		join(t, g, b, engine.MemberConfig{Name: "mem"})
		publish(t, topic, 0, 2)
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		err := e.Drain(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "t/0/grp")
		var hung *engine.HungError
		require.True(t, errors.As(e.Close(), &hung))
		assert.Len(t, hung.Handlers, 1)
		assert.Contains(t, hung.Handlers[0], "t/0/grp/mem")
		b.release()
	})
}
