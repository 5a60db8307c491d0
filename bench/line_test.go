package bench_test

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// size is the size of a message in these benchmarks.
const size = 64

// fill makes p message number seq of a producer.
func fill(p []byte, producer, seq uint64) {
	binary.LittleEndian.PutUint64(p, seq)
	binary.LittleEndian.PutUint64(p[8:], producer)
}

// checker sees what one consumer gets: each producer's messages must come once each and in order.
type checker struct {
	next  []uint64 // for each producer
	wrong error    // the first thing that was
}

func newChecker(producers int) *checker { return &checker{next: make([]uint64, producers)} }

func (c *checker) see(p []byte) {
	if len(p) != size {
		c.fail("%d bytes", len(p))
		return
	}
	producer, seq := binary.LittleEndian.Uint64(p[8:]), binary.LittleEndian.Uint64(p)
	if producer >= uint64(len(c.next)) || seq != c.next[producer] {
		c.fail("producer %d: number %d", producer, seq)
		return
	}
	c.next[producer]++
}

//go:noinline
func (c *checker) fail(format string, args ...any) {
	if c.wrong == nil {
		c.wrong = fmt.Errorf("after %v messages: "+format, append([]any{c.next}, args...)...)
	}
}

// seen returns how many messages were right.
func (c *checker) seen() (n uint64) {
	for _, x := range c.next {
		n += x
	}
	return n
}

// flow says who sends to whom.
type flow struct {
	producers int
	consumers int
	push      bool // the line calls the consumers; otherwise they pull
}

// line is one way to move messages, set up for a flow. Its methods are whole loops, so that nothing stands between the
// thing that is measured and its user.
type line interface {
	// produce publishes messages from, from+1, ... of a producer, n of them.
	produce(producer int, from, n uint64) error
	// consume lets a consumer see n messages, and returns when it has.
	consume(consumer int, c *checker, n uint64) error
	close() error
}

// impl is something that makes lines.
type impl struct {
	name string
	mode string // how it publishes, where there are several ways
	open func(tb testing.TB, f flow) line
	only func(f flow) bool // which flows it can do; nil: all
}

func (i impl) String() string {
	if i.mode == "" {
		return "impl=" + i.name
	}
	return "impl=" + i.name + "/mode=" + i.mode
}

func (i impl) can(f flow) bool { return i.only == nil || i.only(f) }

// traffic is a line with its flow and what each side has done so far.
type traffic struct {
	tb       testing.TB
	flow     flow
	line     line
	checkers []*checker
	sent     []uint64
}

// warm is how many messages pass through a line before it is measured, so that its memory has been used before.
const warm = 1_200_000

// start opens a line and passes that many messages through.
func start(tb testing.TB, i impl, f flow, warm uint64) *traffic {
	t := &traffic{tb: tb, flow: f, line: i.open(tb, f), sent: make([]uint64, f.producers)}
	for range f.consumers {
		t.checkers = append(t.checkers, newChecker(f.producers))
	}
	t.pass(warm)
	return t
}

// pass moves n messages, from the first publish until every consumer has all of them, and returns how long that took.
func (t *traffic) pass(n uint64) time.Duration {
	var producers, consumers sync.WaitGroup
	errs := make([]error, t.flow.producers+t.flow.consumers)
	gate := make(chan struct{})
	for c, k := range t.checkers {
		consumers.Go(func() {
			<-gate
			errs[t.flow.producers+c] = t.line.consume(c, k, n)
		})
	}
	for p := range t.flow.producers {
		share := n / uint64(t.flow.producers)
		if uint64(p) < n%uint64(t.flow.producers) {
			share++
		}
		from := t.sent[p]
		t.sent[p] += share
		producers.Go(func() {
			<-gate
			errs[p] = t.line.produce(p, from, share)
		})
	}
	begin := time.Now()
	close(gate)
	consumers.Wait()
	took := time.Since(begin)
	producers.Wait()
	for _, err := range errs {
		require.NoError(t.tb, err)
	}
	var total uint64
	for _, s := range t.sent {
		total += s
	}
	for _, k := range t.checkers {
		require.NoError(t.tb, k.wrong)
		require.Equal(t.tb, total, k.seen())
	}
	return took
}

func (t *traffic) close() { require.NoError(t.tb, t.line.close()) }

// measure runs a flow as a benchmark.
func measure(b *testing.B, i impl, f flow) {
	t := start(b, i, f, warm)
	defer t.close()
	b.ReportAllocs()
	b.SetBytes(size)
	b.ResetTimer()
	took := t.pass(uint64(b.N))
	b.StopTimer()
	b.ReportMetric(float64(b.N)/took.Seconds(), "msgs/s")
}

// flows runs a benchmark for each impl that can do it.
func flows(b *testing.B, f flow) {
	for _, i := range impls() {
		if i.can(f) {
			b.Run(i.String(), func(b *testing.B) { measure(b, i, f) })
		}
	}
}
