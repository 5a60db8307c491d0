package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// place is one partition of a topic.
type place struct {
	topic string
	index int
}

// ledger writes down what members are told, and checks what has to hold for it in every history: each time that somebody has
// a partition begins with one OnAssigned and ends with one of the other two, and has a generation of its own.
type ledger struct {
	t testing.TB

	mu    sync.Mutex
	open  map[interval]string // by whom
	over  map[interval]string // how it ended
	lines []string
}

// interval is a time that somebody has a partition.
type interval struct {
	place
	generation uint64
}

func newLedger(t testing.TB) *ledger {
	return &ledger{t: t, open: map[interval]string{}, over: map[interval]string{}}
}

// member returns c with callbacks that write into the ledger, and then call those that c had.
func (l *ledger) member(name string, c engine.MemberConfig) engine.MemberConfig {
	c.Name = name
	assigned, revoked, lost := c.OnAssigned, c.OnRevoked, c.OnLost
	c.OnAssigned = func(as []engine.Assignment) {
		l.assigned(name, as)
		if assigned != nil {
			assigned(as)
		}
	}
	c.OnRevoked = func(as []engine.Assignment) {
		l.ended(name, "revoked", as)
		if revoked != nil {
			revoked(as)
		}
	}
	c.OnLost = func(as []engine.Assignment, err error) {
		assert.ErrorIs(l.t, err, engine.ErrFenced)
		l.ended(name, "lost", as)
		if lost != nil {
			lost(as, err)
		}
	}
	return c
}

func (l *ledger) assigned(name string, as []engine.Assignment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(name, "assigned", as)
	for _, a := range as {
		x := interval{place{a.Topic, a.Partition}, a.Generation}
		assert.Empty(l.t, l.open[x]+l.over[x], "assigned twice: %v", x)
		l.open[x] = name
	}
}

func (l *ledger) ended(name, how string, as []engine.Assignment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(name, how, as)
	for _, a := range as {
		x := interval{place{a.Topic, a.Partition}, a.Generation}
		assert.Equal(l.t, name, l.open[x], "%s: %v", how, x)
		assert.Empty(l.t, l.over[x], "%s: %v ended already", how, x)
		delete(l.open, x)
		l.over[x] = how
	}
}

// write notes a line. Generations are not in it: they are numbers of the engine's choice.
func (l *ledger) write(name, what string, as []engine.Assignment) {
	line := name + " " + what
	for _, a := range as {
		line += fmt.Sprintf(" %s/%d", a.Topic, a.Partition)
	}
	l.lines = append(l.lines, line)
}

// take returns the lines since the last take.
func (l *ledger) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// closed checks that nobody has anything any more.
func (l *ledger) closed() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	assert.Empty(l.t, l.open, "never told of the end")
}

// owners returns who owns what, as the group says: the members' names by partition, "" for nobody.
func owners(g *engine.Group) []string {
	var all []string
	for _, p := range g.Stats().Partitions {
		all = append(all, p.Owner)
	}
	return all
}

// settledAs waits until the partitions are owned so, and the owners have been told.
func settledAs(g *engine.Group, want ...string) {
	await(func() bool {
		s := g.Stats()
		for i, p := range s.Partitions {
			if p.Owner != want[i] || p.Revoking {
				return false
			}
		}
		for _, m := range s.Members {
			if m.Calling {
				return false
			}
		}
		return len(s.Partitions) == len(want)
	})
}

// committed returns a group's position.
func committed(t testing.TB, g *engine.Group, topic string, partition int) engine.Offset {
	t.Helper()
	at, err := g.Committed(topic, partition)
	require.NoError(t, err)
	return at
}

// committedIs waits until a group is at an offset.
func committedIs(t testing.TB, g *engine.Group, topic string, partition int, want engine.Offset) {
	t.Helper()
	await(func() bool { return committed(t, g, topic, partition) == want })
}

// consumer makes a member that polls.
func consumer(t testing.TB, g *engine.Group, c engine.MemberConfig) *engine.Consumer {
	t.Helper()
	k, err := g.Consumer(c)
	require.NoError(t, err)
	return k
}

// poll returns what one Poll returns, which has to be something.
func poll(t testing.TB, c *engine.Consumer, max int) []engine.Message {
	t.Helper()
	ms, err := c.Poll(soon(t), max)
	require.NoError(t, err)
	require.NotEmpty(t, ms)
	return ms
}

// offsetsOf returns the offsets of messages.
func offsetsOf(ms []engine.Message) (offs []engine.Offset) {
	for i := range ms {
		offs = append(offs, ms[i].Offset)
	}
	return offs
}

// gone is a context that has ended.
func gone() context.Context {
	ctx, cancel := context.WithCancel(background)
	cancel()
	return ctx
}

// groupOf returns a group.
func groupOf(t testing.TB, e *engine.Engine, name string) *engine.Group {
	t.Helper()
	g, err := e.Group(name)
	require.NoError(t, err)
	return g
}

// describe returns the statistics of one member.
func describe(t testing.TB, g *engine.Group, name string) engine.MemberStats {
	t.Helper()
	s := g.Stats()
	i := slices.IndexFunc(s.Members, func(m engine.MemberStats) bool { return m.Name == name })
	require.GreaterOrEqual(t, i, 0, "no member %s", name)
	return s.Members[i]
}

// names returns the members of a group, in order.
func names(g *engine.Group) (all []string) {
	for _, m := range g.Stats().Members {
		all = append(all, m.Name)
	}
	return all
}

// counts sums the lines of a ledger up: how many partitions each member has been told of, and what.
func counts(lines []string) map[string]int {
	n := map[string]int{}
	for _, line := range lines {
		f := strings.Fields(line)
		n[f[0]+" "+f[1]] += len(f) - 2
	}
	return n
}

// journal is a list of lines that anybody adds to.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

// all returns the lines so far.
func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// truncate drops the records of partition 0 below an offset.
func truncate(t testing.TB, topic *engine.Topic, before engine.Offset) {
	t.Helper()
	require.NoError(t, part(t, topic, 0).TruncateBefore(background, before))
}

// asking is a slog.Handler that calls something whenever it is called.
type asking func()

func (f asking) Enabled(context.Context, slog.Level) bool  { f(); return true }
func (f asking) Handle(context.Context, slog.Record) error { f(); return nil }
func (f asking) WithAttrs([]slog.Attr) slog.Handler        { f(); return f }
func (f asking) WithGroup(string) slog.Handler             { f(); return f }

func askingLogger(f func()) *slog.Logger { return slog.New(asking(f)) }
