package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestGroup_ResetOffsets: each kind of target, of all and of some partitions, without members.
func TestGroup_ResetOffsets(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		t.Run(kind.String(), func(t *testing.T) {
			e := open(t, engine.Config{})
			topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
			create(t, e, "other", engine.TopicConfig{})
			publish(t, topic, 0, 10)
			publish(t, topic, 1, 4)
			truncate(t, topic, 2)
			g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind, Start: engine.Earliest()}, "t")
			at := func() [2]engine.Offset {
				return [2]engine.Offset{committed(t, g, "t", 0), committed(t, g, "t", 1)}
			}
			first := part(t, topic, 0).First()
			assert.Equal(t, [2]engine.Offset{first, 0}, at())
			reset := func(to engine.Start, parts ...int) error {
				return e.ResetOffsets("g", "t", to, engine.ResetOptions{Partitions: parts})
			}
			require.NoError(t, reset(engine.Latest()))
			assert.Equal(t, [2]engine.Offset{10, 4}, at())
			require.NoError(t, reset(engine.At(3)))
			assert.Equal(t, [2]engine.Offset{3, 3}, at())
			require.NoError(t, reset(engine.Shift(1)))
			assert.Equal(t, [2]engine.Offset{4, 4}, at())
			require.NoError(t, reset(engine.Shift(-100), 1, 1))
			assert.Equal(t, [2]engine.Offset{4, 0}, at())
			require.NoError(t, reset(engine.Shift(100)))
			assert.Equal(t, [2]engine.Offset{10, 4}, at())
			require.NoError(t, reset(engine.Last(1)))
			assert.Equal(t, [2]engine.Offset{9, 3}, at())
			require.NoError(t, reset(engine.Since(time.Unix(0, 0)), 0))
			assert.Equal(t, [2]engine.Offset{first, 3}, at())
			require.NoError(t, reset(engine.Since(time.Now().Add(time.Hour))))
			assert.Equal(t, [2]engine.Offset{10, 4}, at())
			require.NoError(t, reset(engine.Earliest()))

			var out *engine.OffsetError
			assert.ErrorAs(t, reset(engine.At(5)), &out, "partition 1 has no such offset")
			assert.ErrorContains(t, reset(engine.At(5)), "partition 1")
			assert.Equal(t, [2]engine.Offset{first, 0}, at(), "so none is set")
			assert.ErrorIs(t, reset(engine.At(3), 0, 2), engine.ErrUnknownPartition)
			assert.ErrorIs(t, reset(engine.At(3), -1), engine.ErrUnknownPartition)
			assert.ErrorIs(t, e.ResetOffsets("nobody", "t", engine.At(3), engine.ResetOptions{}), engine.ErrUnknownGroup)
			for _, name := range []string{"other", "nope"} {
				assert.ErrorIs(t, e.ResetOffsets("g", name, engine.At(0), engine.ResetOptions{Force: true}), engine.ErrUnknownTopic)
			}
			assert.Equal(t, [2]engine.Offset{first, 0}, at())
			_, err := g.Committed("t", 2)
			assert.ErrorIs(t, err, engine.ErrUnknownPartition)
			_, err = g.Committed("nope", 0)
			assert.ErrorIs(t, err, engine.ErrUnknownTopic)

			// Members begin there.
			require.NoError(t, reset(engine.Last(2)))
			var b book
			m := join(t, g, &b, engine.MemberConfig{})
			await(func() bool { return b.len() == 4 })
			assert.Equal(t, []engine.Offset{8, 9}, b.offsets(0))
			assert.Equal(t, []engine.Offset{2, 3}, b.offsets(1))
			assert.ErrorIs(t, reset(engine.Earliest()), engine.ErrGroupActive)
			m.Close()
			<-m.Done()
			require.NoError(t, reset(engine.Earliest(), 1))
			assert.Equal(t, [2]engine.Offset{10, 0}, at())
		})
	}
}

// TestGroup_ForcedReset: with members a forced reset fences what they are doing, and they go on where it says, also if that is
// where they are.
func TestGroup_ForcedReset(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		t.Run(kind.String(), func(t *testing.T) {
			e := open(t, engine.Config{})
			topic := create(t, e, "t", engine.TopicConfig{})
			g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind, Mode: engine.Manual}, "t")
			l := newLedger(t)
			tokens := make(chan engine.Token, 100)
			join(t, g, handle(func(m *engine.Message) error { tokens <- m.Token(); return nil }), l.member("m", engine.MemberConfig{}))
			publish(t, topic, 0, 3)
			old := []engine.Token{<-tokens, <-tokens, <-tokens}
			require.NoError(t, old[1].Ack())
			assert.Equal(t, engine.Offset(0), committed(t, g, "t", 0))
			before := g.Stats()
			require.NoError(t, e.ResetOffsets("g", "t", engine.At(0), engine.ResetOptions{Force: true}))
			assert.ErrorIs(t, old[0].Ack(), engine.ErrFenced)
			assert.ErrorIs(t, old[2].AckThrough(), map[engine.GroupKind]error{engine.Assigned: engine.ErrFenced, engine.Shared: engine.ErrNotOwner}[kind])
			fresh := []engine.Token{<-tokens, <-tokens, <-tokens} // the one that was acknowledged as well
			for _, k := range fresh {
				assert.NoError(t, k.Ack())
			}
			committedIs(t, g, "t", 0, 3)
			after := g.Stats()
			if kind == engine.Shared {
				assert.Less(t, before.Generation, after.Generation)
				return
			}
			assert.Less(t, before.Partitions[0].Generation, after.Partitions[0].Generation)
			await(func() bool { return !describe(t, g, "m").Calling })
			assert.Equal(t, []string{"m assigned t/0", "m lost t/0", "m assigned t/0"}, l.take())
		})
	}
}

// TestSEED05_RewindHoldsNobody: a group that is put back does not hold publishers back with what it reads again, whoever puts
// it back; SEED-08: a group with members does hold them, and one without does not.
func TestSEED05_RewindHoldsNobody(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for _, how := range []string{"seek", "reset"} {
			t.Run(fmt.Sprint(kind, how), func(t *testing.T) {
				e := open(t, engine.Config{})
				topic := create(t, e, "t", bounded(8, engine.Block))
				p := part(t, topic, 0)
				g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind}, "t")
				publish(t, topic, 0, 20) // nobody is there
				m := join(t, g, ignore, engine.MemberConfig{Name: "m"})
				committedIs(t, g, "t", 0, 20)
				// The gate follows the position when the member rests.
				publish(t, topic, 0, 8)
				committedIs(t, g, "t", 0, 28)
				await(func() bool { s := e.Stats(); return s.Running+s.Queued == 0 })
				require.NoError(t, m.Pause("t"))
				if how == "seek" {
					require.NoError(t, m.Seek("t", 0, engine.Earliest()))
				} else {
					require.NoError(t, e.ResetOffsets("g", "t", engine.Earliest(), engine.ResetOptions{Force: true}))
					await(func() bool { return !describe(t, g, "m").Calling })
					require.NoError(t, m.Pause("t"))
				}
				for range 8 { // room that was given already
					_, err := p.Publish(soon(t), value("x"))
					require.NoError(t, err)
				}
				assert.NoError(t, m.Resume("t"))
				committedIs(t, g, "t", 0, 36)

				// And now it holds.
				require.NoError(t, m.Pause("t"))
				n := 0
				for ; n < 100 && p.TryPublish(value("x")) == nil; n++ {
					require.NoError(t, p.Flush(background))
				}
				assert.Less(t, n, 17)
				m.Close()
				<-m.Done()
				publish(t, topic, 0, 100)
				assert.Equal(t, engine.Offset(36), committed(t, g, "t", 0), "the position stays, and may fall out of what is there")
				s := g.Stats()
				assert.Equal(t, s.Partitions[0].Next-s.Partitions[0].First, s.Partitions[0].Lag)
				var b book
				join(t, g, &b, engine.MemberConfig{})
				committedIs(t, g, "t", 0, p.Next())
				assert.Equal(t, upTo(p.Next()-8, p.Next()), b.offsets(0))
				lost := p.Next() - 8 - 36
				if kind == engine.Shared { // it counts for all members that there have been
					lost += 20
				}
				assert.Equal(t, lost, g.Stats().Partitions[0].Lost)
			})
		}
	}
}
