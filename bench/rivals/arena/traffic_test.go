package arena_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/rivals/arena"
)

// feed returns a feed with n messages in it, from inside a slice that is then thrown away.
func feed(t *testing.T, size int, n uint64) *arena.Feed {
	t.Helper()
	got := make(chan *arena.Feed, 1)
	r := &arena.Rival{Name: "thief", Open: func(j *arena.Job) (arena.Line, error) { return &thief{job: j, got: got}, nil }}
	x, err := arena.NewTraffic(r, arena.Spec{Topology: arena.OneToOne, Size: size})
	require.NoError(t, err)
	_, err = x.Slice(t.Context(), n)
	require.NoError(t, err)
	return <-got
}

// thief gives its feed away, and tells its sink what that wants to hear.
type thief struct {
	job *arena.Job
	got chan *arena.Feed
}

func (x *thief) Produce(_ context.Context, _ int, f *arena.Feed) error {
	for seq := range uint64(x.job.Sinks[0].Left()) {
		x.job.Sinks[0].See(arena.Message(0, x.job.Size, seq))
	}
	x.got <- f
	return nil
}
func (*thief) Consume(context.Context, int) error { return nil }
func (*thief) Close() error                       { return nil }

// broken is a channel for each consumer that does something wrong with message number at.
type broken struct {
	job *arena.Job
	c   []chan []byte
	at  int
	do  func(b *broken, to chan []byte, m []byte)

	held   []byte
	sent   int
	closed atomic.Int32
}

func (b *broken) Produce(_ context.Context, _ int, f *arena.Feed) error {
	for n := f.Due(8); n > 0; n = f.Due(8) {
		for range n {
			part := f.Partition()
			m := append([]byte(nil), f.Next()...)
			for i := part; i < len(b.c); i += b.job.Topology.Partitions {
				if b.sent++; b.sent == b.at {
					b.do(b, b.c[i], m)
					continue
				}
				b.c[i] <- m
				if b.held != nil {
					b.c[i] <- b.held
					b.held = nil
				}
			}
		}
	}
	return nil
}

func (b *broken) Consume(_ context.Context, i int) error {
	s := b.job.Sinks[i]
	for !s.Full() {
		m, ok := <-b.c[i]
		if !ok {
			return nil
		}
		s.See(m)
	}
	return nil
}

func (b *broken) Close() error {
	b.closed.Add(1)
	for _, c := range b.c {
		close(c)
	}
	return nil
}

func openBroken(at int, do func(*broken, chan []byte, []byte)) (*arena.Rival, func() *broken) {
	var last *broken
	return &arena.Rival{Name: "broken", Open: func(j *arena.Job) (arena.Line, error) {
		last = &broken{job: j, at: at, do: do}
		for range j.Sinks {
			last.c = append(last.c, make(chan []byte, 4096))
		}
		return last, nil
	}}, func() *broken { return last }
}

// TestTraffic_CatchesFaults plants one fault of each kind in each topology with one producer.
func TestTraffic_CatchesFaults(t *testing.T) {
	for _, x := range []struct {
		name string
		do   func(b *broken, to chan []byte, m []byte)
		want string
	}{
		{"loses", func(*broken, chan []byte, []byte) {}, "came where"},
		{"repeats", func(_ *broken, to chan []byte, m []byte) { to <- m; to <- m }, "came where"},
		{"reorders", func(b *broken, _ chan []byte, m []byte) { b.held = m }, "came where"},
		{"corrupts", func(_ *broken, to chan []byte, m []byte) { m[len(m)-1] ^= 4; to <- m }, "damaged"},
		{"cuts", func(_ *broken, to chan []byte, m []byte) { to <- m[:len(m)-8] }, "damaged"},
	} {
		for _, top := range []arena.Topology{arena.OneToOne, arena.OneToThree, arena.FourByFour} {
			t.Run(x.name+"/"+top.Name, func(t *testing.T) {
				r, line := openBroken(1234, x.do)
				tr, err := arena.NewTraffic(r, arena.Spec{Topology: top, Size: 64})
				require.NoError(t, err)
				tr.Patience = 100 * time.Millisecond
				_, err = tr.Slice(t.Context(), 300)
				require.NoError(t, err, "nothing is wrong yet")
				_, err = tr.Slice(t.Context(), 3000)
				require.ErrorIs(t, err, arena.ErrFault)
				assert.ErrorContains(t, err, x.want)
				_, again := tr.Slice(t.Context(), 1)
				assert.Equal(t, err, again, "there are no more slices")
				assert.NoError(t, tr.Close())
				assert.Equal(t, int32(1), line().closed.Load())
			})
		}
	}
}

// TestTraffic_CatchesALostEnd loses the last message: nothing comes behind it that would show the gap.
func TestTraffic_CatchesALostEnd(t *testing.T) {
	r, _ := openBroken(1000, func(*broken, chan []byte, []byte) {})
	tr, err := arena.NewTraffic(r, arena.Spec{Topology: arena.OneToOne, Size: 64})
	require.NoError(t, err)
	tr.Patience = 50 * time.Millisecond
	_, err = tr.Slice(t.Context(), 1000)
	require.ErrorIs(t, err, arena.ErrStuck)
	assert.NoError(t, tr.Close())
}

// pusher calls its sink itself, once more than it should at the very end.
type pusher struct {
	arena.Pushes
	job *arena.Job
}

func (p *pusher) Produce(_ context.Context, _ int, f *arena.Feed) error {
	var m []byte
	for n := f.Due(8); n > 0; n = f.Due(8) {
		for range n {
			m = f.Next()
			p.job.Sinks[0].See(m)
		}
	}
	p.job.Sinks[0].See(m)
	return nil
}
func (*pusher) Close() error { return nil }

func TestTraffic_CatchesARepeatedEnd(t *testing.T) {
	r := &arena.Rival{Name: "pusher", Open: func(j *arena.Job) (arena.Line, error) { return &pusher{job: j}, nil }}
	tr, err := arena.NewTraffic(r, arena.Spec{Topology: arena.OneToOne, Size: 64})
	require.NoError(t, err)
	_, err = tr.Slice(t.Context(), 100)
	assert.ErrorIs(t, errors.Join(err, tr.Close()), arena.ErrFault)
}

// TestTraffic_Deaf has a rival that delivers nothing at all, and one whose Produce fails.
func TestTraffic_Deaf(t *testing.T) {
	r := &arena.Rival{Name: "deaf", Open: func(*arena.Job) (arena.Line, error) { return &deaf{}, nil }}
	tr, err := arena.NewTraffic(r, arena.Spec{Topology: arena.ThreeToOne, Size: 64})
	require.NoError(t, err)
	tr.Patience = 20 * time.Millisecond
	_, err = tr.Slice(t.Context(), 10)
	assert.ErrorIs(t, err, arena.ErrStuck)

	oops := errors.New("oops")
	r.Open = func(*arena.Job) (arena.Line, error) { return &deaf{err: oops}, nil }
	tr, err = arena.NewTraffic(r, arena.Spec{Topology: arena.ThreeToOne, Size: 64})
	require.NoError(t, err)
	_, err = tr.Slice(t.Context(), 10)
	assert.ErrorIs(t, err, oops)
	assert.NoError(t, tr.Close())
}

// TestTraffic_Panic has a rival that panics.
func TestTraffic_Panic(t *testing.T) {
	r := &arena.Rival{Name: "deaf", Open: func(*arena.Job) (arena.Line, error) { return &deaf{panics: true}, nil }}
	tr, err := arena.NewTraffic(r, arena.Spec{Topology: arena.OneToOne, Size: 64})
	require.NoError(t, err)
	_, err = tr.Slice(t.Context(), 10)
	assert.ErrorIs(t, err, arena.ErrRival)
	assert.ErrorContains(t, err, "boom")
}

type deaf struct {
	arena.Pushes
	err    error
	panics bool
}

func (d *deaf) Produce(_ context.Context, _ int, f *arena.Feed) error {
	if d.panics {
		panic("boom")
	}
	for n := f.Due(8); n > 0; n = f.Due(8) {
		for range n {
			f.Next()
		}
	}
	return d.err
}
func (*deaf) Close() error { return nil }

func TestTraffic_ContextEnds(t *testing.T) {
	r := &arena.Rival{Name: "deaf", Open: func(*arena.Job) (arena.Line, error) { return &deaf{}, nil }}
	tr, err := arena.NewTraffic(r, arena.Spec{Topology: arena.OneToOne, Size: 64})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = tr.Slice(ctx, 10)
	assert.ErrorIs(t, err, context.Canceled)
}

// TestTraffic_NumbersAreEven checks that all producers and partitions get as many.
func TestTraffic_NumbersAreEven(t *testing.T) {
	for _, top := range []arena.Topology{arena.OneToOne, arena.OneToThree, arena.FourByFour} {
		r, _ := openBroken(-1, nil)
		tr, err := arena.NewTraffic(r, arena.Spec{Topology: top, Size: 16})
		require.NoError(t, err)
		for _, n := range []uint64{1, 2, 999} {
			s, err := tr.Slice(t.Context(), n)
			require.NoError(t, err)
			assert.Zero(t, s.Messages%uint64(top.Partitions))
			assert.Less(t, s.Messages, n+uint64(top.Partitions))
			assert.GreaterOrEqual(t, s.Messages, n)
		}
		require.NoError(t, tr.Close())
	}
}

// TestTraffic_Rate checks that nothing is sent before it is due, and that what is late counts as late.
func TestTraffic_Rate(t *testing.T) {
	stall := 20 * time.Millisecond
	r, _ := openBroken(1001, func(_ *broken, to chan []byte, m []byte) {
		time.Sleep(stall) // the rival stands still; what was due meanwhile is late
		to <- m
	})
	tr, err := arena.NewTraffic(r, arena.Spec{Topology: arena.OneToOne, Size: 64, Rate: 100_000})
	require.NoError(t, err)
	s, err := tr.Slice(t.Context(), 1000)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, s.Ns, int64(9*time.Millisecond))
	assert.Equal(t, uint64(950), s.Latency.Count, "the first twentieth is not timed")
	assert.GreaterOrEqual(t, s.Latency.Max, int64(0))

	s, err = tr.Slice(t.Context(), 1000)
	require.NoError(t, err)
	assert.Equal(t, uint64(950), s.Latency.Count, "each slice counts its own")
	assert.GreaterOrEqual(t, s.Latency.P50, int64(5*time.Millisecond), "half of the messages were due in the first half of the stall")
	assert.Zero(t, s.Latency.Clamped)

	tr.Rated(0)
	s, err = tr.Slice(t.Context(), 1000)
	require.NoError(t, err)
	assert.Zero(t, s.Latency)
	require.NoError(t, tr.Close())
}

// TestTraffic_CostsNoMemory checks that neither making nor checking messages allocates.
func TestTraffic_CostsNoMemory(t *testing.T) {
	r := &arena.Rival{Name: "call", Open: func(j *arena.Job) (arena.Line, error) { return &caller{job: j}, nil }}
	tr, err := arena.NewTraffic(r, arena.Spec{Topology: arena.OneToOne, Size: 1024})
	require.NoError(t, err)
	for _, rate := range []float64{0, 1e6} {
		tr.Rated(rate)
		s, err := tr.Slice(t.Context(), 20_000)
		require.NoError(t, err)
		assert.Less(t, s.Allocs, uint64(200), "of 20,000 messages, and all that is allocated for a slice")
	}
	require.NoError(t, tr.Close())
}

// caller is the least that there can be: a call.
type caller struct {
	arena.Pushes
	job *arena.Job
}

func (c *caller) Produce(_ context.Context, _ int, f *arena.Feed) error {
	s := c.job.Sinks[0]
	for n := f.Due(64); n > 0; n = f.Due(64) {
		for range n {
			s.See(f.Next())
		}
	}
	return nil
}
func (*caller) Close() error { return nil }

func TestRival_Check(t *testing.T) {
	s := arena.Spec{Topology: arena.OneToOne, Size: 64}
	r := &arena.Rival{Name: "x"}
	assert.NoError(t, r.Check(s))
	s.Wait = arena.Spin
	assert.ErrorIs(t, r.Check(s), arena.ErrUnsupported)
	r.Waits = []arena.Wait{arena.Yield, arena.Spin}
	assert.NoError(t, r.Check(s))
	assert.Equal(t, arena.Yield, r.DefaultWait())
	r.Can = func(arena.Spec) error { return errors.New("because") }
	err := r.Check(s)
	assert.ErrorIs(t, err, arena.ErrUnsupported)
	assert.ErrorContains(t, err, "because")
	_, err = arena.NewTraffic(r, s)
	assert.ErrorIs(t, err, arena.ErrUnsupported)
	assert.Equal(t, "1->1 64 B max spin", s.String())
}
