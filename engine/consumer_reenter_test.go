package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestConsumer_GapReenters calls everything from OnGap while the Poll that tells of the gap goes on: it is told once, Poll returns
// what follows or why not, and Close waits for nobody.
func TestConsumer_GapReenters(t *testing.T) {
	type world struct {
		e *engine.Engine
		g *engine.Group
		c *engine.Consumer
	}
	for name, x := range map[string]struct {
		call func(w world)
		ends error
	}{
		"Consumer.Close": {func(w world) { w.c.Close() }, engine.ErrMemberClosed},
		"Engine.Close":   {func(w world) { assert.NoError(t, w.e.Close()) }, engine.ErrClosed},
		"Evict":          {func(w world) { assert.NoError(t, w.g.Evict("m")) }, engine.ErrRemoved},
		"Consumer":       {func(w world) { _, err := w.g.Consumer(engine.MemberConfig{}); assert.NoError(t, err) }, nil},
		"DeleteGroup":    {func(w world) { assert.Error(t, w.e.DeleteGroup("g"), "it has a member") }, nil},
		"Poll": {func(w world) {
			ctx, cancel := context.WithTimeout(background, time.Second)
			defer cancel()
			_, err := w.c.Poll(ctx, 1)
			assert.Error(t, err, "two at once")
		}, nil},
		"panic": {func(world) { panic("OnGap") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			watchdog(t)
			var w world
			told := 0
			w.e = open(t, engine.Config{})
			top := create(t, w.e, "t", engine.TopicConfig{})
			for range 10 {
				_, err := top.Publish(background, value("x"))
				require.NoError(t, err)
			}
			var err error
			w.g, err = w.e.CreateGroup("g", engine.GroupConfig{
				Topics: []string{"t"}, Start: engine.Earliest(), NonGating: true, OnGap: func(string, engine.GapError) { told++; x.call(w) },
			})
			require.NoError(t, err)
			require.NoError(t, part(t, top, 0).TruncateBefore(background, 5))
			w.c, err = w.g.Consumer(engine.MemberConfig{Name: "m"})
			require.NoError(t, err)
			ms, err := w.c.Poll(background, 100)
			assert.Equal(t, 1, told)
			if x.ends != nil {
				assert.ErrorIs(t, err, x.ends)
			} else if assert.NoError(t, err) {
				assert.EqualValues(t, 5, ms[0].Offset)
			}
			require.NoError(t, w.e.Close())
		})
	}
}
