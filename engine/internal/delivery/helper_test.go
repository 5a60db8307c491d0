package delivery_test

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var (
	background = context.Background()
	errOver    = errors.New("over")   // what ends partitions and lanes in these tests
	errPoison  = errors.New("poison") // what handlers fail with
)

// Message and Handler are written often here.
type (
	Message = delivery.Message
	Handler = func(ctx context.Context, m *Message) error
)

// partitionSetup is what a test wants of its partition. The zero value is one without limits.
type partitionSetup struct {
	limits   retention.Limits
	onFull   partition.OnFull
	segments int // records in a segment
	workers  int // 0 means 2
}

// part is a running partition with workers, closed and checked to have ended when the test ends.
type part struct {
	*partition.Partition
	clock   *atomicx.Clock
	pool    *segment.Pool
	workers *dispatch.Pool
}

func newPart(t testing.TB, s partitionSetup) *part {
	t.Helper()
	if s.workers == 0 {
		s.workers = 2
	}
	workers := dispatch.NewPool(s.workers, nil)
	t.Cleanup(func() { workers.Close(); workers.Wait(nil) })
	return newPartOn(t, s, workers)
}

// newPartOn is newPart on the workers of another.
func newPartOn(t testing.TB, s partitionSetup, workers *dispatch.Pool) *part {
	t.Helper()
	clock, pool := atomicx.NewClock(), segment.NewPool(0, 4<<20)
	p := partition.New(partition.Config{
		Limits:         s.limits,
		OnFull:         s.onFull,
		MaxRecordBytes: 1 << 20,
		HandoverSlots:  64,
		Log:            segment.Config{SegmentRecords: s.segments, Pool: pool},
		Clock:          &clock,
		Workers:        workers,
	})
	go p.Run()
	t.Cleanup(func() {
		p.Close(errOver)
		<-p.Done()
		p.Free()
	})
	return &part{p, &clock, pool, workers}
}

// publish publishes n records whose values are their offsets.
func (p *part) publish(t testing.TB, n int) {
	t.Helper()
	var value [8]byte
	for range n {
		_, next := p.Snapshot()
		binary.LittleEndian.PutUint64(value[:], uint64(next))
		off, err := p.Publish(background, &segment.Record{Value: value[:]})
		require.NoError(t, err)
		require.Equal(t, next, off)
	}
}

// ending is what something under test has told of its end.
type ending struct {
	ended chan struct{} // closed by tell
	ends  atomic.Int32  // how often tell was called
	cause error         // why; after ended
}

func newEnding() *ending { return &ending{ended: make(chan struct{})} }

// tell is for OnEnd.
func (e *ending) tell(err error) {
	if e.ends.Add(1) == 1 {
		e.cause = err
		close(e.ended)
	}
}

// once waits for the end, which must be told once.
func (e *ending) once(t testing.TB) {
	t.Helper()
	<-e.ended
	require.Equal(t, int32(1), e.ends.Load(), "OnEnd")
}

// told is what a lane of either kind has told, and its context.
type told struct {
	*ending
	rested atomicx.Event
	ctx    context.Context
	cancel context.CancelFunc
}

// prepare completes the Config of a lane whose tales x is to have.
func (x *told) prepare(p *part, c *delivery.Config) {
	x.ending = newEnding()
	x.ctx, x.cancel = context.WithCancel(background)
	if c.Backoff == nil {
		c.Backoff = []time.Duration{time.Millisecond}
	}
	c.Topic, c.Clock, c.Rested, c.OnEnd = "topic", p.clock, &x.rested, x.tell
}

// lane is a lane under test with what it has told.
type lane struct {
	*delivery.Lane
	told
	part *part
	gate *partition.Gate
}

// newLane returns a lane that has not been started; it is stopped, and checked to have ended, when the test ends. start says
// where it begins; nil means at 0.
func newLane(t testing.TB, p *part, c delivery.Config, start delivery.Start) *lane {
	t.Helper()
	return newLaneOpt(t, p, c, start, dispatch.Options{}, &partition.Gate{Name: "lane", Gating: true})
}

func newLaneOpt(t testing.TB, p *part, c delivery.Config, start delivery.Start, opt dispatch.Options, gate *partition.Gate) *lane {
	t.Helper()
	l := &lane{part: p, gate: gate}
	l.prepare(p, &c)
	if start == nil {
		start = at(0)
	}
	var err error
	l.Lane, err = delivery.New(l.ctx, &c, p.Partition, gate, p.workers, opt, start)
	require.NoError(t, err)
	t.Cleanup(func() {
		l.Stop(errOver)
		l.Start()
		<-l.ended
		l.cancel()
		l.once(t)
	})
	return l
}

// run is newLane with a handler, started.
func run(t testing.TB, p *part, h Handler) *lane {
	t.Helper()
	l := newLane(t, p, each(h), nil)
	l.Start()
	return l
}

// at is the start at an offset.
func at(off uint64) delivery.Start {
	return func(uint64, uint64) (uint64, error) { return off, nil }
}

func latest(_, next uint64) (uint64, error)    { return next, nil }
func earliest(first, _ uint64) (uint64, error) { return first, nil }

// each makes a Config for a handler of single records.
func each(h Handler) delivery.Config { return delivery.Config{Handler: delivery.Handler{One: h}} }

// nothing is a handler that does nothing.
func nothing(context.Context, *Message) error { return nil }

// batches makes a BatchHandler.
func batches(size int, h func(ctx context.Context, ms []Message) error) delivery.Config {
	return delivery.Config{Handler: delivery.Handler{Batch: h}, BatchSize: size}
}

// singlesOr makes a Config for a handler that is given one record at a time, or batches if size is not 0.
func singlesOr(size int, h func(ms []*Message) error) delivery.Config {
	if size == 0 {
		return each(func(_ context.Context, m *Message) error { return h([]*Message{m}) })
	}
	return batches(size, func(_ context.Context, ms []Message) error {
		var all []*Message
		for i := range ms {
			all = append(all, &ms[i])
		}
		return h(all)
	})
}

// book is what handlers have been given, in order.
type book struct {
	mu  sync.Mutex
	all []entry
}

type entry struct {
	off     int64
	attempt int
}

func (b *book) add(m *Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, entry{m.Offset, m.Attempt})
}

func (b *book) entries() []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]entry(nil), b.all...)
}

func (b *book) offsets() (offs []int64) {
	for _, e := range b.entries() {
		offs = append(offs, e.off)
	}
	return offs
}

func (b *book) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.all)
}

// value returns the record that belongs at an offset.
func value(off int64) *segment.Record {
	return &segment.Record{Value: binary.LittleEndian.AppendUint64(nil, uint64(off))}
}

// upTo returns the offsets from from up to but not including to.
func upTo(from, to int64) (offs []int64) {
	for o := from; o < to; o++ {
		offs = append(offs, o)
	}
	return offs
}

// idle reports whether nothing runs on the partition's workers and nothing is queued there.
func (p *part) idle() bool { return p.workers.Running() == 0 && p.workers.Queued() == 0 }

func (p *part) next() int64 {
	_, next := p.Snapshot()
	return next
}

// What tests of several packages share; functions, not variables, so that a closure passed to one is not allocated.

func rounds(n int) int { return testkit.Rounds(n) }

func watchdog(t testing.TB) { testkit.Watchdog(t) }

func await(cond func() bool) { testkit.Await(cond) }

func bubble(t *testing.T, f func(t *testing.T)) { testkit.Bubble(t, f) }

func pass(d time.Duration) { testkit.Pass(d) }

// segmentsAreUsedAgain checks that a partition that is published to for long, with few segments and who runs there, needs
// little new memory.
func segmentsAreUsedAgain(t *testing.T, run func(p *part)) {
	t.Helper()
	watchdog(t)
	const records, bytes = 64, 64 << 10
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 4 * records}, segments: records})
	run(p)
	r := segment.Record{Value: make([]byte, bytes/records)}
	fill := func(segments int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range segments * records {
			_, err := p.Publish(background, &r)
			require.NoError(t, err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	fill(20)
	n := rounds(1000)
	assert.Less(t, fill(n), uint64(n*bytes/4+20*bytes), "new memory")
}

// pinsAreBack checks that the partition, which nobody reads any more, leaves no memory but what can be used again.
func pinsAreBack(t *testing.T, p *part) {
	t.Helper()
	used := p.pool.Used()
	p.Close(errOver)
	<-p.Done()
	p.Free()
	assert.Positive(t, used)
	assert.Equal(t, used, p.pool.Kept(), "all can be used again")
}
