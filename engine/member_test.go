package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestMember_Tokens: what is held by tokens may be acknowledged until the revoked callback has returned; what is not comes to the
// next owner, with its attempts, and what is does not. In the lost callback it is too late.
func TestMember_Tokens(t *testing.T) {
	for _, end := range []string{"revoked", "lost"} {
		for _, pull := range []bool{false, true} {
			t.Run(fmt.Sprint(end, pull), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					e := open(t, engine.Config{})
					topic := create(t, e, "t", engine.TopicConfig{})
					g := newGroup(t, e, "g", engine.GroupConfig{Mode: engine.Manual}, "t")
					var tokens []engine.Token
					in := make(chan error, 10)
					c := engine.MemberConfig{
						Name: "a",
						OnRevoked: func([]engine.Assignment) {
							in <- tokens[1].Ack()
							in <- tokens[3].Nack(time.Minute)
							in <- tokens[1].Ack()
						},
						OnLost: func([]engine.Assignment, error) {
							in <- tokens[1].Ack()
							in <- tokens[3].Nack(time.Minute)
							in <- tokens[0].Extend()
						},
					}
					var m *engine.Member
					publish(t, topic, 0, 5)
					require.NoError(t, e.ResetOffsets("g", "t", engine.Earliest(), engine.ResetOptions{}))
					if pull {
						k := consumer(t, g, c)
						m = k.Member
						ms := poll(t, k, 5)
						for i := range ms {
							tokens = append(tokens, ms[i].Token())
						}
					} else {
						m = join(t, g, handle(func(m *engine.Message) error { tokens = append(tokens, m.Token()); return nil }), c)
						synctest.Wait()
					}
					require.Len(t, tokens, 5)
					require.NoError(t, tokens[0].Ack())
					if end == "lost" {
						require.NoError(t, g.Evict("a"))
					} else if pull {
						m.Close() // of the member only: the consumer is in no hurry
						synctest.Wait()
						assert.Empty(t, in, "its records have been returned, and it has not said that it is done with them")
						pass(time.Minute) // RevokeTimeout
					} else {
						m.Close()
					}
					synctest.Wait()
					require.Len(t, in, 3)
					var b book
					join(t, g, handle(func(m *engine.Message) error { b.add(m); return m.Ack() }), engine.MemberConfig{Name: "b"})
					synctest.Wait()
					if end == "lost" || pull {
						for range 3 {
							assert.ErrorIs(t, <-in, engine.ErrFenced)
						}
						assert.Equal(t, upTo(1, 5), b.offsets(0))
					} else {
						assert.NoError(t, <-in)
						assert.NoError(t, <-in)
						assert.ErrorIs(t, <-in, engine.ErrFenced)
						assert.Equal(t, []engine.Offset{2, 4}, b.offsets(0))
						assert.Equal(t, engine.Offset(3), committed(t, g, "t", 0))
						pass(time.Minute)
						assert.Equal(t, []engine.Offset{2, 4, 3}, b.offsets(0))
					}
					for _, d := range b.entries() {
						assert.Equal(t, 2, d.attempt)
					}
					for _, k := range tokens {
						assert.ErrorIs(t, k.Ack(), engine.ErrFenced)
					}
					assert.Equal(t, engine.Offset(5), committed(t, g, "t", 0))
				})
			})
		}
	}
}

// TestMember_SlowInASharedGroup: a record that a handler keeps for longer than AckWait comes to another member, and what the
// slow one returns counts no more, unless it has extended its time.
func TestMember_SlowInASharedGroup(t *testing.T) {
	for _, mode := range retrying {
		for _, extend := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, extend), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					e := open(t, engine.Config{})
					topic := create(t, e, "t", engine.TopicConfig{})
					g := newGroup(t, e, "g", engine.GroupConfig{
						Kind: engine.Shared, Mode: mode, Settling: engine.Settling{AckWait: []time.Duration{time.Minute}},
						Backoff: []time.Duration{time.Second},
					}, "t")
					got := make(chan string, 10)
					h := func(name string) engine.Handler {
						return handle(func(m *engine.Message) error {
							got <- fmt.Sprint(name, " ", m.Offset, " ", m.Attempt)
							if m.Attempt == 1 {
								for range 3 {
									time.Sleep(59 * time.Second)
									if extend {
										assert.NoError(t, m.Extend())
										assert.Equal(t, time.Now().Add(time.Minute), m.Token().Deadline().Round(0))
									}
								}
							}
							if mode == engine.Manual {
								err := m.Ack()
								if m.Attempt == 1 && !extend {
									assert.ErrorIs(t, err, engine.ErrFenced)
								} else {
									assert.NoError(t, err)
								}
							}
							return nil
						})
					}
					join(t, g, h("a"), engine.MemberConfig{})
					join(t, g, h("b"), engine.MemberConfig{})
					publish(t, topic, 0, 1)
					synctest.Wait()
					first := (<-got)[:1]
					pass(time.Minute)
					if extend {
						assert.Empty(t, got)
						pass(time.Hour)
						assert.Empty(t, got)
						assert.Zero(t, g.Stats().Partitions[0].Expired)
					} else {
						assert.Equal(t, map[string]string{"a": "b", "b": "a"}[first]+" 0 2", <-got)
						assert.EqualValues(t, 1, g.Stats().Partitions[0].Expired)
						assert.Equal(t, engine.Offset(1), committed(t, g, "t", 0))
						pass(time.Hour)
						assert.EqualValues(t, 1, g.Stats().Partitions[0].Fenced)
					}
					assert.Equal(t, engine.Offset(1), committed(t, g, "t", 0))
				})
			})
		}
	}
}

// TestMember_PauseAndSeek: nothing begins after Pause returned, and a seek made by a handler is not undone by its return. In a
// shared group what is paused is others'.
func TestMember_PauseAndSeek(t *testing.T) {
	kinds(t, func(t *testing.T, e *engine.Engine, c engine.GroupConfig) {
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
		g := newGroup(t, e, "g", c, "t")
		var b book
		var once sync.Once
		var m *engine.Member
		ready := make(chan struct{})
		h := handle(func(r *engine.Message) error {
			<-ready
			if r.Offset == 3 {
				back := false
				once.Do(func() { back = true })
				if back {
					assert.NoError(t, m.Seek("t", int(r.Partition), engine.At(1)))
				}
			}
			b.add(r)
			if c.Mode == engine.Manual {
				_ = r.Ack()
			}
			return nil
		})
		m = join(t, g, h, engine.MemberConfig{})
		close(ready)
		publish(t, topic, 0, 5)
		committedIs(t, g, "t", 0, 5)
		await(func() bool { return b.len() == 8 })
		assert.Equal(t, append(upTo(0, 4), upTo(1, 5)...), b.offsets(0))
		require.NoError(t, m.Pause("t", 1))
		publish(t, topic, 1, 3)
		publish(t, topic, 0, 1)
		committedIs(t, g, "t", 0, 6)
		assert.Empty(t, b.offsets(1))
		for range 20 { // pauses that come in the middle of something
			require.NoError(t, m.Pause("t"))
			n := b.len()
			publish(t, topic, 0, 1)
			require.NoError(t, m.Pause("t"))
			await(func() bool { return describe(t, g, m.Name()).Running == 0 }) // a handler that was running may have one more
			assert.LessOrEqual(t, b.len(), n+1)
			n = b.len()
			publish(t, topic, 0, 1)
			assert.Equal(t, n, b.len())
			require.NoError(t, m.Resume("t", 0))
		}
		committedIs(t, g, "t", 0, 46)
		assert.Empty(t, b.offsets(1))
		if c.Kind == engine.Shared {
			var other book
			join(t, g, handle(func(m *engine.Message) error {
				other.add(m)
				return done(m, c.Mode)
			}), engine.MemberConfig{})
			await(func() bool { return len(other.offsets(1)) == 3 })
			return
		}
		require.NoError(t, m.Resume("t"))
		await(func() bool { return len(b.offsets(1)) == 3 })
	})
}

// TestMember_ByKey: a member of an assigned group may work on several keys of a partition at a time; each key has its order for
// as long as somebody has the partition, nothing is lost when it moves, and in the end the position is behind all.
func TestMember_ByKey(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 4})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
	g := newGroup(t, e, "g", engine.GroupConfig{Assignor: engine.Deal}, "t")
	l, x := newLedger(t), newTally()
	member := func(name string) *engine.Member {
		var mu sync.Mutex
		next := map[string]engine.Offset{}
		h := x.handler(name)
		return join(t, g, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
			mu.Lock()
			assert.LessOrEqual(t, next[string(m.Key)], m.Offset, "%s", m.Key)
			next[string(m.Key)] = m.Offset + 1
			mu.Unlock()
			return h.OnMessage(ctx, m)
		}), l.member(name, engine.MemberConfig{
			ByKey: engine.Parallelism{Handlers: 4},
			OnAssigned: func([]engine.Assignment) { // what was done above the position comes again
				mu.Lock()
				defer mu.Unlock()
				clear(next)
			},
		}))
	}
	member("b")
	n := rounds(3000)
	var a *engine.Member
	for i := range n {
		_, err := topic.Publish(background, engine.Record{Key: fmt.Append(nil, "key", i%17), Value: []byte("v")})
		require.NoError(t, err)
		if i%(n/10) != 0 {
			continue
		}
		if a == nil {
			a = member("a")
		} else {
			a.Close()
			<-a.Done()
			a = nil
		}
	}
	require.NoError(t, e.Drain(soon(t)))
	x.mu.Lock()
	assert.Equal(t, n, len(x.seen))
	x.mu.Unlock()
	s := g.Stats()
	assert.Zero(t, s.Lag())
	require.NoError(t, e.Close())
	l.closed()
}

// TestMember_Batches: a BatchHandler in each kind of group gets what there is together, and it is settled together.
func TestMember_Batches(t *testing.T) {
	kinds(t, func(t *testing.T, e *engine.Engine, c engine.GroupConfig) {
		topic := create(t, e, "t", engine.TopicConfig{})
		c.Backoff = []time.Duration{time.Millisecond}
		g := newGroup(t, e, "g", c, "t")
		var mu sync.Mutex
		seen := map[engine.Offset]int{}
		largest, failed := 0, false
		require.NoError(t, topic.PublishBatch(background, make([]engine.Record, 200)))
		require.NoError(t, e.ResetOffsets("g", "t", engine.Earliest(), engine.ResetOptions{}))
		join(t, g, batchFunc(func(_ context.Context, ms []engine.Message) error {
			mu.Lock()
			defer mu.Unlock()
			largest = max(largest, len(ms))
			if !failed && c.Mode != engine.AtMostOnce {
				failed = true
				return errPoison
			}
			for i := range ms {
				seen[ms[i].Offset]++
				if c.Mode == engine.Manual {
					assert.NoError(t, ms[i].Ack())
				}
			}
			return nil
		}), engine.MemberConfig{BatchSize: 10})
		require.NoError(t, e.Drain(soon(t)))
		mu.Lock()
		defer mu.Unlock()
		assert.Len(t, seen, 200)
		for off, n := range seen {
			assert.Equal(t, 1, n, "%d", off)
		}
		assert.LessOrEqual(t, largest, 10)
		if c.Kind == engine.Assigned && c.Mode != engine.Manual {
			assert.Equal(t, 10, largest)
		}
	})
}

// TestGroup_HungMembersLeaveAWorker: however many members of an assigned group hang, others are served.
func TestGroup_HungMembersLeaveAWorker(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 3})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 6})
	g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
	b := newBlocker()
	t.Cleanup(b.release)
	for range 3 {
		join(t, g, b, engine.MemberConfig{})
	}
	for i := range 6 {
		publish(t, topic, i, 1)
	}
	<-b.in
	<-b.in
	other := create(t, e, "other", engine.TopicConfig{})
	var got book
	subscribe(t, other, &got, engine.SubscribeConfig{})
	publish(t, other, 0, 10)
	await(func() bool { return got.len() == 10 })
}
