package partition_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/cursor"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var (
	background = context.Background()
	errOver    = errors.New("over") // what ends the partitions of these tests
)

// setup is what a test wants of its partition. The zero value is a partition without limits.
type setup struct {
	limits    retention.Limits
	onFull    partition.OnFull
	slots     int   // 0 means 64
	maxRecord int64 // 0 means 1 MiB
	segBytes  int
	segments  int // records in a segment
	memory    int64
	first     uint64
	pool      *segment.Pool
	workers   *dispatch.Pool
	panicked  func(any, []byte)
	store     *storage.Log
	loaded    *segment.Log
}

// part is a running partition that is closed, and checked to have ended, when the test ends.
type part struct {
	*partition.Partition
	pool    *segment.Pool
	workers *dispatch.Pool
}

func start(t testing.TB, s setup) part {
	t.Helper()
	if s.workers == nil {
		s.workers = newWorkers(t, 2)
	}
	p, stop := launch(s)
	t.Cleanup(stop)
	return p
}

// launch is start for who calls stop himself, and has workers.
func launch(s setup) (p part, stop func()) {
	p = prepare(s)
	go p.Run()
	return p, func() {
		p.Close(errOver)
		<-p.Done()
		p.Free()
		if s.store != nil {
			_ = s.store.Close()
		}
	}
}

// prepare returns a partition whose goroutine does not run yet.
func prepare(s setup) part {
	if s.slots == 0 {
		s.slots = 64
	}
	if s.maxRecord == 0 {
		s.maxRecord = 1 << 20
	}
	if s.pool == nil {
		s.pool = segment.NewPool(s.memory, 1<<20)
	}
	clock := atomicx.NewClock()
	run := partition.New(partition.Config{
		Index:          7,
		Limits:         s.limits,
		OnFull:         s.onFull,
		MaxRecordBytes: s.maxRecord,
		HandoverSlots:  s.slots,
		Log:            segment.Config{SegmentBytes: s.segBytes, SegmentRecords: s.segments, First: s.first, Partition: 7, Pool: s.pool},
		Clock:          &clock,
		Workers:        s.workers,
		Panicked:       s.panicked,
		Store:          s.store,
		Loaded:         s.loaded,
	})
	return part{run, s.pool, s.workers}
}

func newWorkers(t testing.TB, n int) *dispatch.Pool {
	t.Helper()
	w := dispatch.NewPool(n, nil)
	t.Cleanup(func() { w.Close(); w.Wait(nil) })
	return w
}

// value returns a record with that value.
func value(v string) *segment.Record { return &segment.Record{Value: []byte(v)} }

// publish publishes n records whose values are their offsets.
func publish(t testing.TB, p part, n int) {
	t.Helper()
	for range n {
		_, next := p.Snapshot()
		off, err := p.Publish(background, value(fmt.Sprint(next)))
		require.NoError(t, err)
		require.Equal(t, next, off)
	}
}

// values returns all values that are there.
func values(t testing.TB, p part) (all []string) {
	t.Helper()
	r := p.Log().NewReader()
	defer r.Close()
	var rec segment.Record
	for r.Refill() == segment.Ready {
		for r.Next(&rec) {
			all = append(all, string(rec.Value))
		}
	}
	return all
}

// A signed record says who published it as his how many-th, and proves it, whatever its length. Whoever reads it can check
// it alone.
func signed(buf []byte, producer, n int) *segment.Record {
	size := 24 + (producer*31+n*17)%200
	if len(buf) < size {
		buf = make([]byte, 256)
	}
	buf = buf[:size]
	binary.LittleEndian.PutUint64(buf, uint64(producer))
	binary.LittleEndian.PutUint64(buf[8:], uint64(n))
	for i := 24; i < size; i++ {
		buf[i] = byte(n + i)
	}
	binary.LittleEndian.PutUint64(buf[16:], signature(buf))
	return &segment.Record{Value: buf}
}

func signature(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b[:16])
	h.Write(b[24:])
	return h.Sum64()
}

// verify returns who published a signed record and as his how many-th.
func verify(t testing.TB, rec *segment.Record) (producer, n int) {
	b := rec.Value
	if len(b) < 24 || binary.LittleEndian.Uint64(b[16:]) != signature(b) {
		t.Errorf("offset %d: bad signature on %d bytes", rec.Offset, len(b))
		return 0, 0
	}
	return int(binary.LittleEndian.Uint64(b)), int(binary.LittleEndian.Uint64(b[8:]))
}

func earliest(first, _ uint64) (uint64, error) { return first, nil }
func latest(_, next uint64) (uint64, error)    { return next, nil }

// gate adds a gate that holds everything back from first on.
func gate(t testing.TB, p part) *partition.Gate {
	t.Helper()
	g := &partition.Gate{Name: "gate", Gating: true}
	_, err := p.AddGate(g, earliest)
	require.NoError(t, err)
	t.Cleanup(func() { p.RemoveGate(g) })
	return g
}

func reader(t testing.TB, p part, g *partition.Gate, from func(first, next uint64) (uint64, error)) *partition.Reader {
	t.Helper()
	r, err := p.NewReader(g, cursor.WaitPark, from)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

func waiter(wake func()) *atomicx.Waiter { return atomicx.NewCallWaiter(wake) }

// What tests of several packages share; functions, not variables, so that a closure passed to one is not allocated.

func rounds(n int) int { return testkit.Rounds(n) }

func watchdog(t testing.TB) { testkit.Watchdog(t) }

func await(cond func() bool) { testkit.Await(cond) }
