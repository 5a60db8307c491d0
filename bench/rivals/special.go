package rivals

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/rivals/arena"
	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/atomicx"
)

// Measurements of a kind of their own: nothing goes from producers to consumers.
var (
	// Publish is how long one call takes that waits for its offset, on a partition that nobody else uses.
	Publish = arena.Topology{Name: "publish", Producers: 1, Partitions: 1, Copies: 1, Kind: "publish"}
	// Replay is reading what is retained, again and again, and adding up all its words.
	Replay = arena.Topology{Name: "replay", Producers: 1, Partitions: 1, Copies: 1, Kind: "replay"}
	// Retention is appending to a log that has dropped most of what it was ever given.
	Retention = arena.Topology{Name: "retention", Producers: 1, Partitions: 1, Copies: 1, Kind: "retention"}
)

func specials() []*arena.Rival {
	special := func(kind, name, about string, start func(arena.Spec) (loop, error)) *arena.Rival {
		return &arena.Rival{Name: name, About: about, Kind: kind, Start: func(s arena.Spec) (arena.Runner, error) {
			l, err := start(s)
			if err != nil {
				return nil, errors.Join(err, l.close())
			}
			return &loopRunner{loop: l, spec: s}, nil
		}}
	}
	return []*arena.Rival{
		special("publish", "publish/leat", "Publish, which waits for its offset, one publisher, nobody reads.", startPublish),
		special("publish", "publish/pingpong", "A message to another goroutine and back, over channels without a buffer.", startPingPong),
		special("replay", "replay/leat", "A Reader that adds up the words of 64 MiB of retained records, NextRun of up to 256.", startReplay),
		special("replay", "replay/sum", "A loop that adds up the words of as many bytes in one slice.", startSum),
		special("replay", "replay/indexed", "A loop that adds up the words of records that it finds by index entries of 16 bytes.", startIndexed),
		special("retention", "retention/leat-1e8", "An Appender (flush every 256) behind 10^8 records that went through a retention of 64 MiB.", startKept),
		special("retention", "retention/leat-1e6", "The same with the first 10^6 records of a new engine.", startFresh),
	}
}

// loop is something that is done n times.
type loop struct {
	run func(ctx context.Context, n uint64, l *loopRunner) error
	end func() error
}

func (l *loop) close() error {
	if l.end == nil {
		return nil
	}
	return l.end()
}

// loopRunner times a loop as a whole, less what it has set aside, and what single turns of it record.
type loopRunner struct {
	loop
	spec  arena.Spec
	clock *load.Clock
	late  *load.Histogram
	aside int64 // ns of this slice that do not count
	err   error
}

// Rated implements arena.Runner.
func (l *loopRunner) Rated(rate float64) { l.spec.Rate = rate }

// Slice implements arena.Runner.
func (l *loopRunner) Slice(ctx context.Context, n uint64) (s arena.Slice, err error) {
	if l.err != nil {
		return s, l.err
	}
	if l.clock == nil {
		l.clock, l.late = load.NewClock(), load.NewHistogram()
	}
	l.late.Reset()
	l.aside = 0
	m := arena.Measure()
	from := l.clock.Now()
	if l.err = l.run(ctx, n, l); l.err != nil {
		return s, l.err
	}
	s.Ns = l.clock.After() - from - l.aside
	m.Into(&s)
	s.Messages = n
	s.Latency = l.late.Latency()
	return s, nil
}

// Close implements arena.Runner.
func (l *loopRunner) Close() error { return l.close() }

// each calls f n times, at the rate of the spec, and records how long each call took.
func (l *loopRunner) each(n uint64, f func() error) error {
	gap := 0.
	if l.spec.Rate > 0 {
		gap = 1e9 / l.spec.Rate
	}
	start := l.clock.Now()
	for k := range n {
		var turn uint32
		for gap > 0 && l.clock.Now() < start+int64(float64(k)*gap) {
			atomicx.Relax(turn)
			turn++
		}
		from := l.clock.Now()
		if err := f(); err != nil {
			return err
		}
		l.late.Record(l.clock.After() - from)
	}
	return nil
}

// partition returns the only partition of a new engine, which keeps so many bytes; 0 is the default.
func partition(retention int64) (*engine.Engine, *engine.Partition, error) {
	e, err := engine.Open(engine.Config{})
	if err != nil {
		return nil, nil, err
	}
	t, err := e.CreateTopic("rivals", engine.TopicConfig{Retention: engine.Retention{MaxBytes: retention}})
	if err != nil {
		return nil, nil, errors.Join(err, e.Close())
	}
	p, err := t.Partition(0)
	if err != nil {
		return nil, nil, errors.Join(err, e.Close())
	}
	return e, p, nil
}

func startPublish(s arena.Spec) (l loop, err error) {
	e, p, err := partition(0)
	if err != nil {
		return l, err
	}
	m := make([]byte, s.Size)
	l.end = e.Close
	l.run = func(ctx context.Context, n uint64, l *loopRunner) error {
		before := p.Next()
		err := l.each(n, func() error {
			_, err := p.Publish(ctx, engine.Record{Value: m})
			return err
		})
		if got := uint64(p.Next() - before); err == nil && got != n {
			return fmt.Errorf("%w: %d of %d records are there", arena.ErrFault, got, n)
		}
		return err
	}
	return l, nil
}

func startPingPong(arena.Spec) (l loop, err error) {
	ping, pong := make(chan uint64), make(chan uint64)
	go func() {
		for v := range ping {
			pong <- v
		}
	}()
	l.end = func() error { close(ping); return nil }
	l.run = func(_ context.Context, n uint64, l *loopRunner) error {
		var k uint64
		return l.each(n, func() error {
			k++
			ping <- k
			if v := <-pong; v != k {
				return fmt.Errorf("%w: %d came back for %d", arena.ErrFault, v, k)
			}
			return nil
		})
	}
	return l, nil
}

// replayBytes is how much is read again and again: more than the caches hold.
const replayBytes = 64 << 20

// sumWords adds up the words of p, whose length is a multiple of 16.
func sumWords(p []byte) uint64 {
	var a, b uint64
	for len(p) >= 32 {
		a += binary.LittleEndian.Uint64(p) + binary.LittleEndian.Uint64(p[8:])
		b += binary.LittleEndian.Uint64(p[16:]) + binary.LittleEndian.Uint64(p[24:])
		p = p[32:]
	}
	for ; len(p) >= 8; p = p[8:] {
		a += binary.LittleEndian.Uint64(p)
	}
	return a + b
}

// replayed makes record k of a replay.
func replayed(p []byte, k uint64) {
	for i := 0; i+8 <= len(p); i += 8 {
		binary.LittleEndian.PutUint64(p[i:], k*0x9E3779B97F4A7C15+uint64(i))
	}
}

func startReplay(s arena.Spec) (l loop, err error) {
	e, p, err := partition(engine.Unlimited)
	if err != nil {
		return l, err
	}
	l.end = e.Close
	ctx := context.Background()
	x, err := p.Appender(ctx)
	if err != nil {
		return l, err
	}
	m := make([]byte, s.Size)
	count := uint64(replayBytes / s.Size)
	var want uint64
	for k := range count {
		replayed(m, k)
		want += sumWords(m)
		if _, err := x.Append(ctx, engine.Record{Value: m}); err != nil {
			return l, err
		}
	}
	if err := x.Close(); err != nil {
		return l, err
	}
	r, err := p.Reader(engine.ReaderConfig{Start: engine.Earliest()})
	if err != nil {
		return l, err
	}
	at, sum := uint64(0), uint64(0) // of the present pass
	l.run = func(ctx context.Context, n uint64, _ *loopRunner) error {
		for n > 0 {
			run, k, err := r.NextRun(ctx, int(min(n, 256)))
			if err != nil {
				return err
			}
			sum += sumWords(run)
			n -= uint64(k)
			if at += uint64(k); at == count {
				if sum != want {
					return fmt.Errorf("%w: the sum of a replay is wrong", arena.ErrFault)
				}
				at, sum = 0, 0
				if err := r.Seek(engine.Earliest()); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return l, nil
}

func startSum(s arena.Spec) (l loop, err error) {
	count := uint64(replayBytes / s.Size)
	memory := make([]byte, count*uint64(s.Size))
	var want uint64
	for k := range count {
		m := memory[k*uint64(s.Size) : (k+1)*uint64(s.Size)]
		replayed(m, k)
		want += sumWords(m)
	}
	at, sum := uint64(0), uint64(0)
	l.run = func(_ context.Context, n uint64, _ *loopRunner) error {
		for n > 0 {
			k := min(n, count-at)
			sum += sumWords(memory[at*uint64(s.Size) : (at+k)*uint64(s.Size)])
			n -= k
			if at += k; at == count {
				if sum != want {
					return fmt.Errorf("%w: the sum of the bytes is wrong", arena.ErrFault)
				}
				at, sum = 0, 0
			}
		}
		return nil
	}
	return l, nil
}

const (
	retained    = 64 << 20
	longAgo     = 100_000_000 // records that have gone through
	freshMost   = 1_000_000   // records of a new engine
	appendFlush = 256
)

// appendSome appends n records.
func appendSome(ctx context.Context, x *engine.Appender, m []byte, n uint64) error {
	for k := range n {
		if _, err := x.Append(ctx, engine.Record{Value: m}); err != nil {
			return err
		}
		if k%appendFlush == appendFlush-1 {
			if err := x.Flush(); err != nil {
				return err
			}
		}
	}
	return x.Flush()
}

// keptRecords is longAgo, but in tests.
var keptRecords uint64 = longAgo

func startKept(s arena.Spec) (l loop, err error) {
	e, p, err := partition(retained)
	if err != nil {
		return l, err
	}
	l.end = e.Close
	ctx, m := context.Background(), make([]byte, s.Size)
	x, err := p.Appender(ctx)
	if err == nil {
		err = appendSome(ctx, x, m, keptRecords)
	}
	l.run = func(ctx context.Context, n uint64, _ *loopRunner) error { return appendSome(ctx, x, m, n) }
	return l, err
}

func startFresh(s arena.Spec) (l loop, err error) {
	m := make([]byte, s.Size)
	l.run = func(ctx context.Context, n uint64, r *loopRunner) error {
		for n > 0 {
			k := min(n, freshMost)
			from := time.Now()
			e, p, err := partition(retained)
			if err != nil {
				return err
			}
			x, err := p.Appender(ctx)
			r.aside += int64(time.Since(from))
			if err == nil {
				err = appendSome(ctx, x, m, k)
			}
			from = time.Now()
			if err := errors.Join(err, e.Close()); err != nil {
				return err
			}
			r.aside += int64(time.Since(from))
			n -= k
		}
		return nil
	}
	return l, nil
}
