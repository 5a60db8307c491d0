package load

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/leatlog/leat/bench/load/stream"
	"github.com/leatlog/leat/internal/atomicx"
)

// producer is one goroutine that publishes.
type producer struct {
	_ atomicx.Pad
	// sent is how many messages have been published. Written by the producer with a release store, read by the collector,
	// publishes nothing else.
	sent atomicx.Uint64
	// blocked is for how many nanoseconds calls took that took blockedFrom or more. Written by the producer with a release store,
	// read by the collector, publishes nothing else.
	blocked atomicx.Uint64
	_       atomicx.Pad

	out     Producer
	keyed   KeyProducer // out, if that takes keys, or nil
	msg     *message
	sizes   *stream.SizeStream // nil if all messages have one size
	keys    stream.Keys
	key     *stream.KeyStream // nil without keys
	keyBuf  []byte
	owns    []int    // the partitions to use in turn
	turn    int      // the place in owns of the next message
	seqs    []uint64 // for each partition, the number of the next message; the collector reads them after the end
	total   uint64
	quota   int64
	times   *stream.Times // nil without a rate
	even    schedule      // what times has, if messages come evenly; its gap is 0 if not
	rate    float64       // messages a second of all producers, in the mean of the run
	through int64         // when a run of so many messages should be through, on average
	of      int           // how many producers there are
	clock   *Clock
	every   int // one message in so many is measured, without a rate
	phases  phases
	halt    *atomicx.Bool // of the run: stop as soon as possible
	room    func() bool   // nil, or whether the backlog allows another message

	publish *recorder
	delay   *recorder
	waited  uint64 // what blocked was last set to

	// What came of it, for the collector after the end.
	due  int64 // messages that the schedule asked for
	late int64 // messages sent after the run should have ended, or should have been through
	err  error
	_    atomicx.Pad
}

// phases are the moments of a run, on its clock.
type phases struct {
	start    int64
	measured int64 // what is sent, or arrives, from here on is measured
	end      int64 // messages are scheduled until here
	giveUp   int64 // messages of the schedule that are still unsent here stay unsent
}

func newProducer(r *run, i int, out Producer) (*producer, error) {
	s := &r.s
	p := &producer{
		out: out, msg: newMessage(s, i), seqs: make([]uint64, s.Partitions), quota: math.MaxInt64,
		clock: r.clock, every: s.SampleEvery, halt: &r.halt,
	}
	if r.g != nil && s.Group.Backlog > 0 && s.Rate == 0 {
		p.room = r.g.room
	}
	if s.Messages > 0 {
		p.quota = s.Messages / int64(s.Producers)
		if int64(i) < s.Messages%int64(s.Producers) {
			p.quota++
		}
	}
	if o, ok := out.(Owner); ok {
		p.owns = slices.Clone(o.Owns())
	} else {
		for j := range s.Partitions {
			p.owns = append(p.owns, j)
		}
	}
	for _, j := range p.owns {
		if j < 0 || j >= s.Partitions {
			return nil, errOwns(i, j)
		}
	}
	if len(p.owns) == 0 {
		return nil, errOwns(i, -1)
	}
	if s.Sizes.Least() != s.Sizes.Most() {
		p.sizes = s.Sizes.Stream(p.part(s, i))
	}
	if !s.Keys.None() {
		p.keys, p.key = s.Keys, s.Keys.Stream(p.part(s, i))
		p.keyed, _ = out.(KeyProducer)
	}
	p.turn = int((s.Seed + uint64(i)) % uint64(len(p.owns)))
	return p, nil
}

func (*producer) part(s *Scenario, i int) stream.Part {
	return stream.Part{Seed: s.Seed, Producer: i, Of: s.Producers}
}

// launch says when to publish.
func (p *producer) launch(s *Scenario, i int, ph phases) {
	p.phases = ph
	if s.Rate == 0 {
		return
	}
	p.times = s.Arrival.Times(p.part(s, i), s.Rate)
	p.rate, p.of = s.Rate*s.Arrival.Mean(s.Warmup+s.Duration), s.Producers
	p.through = ph.end
	if took := float64(p.quota) * float64(p.of) / p.rate * 1e9; took < float64(ph.end-ph.start) {
		p.through = ph.start + int64(took)
	}
	if s.Arrival == (stream.Arrival{}) {
		p.even = schedule{start: ph.start, gap: 1e9 / s.Rate, producer: i, of: s.Producers}
	}
}

// behindLeast is how far behind its own time a message must be that counts as late because the run should have been through: so far any
// producer may be for a moment.
const behindLeast = int64(10 * time.Millisecond)

// sayMost is how long so many messages must at least take, so that being behind by behindLeast is a twentieth of it.
const sayMost = 20 * time.Duration(behindLeast)

// RateMost is the highest rate at which a run of so many Messages shows whether the rate is held: if they are through sooner, after the
// warm-up, producers that are behind for a moment cannot be told from those that cannot do more. Without Messages it is infinite.
func (s Scenario) RateMost() float64 {
	if s.Messages == 0 {
		return math.Inf(1)
	}
	return float64(s.Messages) / (s.Warmup + min(sayMost, s.Duration)).Seconds()
}

// tooSoon says that a run of so many messages was through too soon to say whether its rate was held, or is empty.
func (s *Scenario) tooSoon() string {
	if s.Messages == 0 || s.Rate == 0 {
		return ""
	}
	took := float64(s.Messages) / s.Rate
	if took >= min(sayMost, s.Warmup+s.Duration).Seconds() {
		return ""
	}
	return fmt.Sprintf("all messages were due within %.3g s, which is too soon to say whether the rate was held", took)
}

// blockedFrom is from how long on a call counts as one that had to wait, in nanoseconds.
const blockedFrom = 10_000

// took notes how long a call took that stands for so many.
func (p *producer) took(ns int64, calls int) {
	p.publish.record(ns)
	if ns >= blockedFrom {
		p.waited += uint64(ns) * uint64(calls)
		atomicx.StoreRelease(&p.blocked, p.waited)
	}
}

// run publishes until the end.
func (p *producer) run(ctx context.Context, rate bool) {
	if rate {
		p.paced(ctx)
	} else {
		p.saturating(ctx)
	}
	if p.err == nil {
		p.err = p.out.Flush(ctx)
	}
}

// send publishes one message and reports whether that worked.
func (p *producer) send(ctx context.Context, stamp int64) bool {
	if p.key != nil {
		return p.sendKey(ctx, stamp)
	}
	part := p.owns[p.turn]
	if p.turn++; p.turn == len(p.owns) {
		p.turn = 0
	}
	return p.sent1(part, p.out.Publish(ctx, part, p.make(part, stamp)))
}

// sendKey is send for messages with keys.
func (p *producer) sendKey(ctx context.Context, stamp int64) bool {
	p.keyBuf = p.keys.Append(p.keyBuf[:0], p.key.Next())
	part := p.owns[keyHash(p.keyBuf)%uint64(len(p.owns))]
	payload := p.make(part, stamp)
	if p.keyed != nil {
		return p.sent1(part, p.keyed.PublishKey(ctx, part, p.keyBuf, payload))
	}
	return p.sent1(part, p.out.Publish(ctx, part, payload))
}

// keyHash is FNV-1a, mixed at the end, since its low bits alone are poor.
func keyHash(key []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range key {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h ^= h >> 32
	h *= 0x9E3779B97F4A7C15
	return h >> 32
}

// make makes the next message to a partition.
func (p *producer) make(part int, stamp int64) []byte {
	if p.sizes != nil {
		return p.msg.setSize(p.sizes.Next(), part, p.seqs[part], stamp)
	}
	return p.msg.set(part, p.seqs[part], stamp)
}

// sent1 counts one message, or notes why it could not be published.
func (p *producer) sent1(part int, err error) bool {
	if err != nil {
		p.err = err
		return false
	}
	p.seqs[part]++
	p.total++
	atomicx.StoreRelease(&p.sent, p.total)
	return true
}

// saturating publishes as fast as it can. It looks at the clock only for the messages that are measured.
func (p *producer) saturating(ctx context.Context) {
	p.clock.until(p.phases.start, p.halt)
	left := 1
	for n := int64(0); n < p.quota && !p.halt.Load(); n++ {
		if p.room != nil && !p.wait(ctx) {
			return
		}
		if left--; left > 0 {
			if !p.send(ctx, 0) {
				return
			}
			continue
		}
		left = p.every
		from := p.clock.Now()
		if !p.send(ctx, from) {
			return
		}
		if from >= p.phases.measured {
			p.took(p.clock.After()-from, p.every)
		}
	}
}

// wait waits until the backlog allows another message, and reports whether there is to be one.
func (p *producer) wait(ctx context.Context) bool {
	for !p.room() {
		if p.err = p.out.Flush(ctx); p.err != nil || p.halt.Load() {
			return false
		}
		time.Sleep(50 * time.Microsecond)
	}
	return true
}

// paced publishes each message at its scheduled time, or, when that has passed, at once. Times count from the schedule.
func (p *producer) paced(ctx context.Context) {
	now := p.clock.Now()
	for k := int64(0); k < p.quota; k++ {
		t := p.phases.start + p.times.Peek()
		if t >= p.phases.end {
			return
		}
		p.due = k + 1
		if now < t {
			if err := p.out.Flush(ctx); err != nil {
				p.err = err
				return
			}
			// A run that is interrupted while this producer waits for its next message has missed none, however late the wait ends.
			if now = p.clock.Now(); now < t {
				now = p.clock.until(t, p.halt)
				if p.halt.Load() {
					p.due = k
					return
				}
			}
		}
		if p.halt.Load() {
			p.due = k + p.left(k, now)
			return
		}
		if now >= p.phases.giveUp {
			p.due = k + p.left(k, p.phases.end)
			return
		}
		p.times.Next()
		if !p.send(ctx, t) {
			return
		}
		after := p.clock.After()
		if now >= p.phases.measured {
			p.delay.record(now - t)
			p.took(after-now, 1)
		}
		if now >= p.phases.end || now >= p.through && now-t > behindLeast {
			p.late++
		}
		now = after
	}
}

// countMost is how many messages are counted one by one that were not sent. More are estimated.
const countMost = 10_000_000

// left returns how many messages from the k-th on should have been sent before time t.
func (p *producer) left(k, t int64) int64 {
	t = min(t, p.phases.end)
	var n int64
	switch at := p.phases.start + p.times.Peek(); {
	case at >= t:
	case p.even.gap > 0:
		n = p.even.before(t) - k
	default:
		n = int64(float64(t-at) / 1e9 * p.rate / float64(p.of))
		if n <= countMost {
			n = p.times.Before(t - p.phases.start)
		}
	}
	return min(n, p.quota-k)
}
