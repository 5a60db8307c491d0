package engine_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// newGroup creates a group of one topic.
func newGroup(t testing.TB, e *engine.Engine, name string, c engine.GroupConfig, topics ...string) *engine.Group {
	t.Helper()
	c.Topics = topics
	g, err := e.CreateGroup(name, c)
	require.NoError(t, err)
	return g
}

// join makes h a member.
func join(t testing.TB, g *engine.Group, h engine.Handler, c engine.MemberConfig) *engine.Member {
	t.Helper()
	m, err := g.Join(h, c)
	require.NoError(t, err)
	return m
}

// tally counts what comes to whom.
type tally struct {
	mu   sync.Mutex
	by   map[string]int
	seen map[engine.Published]int
}

func newTally() *tally { return &tally{by: map[string]int{}, seen: map[engine.Published]int{}} }

func (x *tally) handler(name string) engine.Handler {
	return handle(func(m *engine.Message) error {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.by[name]++
		x.seen[engine.Published{Partition: int(m.Partition), Offset: m.Offset}]++
		return nil
	})
}

func (x *tally) total() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	for _, k := range x.by {
		n += k
	}
	return n
}

func (x *tally) of(name string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.by[name]
}

// once checks that each record has come exactly once.
func (x *tally) once(t testing.TB, n int) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	assert.Equal(t, n, len(x.seen)) // and not Len, which would print them all
	for p, k := range x.seen {
		assert.Equal(t, 1, k, "%+v", p)
	}
}

func TestGroup_EachRecordToOneMember(t *testing.T) {
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for _, mode := range []engine.Mode{engine.AtLeastOnce, engine.AtMostOnce, engine.Manual} {
			t.Run(kind.String()+"/"+[]string{"at least once", "at most once", "manual"}[mode], func(t *testing.T) {
				watchdog(t)
				e := open(t, engine.Config{Workers: 4})
				topic := create(t, e, "t", engine.TopicConfig{Partitions: 4, Partitioner: engine.RoundRobin()})
				g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind, Mode: mode}, "t")
				x := newTally()
				var both sync.WaitGroup // each waits in its first handler until the other has something, too: else one might do it all
				both.Add(2)
				for _, name := range []string{"a", "b"} {
					h := x.handler(name)
					var first sync.Once
					join(t, g, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
						first.Do(func() { both.Done(); both.Wait() })
						_ = h.OnMessage(ctx, m)
						if mode == engine.Manual {
							assert.NoError(t, m.Ack())
						} else {
							assert.ErrorIs(t, m.Ack(), engine.ErrNoToken)
						}
						return nil
					}), engine.MemberConfig{Name: name})
				}
				for range 1000 {
					_, err := topic.Publish(background, value("x"))
					require.NoError(t, err)
				}
				require.NoError(t, e.Drain(background))
				x.once(t, 1000)
				for i := range 4 {
					at := committed(t, g, "t", i)
					assert.EqualValues(t, 250, at)
				}
				if kind == engine.Assigned {
					assert.Equal(t, 500, x.of("a"))
				} else {
					assert.Positive(t, x.of("a"))
					assert.Positive(t, x.of("b"))
				}
			})
		}
	}
}
