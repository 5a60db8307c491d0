package arena_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/rivals/arena"
)

// clockwork is a Runner whose slices are made up: it moves so many messages a second.
type clockwork struct {
	name   string
	rate   float64
	log    *[]string
	paced  float64
	fail   error
	closed bool
}

func (c *clockwork) Slice(_ context.Context, n uint64) (arena.Slice, error) {
	if c.fail != nil {
		return arena.Slice{}, c.fail
	}
	*c.log = append(*c.log, c.name+" "+arena.RateName(c.paced))
	return arena.Slice{Messages: n, Ns: int64(float64(n) / c.rate * 1e9), CPU: int64(n) * 3}, nil
}
func (c *clockwork) Rated(rate float64) { c.paced = rate }
func (c *clockwork) Close() error       { c.closed = true; return nil }

func side(c *clockwork) arena.Side {
	return arena.Side{Rival: &arena.Rival{Name: c.name, Start: func(arena.Spec) (arena.Runner, error) { return c, nil }}}
}

func TestMatch_AlternatesAndDividesOnlyEqualLabels(t *testing.T) {
	var log []string
	a, b := &clockwork{name: "a", rate: 30e6, log: &log}, &clockwork{name: "b", rate: 10e6, log: &log}
	// Two probes a slice: the third slice of a meets cores that move, and all after it are far apart.
	probes := []int64{110, 110, 110, 120, 110, 110, 120, 120, 110, 500, 500, 500, 500, 500, 500, 500}
	m := arena.Match{
		A: side(a), B: side(b), Topology: arena.OneToOne, Size: 64, Rates: []float64{0}, Slices: 4, Length: 10 * time.Millisecond,
		Probe: func() int64 { p := probes[0]; probes = probes[1:]; return p },
	}
	outs, err := m.Run(t.Context())
	require.NoError(t, err)
	require.Empty(t, probes, "two for each slice, none for the warm-up")
	require.Len(t, outs, 1)
	assert.Equal(t, []string{"a max", "b max", "a max", "b max", "a max", "b max", "a max", "b max"}, log[len(log)-8:])
	assert.True(t, a.closed && b.closed)

	p := outs[0].Pairs()
	require.Len(t, p.Groups, 2)
	near, far := p.Groups[0], p.Groups[1]
	assert.Equal(t, 2, p.Dropped)
	assert.Equal(t, "near", near.Label)
	assert.Len(t, near.Pairs, 3)
	assert.InDelta(t, 3, near.Of(arena.Slice.Rate).Median, 1e-6)
	assert.InDelta(t, 1, near.Of(arena.Slice.CPUPerMessage).Median, 1e-6)
	assert.Equal(t, "far", far.Label)
	assert.Len(t, far.Pairs, 2)
	assert.InEpsilon(t, uint64(300_000), outs[0].As[0].Messages, 1e-3, "30 M/s for 10 ms")
}

func TestMatch_Rates(t *testing.T) {
	var log []string
	a, b := &clockwork{name: "a", rate: 30e6, log: &log}, &clockwork{name: "b", rate: 5e5, log: &log}
	m := arena.Match{
		A: side(a), B: side(b), Topology: arena.OneToOne, Size: 64, Rates: []float64{0, 1e5, 1e6}, Slices: 1,
		Length: 10 * time.Millisecond, Probe: func() int64 { return 0 },
	}
	outs, err := m.Run(t.Context())
	require.NoError(t, err)
	require.Len(t, outs, 3)
	assert.Equal(t, []string{"a max", "b max", "a 100k", "b 100k"}, log[len(log)-4:])
	assert.Equal(t, uint64(1000), outs[1].As[0].Messages)
	assert.Contains(t, outs[2].Skipped, "b moves 0.5 M/s at most")
	assert.Equal(t, "1->1 64 B 1M", outs[2].Workload())
}

func TestMatch_SkipsAndFails(t *testing.T) {
	var log []string
	a, b := &clockwork{name: "a", rate: 1e6, log: &log}, &clockwork{name: "b", rate: 1e6, log: &log}
	m := arena.Match{
		A: side(a), B: side(b), Topology: arena.OneToOne, Size: 64, Rates: []float64{0}, Slices: 1, Length: time.Millisecond,
		Probe: func() int64 { return 0 },
	}
	m.B.Missing = func() string { return "not installed" }
	outs, err := m.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "b: not installed", outs[0].Skipped)

	m.B.Missing = nil
	m.B.Wait = arena.Spin
	outs, err = m.Run(t.Context())
	require.NoError(t, err)
	assert.Contains(t, outs[0].Skipped, "not supported")
	assert.Equal(t, "b,spin", outs[0].B)

	m.B.Wait = arena.Park
	b.fail = errors.New("it lost something")
	_, err = m.Run(t.Context())
	assert.ErrorIs(t, err, b.fail)
	assert.True(t, a.closed && b.closed)
}
