package rivals_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/rivals"
	"github.com/leatlog/leat/bench/rivals/arena"
)

// TestRivals sends a few messages through each rival, in each topology that it knows, at full speed and at a rate, and has all of
// them checked.
func TestRivals(t *testing.T) {
	hold := sync.OnceFunc(func() { rivals.HoldClasses(t) }) // for all of them
	for _, r := range rivals.All() {
		t.Run(r.Name, func(t *testing.T) {
			if r.Missing != nil {
				if why := r.Missing(); why != "" {
					t.Skip(why)
				}
			}
			if r.Special() {
				t.Skip("see TestSpecials")
			}
			if r.Start != nil {
				hold()
			}
			list := specs(r)
			require.NotEmpty(t, list)
			for _, s := range list {
				t.Run(s.String(), func(t *testing.T) { pass(t, r, s) })
			}
		})
	}
}

// specs are the workloads to test a rival with: each wait in each topology, and each size where there is one partition and
// where there are several. A rival that starts a process gets by with few, since that takes a second each.
func specs(r *arena.Rival) (list []arena.Spec) {
	waits := r.Waits
	if len(waits) == 0 {
		waits = []arena.Wait{arena.Park}
	}
	tops, sizes := arena.Topologies(), arena.Sizes()
	add := func(top arena.Topology, size int, wait arena.Wait) {
		if s := (arena.Spec{Topology: top, Size: size, Wait: wait}); r.Check(s) == nil {
			list = append(list, s)
		}
	}
	if r.Start != nil {
		if r.Name != "lmax1" && (r.Name != "lmax" || testing.Short()) {
			tops = tops[:1]
		}
		for i, top := range tops {
			add(top, sizes[i%len(sizes)], waits[i%len(waits)])
		}
		return list
	}
	if testing.Short() && strings.HasPrefix(r.Name, "leat/") && !strings.HasPrefix(r.Name, "leat/async/") && !strings.HasSuffix(r.Name, "/reader") {
		tops = tops[:1] // each way in and each way out has been there with another
	}
	for _, top := range tops {
		for _, wait := range waits {
			add(top, 64, wait)
		}
	}
	for _, top := range []arena.Topology{arena.OneToOne, arena.FourByFour} {
		if !testing.Short() {
			add(top, 16, waits[0])
			add(top, 1024, waits[0])
		}
	}
	return list
}

func pass(t *testing.T, r *arena.Rival, s arena.Spec) {
	run, err := arena.Open(r, s)
	require.NoError(t, err)
	for _, n := range []uint64{1, 3000} {
		got, err := run.Slice(t.Context(), n)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, got.Messages, n)
		assert.Positive(t, got.Ns)
	}
	if s.Wait == r.DefaultWait() {
		run.Rated(50_000)
		got, err := run.Slice(t.Context(), 300)
		require.NoError(t, err)
		assert.Positive(t, got.Latency.P50)
		assert.GreaterOrEqual(t, got.Ns, int64(5*time.Millisecond), "300 messages at 50,000 a second are not all due before")
	}
	require.NoError(t, run.Close())
}

// TestRivals_AllocateNothing checks those that have no reason to. One that allocates for each message would need 20,000.
func TestRivals_AllocateNothing(t *testing.T) {
	for _, pattern := range []string{
		"leat/*/reader", "leat/*/push", "leat/*/group", "leat/append/poll", "chan", "chan-batch", "ring*", "xsync-spsc", "xsync-mpmc",
	} {
		list, err := rivals.Named(pattern)
		require.NoError(t, err)
		for _, r := range list {
			for _, top := range []arena.Topology{arena.OneToOne, arena.FourByFour} {
				run, err := arena.Open(r, arena.Spec{Topology: top, Size: 64, Wait: r.DefaultWait()})
				require.NoError(t, err)
				_, err = run.Slice(t.Context(), 20_000)
				require.NoError(t, err)
				s, err := run.Slice(t.Context(), 20_000)
				require.NoError(t, err)
				assert.Less(t, s.Allocs, uint64(1000), "%s %s", r.Name, top.Name)
				require.NoError(t, run.Close())
			}
		}
	}
}

// TestSpecials runs each measurement of a kind of its own.
func TestSpecials(t *testing.T) {
	rivals.KeepFew(t, 1_500_000)
	tops := map[string]arena.Topology{"publish": rivals.Publish, "replay": rivals.Replay, "retention": rivals.Retention}
	ran := map[string]int{}
	for _, r := range rivals.All() {
		if !r.Special() {
			continue
		}
		ran[r.Kind]++
		t.Run(r.Name, func(t *testing.T) {
			s := arena.Spec{Topology: tops[r.Kind], Size: 64}
			run, err := arena.Open(r, s)
			require.NoError(t, err)
			for _, n := range []uint64{1, 1_100_000 / 4, 1_100_000} {
				if r.Kind == "publish" {
					n = min(n, 3000)
				}
				got, err := run.Slice(t.Context(), n)
				require.NoError(t, err)
				assert.Equal(t, n, got.Messages)
				assert.Positive(t, got.Ns)
				if r.Kind == "publish" {
					assert.Equal(t, n, got.Latency.Count)
				}
			}
			require.NoError(t, run.Close())
			_, err = arena.Open(r, arena.Spec{Topology: arena.OneToOne, Size: 64})
			assert.ErrorIs(t, err, arena.ErrUnsupported)
		})
	}
	assert.Equal(t, map[string]int{"publish": 2, "replay": 3, "retention": 2}, ran)
}

func TestAll_NamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rivals.All() {
		assert.False(t, seen[r.Name], r.Name)
		seen[r.Name] = true
		assert.NotEmpty(t, r.About)
		assert.NotContains(t, r.Name, " ")
		assert.True(t, (r.Open == nil) != (r.Start == nil), r.Name)
	}
}

func TestNamed(t *testing.T) {
	names := func(pattern string) (found []string) {
		list, err := rivals.Named(pattern)
		require.NoError(t, err)
		for _, r := range list {
			found = append(found, r.Name)
		}
		return found
	}
	assert.Equal(t, []string{"chan"}, names("chan"))
	assert.Equal(t, []string{"chan", "chan-bytes", "chan-batch"}, names("chan*"))
	assert.Contains(t, names("leat/*/reader"), "leat/async/reader")
	assert.NotContains(t, names("leat/*/reader"), "leat/async/push")
	assert.Empty(t, names("nobody"))
	assert.NotContains(t, names("all"), "replay/sum", "it moves nothing")
	assert.Contains(t, names("all"), "leat/append/poll")
	_, err := rivals.Named("[")
	assert.Error(t, err)
}

// TestAll_OneProducerOnly checks that what takes one producer says so, rather than to mix up the messages of several.
func TestAll_OneProducerOnly(t *testing.T) {
	for _, r := range rivals.All() {
		if r.Special() {
			continue
		}
		single := slices.ContainsFunc([]string{"leat/append*/*", "leat/reserve*/*", "ring*", "xsync-spsc"}, func(pattern string) bool {
			found, err := rivals.Named(pattern)
			require.NoError(t, err)
			return slices.ContainsFunc(found, func(f *arena.Rival) bool { return f.Name == r.Name })
		})
		err := r.Check(arena.Spec{Topology: arena.ThreeToOne, Size: 64, Wait: r.DefaultWait()})
		if single {
			assert.ErrorIs(t, err, arena.ErrUnsupported, r.Name)
		} else {
			assert.NoError(t, err, r.Name)
		}
	}
}

// TestMatch_OfRealRivals runs the smallest comparison there is, probes and all.
func TestMatch_OfRealRivals(t *testing.T) {
	a, err := rivals.Named("leat/async/reader")
	require.NoError(t, err)
	b, err := rivals.Named("chan")
	require.NoError(t, err)
	m := arena.Match{
		A: arena.Side{Rival: a[0], Wait: arena.Park}, B: arena.Side{Rival: b[0], Wait: arena.Park},
		Topology: arena.OneToOne, Size: 64, Rates: []float64{0, 1e5}, Slices: 2, Length: 2 * time.Millisecond,
	}
	outs, err := m.Run(context.Background())
	require.NoError(t, err)
	require.Len(t, outs, 2)
	for _, o := range outs {
		if o.Skipped == "" {
			assert.Len(t, o.As, 2)
			assert.Len(t, o.Bs, 2)
		}
	}
}
