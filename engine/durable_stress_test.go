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
	"github.com/leatlog/leat/segment/vfs"
)

// TestDurable_GrowAgainstDelete: whoever comes first, nothing is left of a topic that is deleted.
func TestDurable_GrowAgainstDelete(t *testing.T) {
	watchdog(t)
	m := vfs.NewMem()
	e := on(t, m, engine.Config{})
	for i := range rounds(100) {
		top := create(t, e, "t", durable(engine.Always, 1))
		var wg sync.WaitGroup
		wg.Go(func() {
			for n := 2; n < 5; n++ {
				if err := top.SetPartitions(n); err != nil {
					assert.ErrorIs(t, err, engine.ErrTopicDeleted)
				}
			}
		})
		wg.Go(func() {
			for range i % 20 {
				runtime.Gosched()
			}
			assert.NoError(t, e.DeleteTopic("t"))
		})
		wg.Wait()
		names, err := m.List(dir)
		require.NoError(t, err)
		require.Equal(t, []string{"LOCK", "catalog"}, names)
	}
	require.NoError(t, e.Close())
	assert.Empty(t, on(t, m, engine.Config{}).Topics())
}

// TestDurable_CloseAgainstCreate: what was being made when the engine was closed is there at the next Open as a whole or not at all.
func TestDurable_CloseAgainstCreate(t *testing.T) {
	watchdog(t)
	for i := range rounds(100) {
		m := vfs.NewMem()
		e := on(t, m, engine.Config{})
		var wg sync.WaitGroup
		var made error
		wg.Go(func() { _, made = e.CreateTopic("t", durable(engine.Always, 2)) })
		for range i % 50 {
			runtime.Gosched()
		}
		require.NoError(t, e.Close())
		wg.Wait()
		if made != nil {
			require.ErrorIs(t, made, engine.ErrClosed)
		}
		e = on(t, m, engine.Config{})
		top, err := e.Topic("t")
		if err == nil {
			assert.Equal(t, 2, top.Partitions())
		} else {
			require.ErrorIs(t, err, engine.ErrUnknownTopic)
			require.Error(t, made)
		}
	}
}

// TestDurable_Busy publishes, consumes, fails, resumes and deletes, all at once.
func TestDurable_Busy(t *testing.T) {
	watchdog(t)
	m := vfs.NewMem()
	var n atomic.Int64
	broken := errors.New("broken")
	f := vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if o.Kind == vfs.OpSync && n.Add(1)%97 == 0 {
			return &vfs.Fault{Err: broken, Lose: true}
		}
		return nil
	})
	e := on(t, f, engine.Config{PositionsEvery: time.Millisecond})
	var top *engine.Topic
	var err error
	for top == nil { // it may fail
		top, err = e.CreateTopic("t", engine.TopicConfig{Partitions: 2, OnFull: engine.DropOldest, Retention: engine.Retention{MaxRecords: 2000},
			Durable: &engine.Durable{FileBytes: 16 << 10}})
		if err != nil {
			require.ErrorIs(t, err, broken)
		}
	}
	var g *engine.Group
	for g == nil {
		if g, err = e.CreateGroup("g", engine.GroupConfig{Topics: []string{"t"}, Start: engine.Earliest()}); err != nil {
			require.ErrorIs(t, err, broken)
		}
	}
	join(t, g, ignore, engine.MemberConfig{})
	var mu sync.Mutex
	acked := map[engine.Published]string{}
	note := func(at engine.Published, v string) {
		mu.Lock()
		defer mu.Unlock()
		acked[at] = v
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range rounds(1000) {
				v := fmt.Sprint(i, "-", j)
				r := engine.Record{Key: []byte(v), Value: []byte(v)}
				var err error
				switch j % 3 {
				case 0:
					var at engine.Published
					if at, err = top.Publish(background, r); err == nil {
						note(at, v)
					}
				case 1:
					ctx, cancel := context.WithTimeout(background, time.Duration(j%500)*time.Microsecond)
					var at engine.Published
					if at, err = top.Publish(ctx, r); err == nil {
						note(at, v)
					}
					cancel()
				case 2:
					err = top.PublishAsync(background, r, func(at engine.Published, err error) {
						if err == nil {
							note(at, v)
						}
					})
				}
				if errors.Is(err, engine.ErrReadOnly) {
					_ = top.Resume(background)
				}
			}
		})
	}
	wg.Wait()
	for top.Resume(background) != nil {
	}
	for top.Flush(background) != nil {
		_ = top.Resume(background)
	}
	state := lost(m)
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, acked)
	for _, x := range []*engine.Topic{top, topicOf(t, on(t, state, engine.Config{}), "t")} {
		for i := range 2 {
			p := part(t, x, i)
			at := p.First()
			for off, r := range p.Records(at) {
				require.Equal(t, at, off)
				at++
				if v, ok := acked[engine.Published{Partition: i, Offset: off}]; ok {
					require.Equal(t, v, string(r.Value))
				}
			}
			for want := range acked {
				require.True(t, want.Partition != i || want.Offset < p.Next())
			}
		}
	}
}
