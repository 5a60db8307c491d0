package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestBUG059_AttemptsOutliveOwners: how often a record has been delivered is known to who has the partition next, so that one
// whose handler hangs, or whose owners go, is given up in the end.
func TestBUG059_AttemptsOutliveOwners(t *testing.T) {
	for _, mode := range []engine.Mode{engine.AtLeastOnce, engine.Manual} {
		bubble(t, func(t *testing.T) {
			e := open(t, engine.Config{})
			topic := create(t, e, "t", engine.TopicConfig{})
			dead := create(t, e, "dead", engine.TopicConfig{})
			g := newGroup(t, e, "g", engine.GroupConfig{
				Mode: mode, MaxDeliveries: 3, DeadLetter: "dead", ProgressTimeout: time.Second, Backoff: []time.Duration{time.Minute},
				Settling: engine.Settling{AckWait: []time.Duration{time.Hour}},
			}, "t")
			var attempts []int
			join(t, g, handle(func(m *engine.Message) error {
				if m.Offset == 0 {
					attempts = append(attempts, m.Attempt)
					time.Sleep(3 * time.Second) // it is put out meanwhile, and joins again
				}
				if mode == engine.Manual {
					_ = m.Ack()
				}
				return nil
			}), engine.MemberConfig{})
			publish(t, topic, 0, 2)
			pass(time.Minute)
			assert.Equal(t, []int{1, 2, 3}, attempts)
			assert.EqualValues(t, 2, committed(t, g, "t", 0))
			assert.EqualValues(t, 1, part(t, dead, 0).Next())
		})
	}
}

// TestBUG059_AttemptsAreTheRecords: they count for that record only, and begin anew with a reset.
func TestBUG059_AttemptsAreTheRecords(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{})
		g := newGroup(t, e, "g", engine.GroupConfig{Backoff: []time.Duration{time.Minute}}, "t")
		var got []delivered
		h := handle(func(m *engine.Message) error {
			got = append(got, delivered{m.Partition, m.Offset, m.Attempt, ""})
			if m.Offset == 1 {
				return errPoison
			}
			return nil
		})
		publish(t, topic, 0, 2)
		require.NoError(t, e.ResetOffsets("g", "t", engine.Earliest(), engine.ResetOptions{}))
		for range 3 {
			m := join(t, g, h, engine.MemberConfig{})
			synctest.Wait()
			m.Close()
			<-m.Done()
		}
		require.NoError(t, e.ResetOffsets("g", "t", engine.At(1), engine.ResetOptions{}))
		m := join(t, g, h, engine.MemberConfig{})
		synctest.Wait()
		m.Close()
		<-m.Done()
		assert.Equal(t, []delivered{{0, 0, 1, ""}, {0, 1, 1, ""}, {0, 1, 2, ""}, {0, 1, 3, ""}, {0, 1, 1, ""}}, got)
	})
}
