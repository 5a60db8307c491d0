package load

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/leatlog/leat/internal/atomicx"
)

// producer is one goroutine that publishes.
type producer struct {
	_ atomicx.Pad
	// sent is how many messages have been published. Written by the producer with a release store, read by the collector,
	// publishes nothing else.
	sent atomicx.Uint64
	_    atomicx.Pad

	out    Producer
	msg    *message
	owns   []int    // the partitions to use in turn
	turn   int      // the place in owns of the next message
	seqs   []uint64 // for each partition, the number of the next message; the collector reads them after the end
	total  uint64
	quota  int64
	sched  schedule
	clock  *Clock
	every  int // one message in so many is measured, without a rate
	phases phases
	halt   *atomicx.Bool // of the run: stop as soon as possible
	room   func() bool   // nil, or whether the backlog allows another message

	publish *recorder
	delay   *recorder

	// What came of it, for the collector after the end.
	due  int64 // messages that the schedule asked for
	late int64 // messages sent after the run should have ended
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
		publish: newRecorder(&r.turn, s.Live != nil),
		delay:   newRecorder(&r.turn, s.Live != nil),
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
	p.turn = int((s.Seed + uint64(i)) % uint64(len(p.owns)))
	return p, nil
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
	part := p.owns[p.turn]
	seq := &p.seqs[part]
	if err := p.out.Publish(ctx, part, p.msg.set(part, *seq, stamp)); err != nil {
		p.err = err
		return false
	}
	*seq++
	if p.turn++; p.turn == len(p.owns) {
		p.turn = 0
	}
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
			p.publish.record(p.clock.After() - from)
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
	p.due = min(p.quota, p.sched.before(p.phases.end))
	now := p.clock.Now()
	for k := int64(0); k < p.due; k++ {
		t := p.sched.at(k)
		if now < t {
			if err := p.out.Flush(ctx); err != nil {
				p.err = err
				return
			}
			now = p.clock.until(t, p.halt)
		}
		if p.halt.Load() {
			p.due = min(p.due, p.sched.before(now))
			return
		}
		if now >= p.phases.giveUp {
			return
		}
		if !p.send(ctx, t) {
			return
		}
		after := p.clock.After()
		if now >= p.phases.measured {
			p.delay.record(now - t)
			p.publish.record(after - now)
		}
		if now >= p.phases.end {
			p.late++
		}
		now = after
	}
}
