package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestMember_HandlersContext ends when the member does, or the partition is not its any more, so that a handler which waits for
// it returns.
func TestMember_HandlersContext(t *testing.T) {
	for name, end := range map[string]func(e *engine.Engine, g *engine.Group, m *engine.Member) error{
		"close":        func(_ *engine.Engine, _ *engine.Group, m *engine.Member) error { m.Close(); return nil },
		"evict":        func(_ *engine.Engine, g *engine.Group, m *engine.Member) error { return g.Evict(m.Name()) },
		"delete topic": func(e *engine.Engine, _ *engine.Group, _ *engine.Member) error { return e.DeleteTopic("t") },
	} {
		for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
			t.Run(kind.String()+"/"+name, func(t *testing.T) {
				watchdog(t)
				e := open(t, engine.Config{})
				topic := create(t, e, "t", engine.TopicConfig{})
				g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind}, "t")
				in := make(chan struct{}, 10)
				m := join(t, g, engine.HandlerFunc(func(ctx context.Context, _ *engine.Message) error {
					in <- struct{}{}
					<-ctx.Done()
					return context.Cause(ctx)
				}), engine.MemberConfig{Name: "m"})
				publish(t, topic, 0, 1)
				<-in
				require.NoError(t, end(e, g, m))
				<-m.Done()
			})
		}
	}
}

// TestConsumer_CommitToTheEndOfTime is as far beyond as any other offset that was not returned.
func TestConsumer_CommitToTheEndOfTime(t *testing.T) {
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{})
	g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
	publish(t, topic, 0, 2)
	k := consumer(t, g, engine.MemberConfig{})
	poll(t, k, 2)
	var off *engine.OffsetError
	require.ErrorAs(t, k.CommitTo("t", 0, 1<<63-1), &off)
	assert.Zero(t, committed(t, g, "t", 0))
}
