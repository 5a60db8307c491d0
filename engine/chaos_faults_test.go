package engine_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/check"
)

// fault is something that a run lets happen.
type fault uint8

const (
	faultJoin fault = iota
	faultLeave
	faultLeaveInside
	faultEvict
	faultPutOut
	faultReplaced
	faultLost
	faultSeek
	faultMemberSeek
	faultReset
	faultTruncate
	faultGap
	faultGrow
	faultDelete
	faultDrain
	faultPause
	faultMemberPause
	faultSubscribe
	faultUnsubscribe
	faultError
	faultPoison
	faultPanic
	faultGoexit
	faultSlow
	faultHang
	faultCallbackSlow
	faultForward
	faultAck
	faultAckTwice
	faultAckLate
	faultAckThrough
	faultNack
	faultReject
	faultExtend
	faultForget
	faultFenced
	faultCommit
	faultDropped
	faultBuried
	faultUnburied
	faultCancel
	faultFull
	faultAppender
	faultCollect
	numFaults
)

var faultNames = [numFaults]string{
	"join", "leave", "leave from its handler", "evict", "put out", "replaced", "lost", "seek", "seek by a member", "reset",
	"truncate", "gap", "grow", "delete a topic", "drain early", "pause", "pause a member", "subscribe", "unsubscribe",
	"handler error", "poison", "handler panic", "handler exit", "handler slow", "handler hangs", "callback slow", "forward", "ack", "ack twice",
	"ack late", "ack through", "nack", "reject", "extend", "forget to ack", "fenced", "commit", "dropped", "dead letter",
	"dead letter topic full", "cancel", "full", "appender", "collect garbage",
}

func (f fault) String() string { return faultNames[f] }

// strikes counts how often each fault struck.
type strikes struct {
	// n is added to by whoever lets something happen, and read in the end. It publishes nothing.
	n [numFaults]atomic.Int64
}

func (x *chaosRun) strike(f fault) { x.struck.n[f].Add(1) }

func (s *strikes) add(more *strikes) {
	for f := range s.n {
		s.n[f].Add(more.n[f].Load())
	}
}

// missing reports whether a fault has never struck.
func (s *strikes) missing() bool {
	for f := range s.n {
		if s.n[f].Load() == 0 {
			return true
		}
	}
	return false
}

// String returns the counts in one line.
func (s *strikes) String() string {
	var b strings.Builder
	for f := range numFaults {
		fmt.Fprintf(&b, "%v %d; ", f, s.n[f].Load())
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// dice decides what happens to one delivery: always the same for the same seed, consumer, record and attempt, whoever gets
// it and when, and without a lock that all handlers would meet at.
type dice uint64

func newDice(from ...uint64) (d dice) {
	for _, n := range from {
		d = dice(uint64(d)*0x9e3779b97f4a7c15 + n)
		d.next()
	}
	return d
}

// next is one step of splitmix64.
func (d *dice) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// roll returns a number from 0 to n-1.
func (d *dice) roll(n int) int { return int(d.next() % uint64(n)) }

// pause waits for up to most.
func (d *dice) pause(most time.Duration) { time.Sleep(time.Duration(d.roll(int(most)))) }

// trouble makes trouble until it is told to stop, or the engine is closed.
func (x *chaosRun) trouble(rng *rand.Rand, stop <-chan struct{}) {
	deleting := rng.IntN(40)
	for turn := 0; ; turn++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(rng.IntN(800)) * time.Microsecond):
		}
		if turn == deleting && len(x.topics) == 3 && !x.topics[2].deleted.Swap(true) {
			x.delete(x.topics[2])
		}
		g := x.groups[rng.IntN(len(x.groups))]
		s := x.subs[rng.IntN(len(x.subs))]
		ct := x.topics[rng.IntN(len(x.topics))]
		switch rng.IntN(19) {
		case 0, 1, 2, 3:
			g.join(rng, false)
		case 4, 5:
			g.leave(rng)
		case 6:
			g.evict(rng)
		case 7:
			s.seek(rng)
		case 8:
			g.seek(rng)
		case 9:
			g.reset(rng)
		case 10:
			x.truncate(rng, ct)
		case 11:
			x.grow(rng, ct)
		case 12:
			s.pause(rng)
		case 13:
			g.pause(rng)
		case 14:
			x.comeAndGo(rng, ct)
		case 15:
			x.look(rng, ct)
		case 16:
			if rng.IntN(2) == 0 {
				x.strike(faultPause)
				_ = x.graves.Pause() // until the dead-letter topic is full
				time.AfterFunc(time.Duration(5+rng.IntN(20))*time.Millisecond, func() { _ = x.graves.Resume() })
			}
		case 17:
			if rng.IntN(8) == 0 {
				x.strike(faultCollect)
				runtime.GC()
			}
		case 18:
			_ = x.e.Stats()
			_, _ = x.e.DescribeGroup(g.Name())
		}
		if at, err := x.graves.Position(0); err == nil && part(x.t, x.dead, 0).Next()-at >= x.dead.Config().Retention.MaxRecords {
			x.strike(faultUnburied)
		}
	}
}

// delete deletes a topic. Its members leave one after the other, so in a shared group what one had to give back may come to
// another one: for the checker everything is set anew then.
func (x *chaosRun) delete(ct *chaosTopic) {
	x.strike(faultDelete)
	var open []check.Open
	for _, g := range x.groups {
		for i := 0; i < chaosPartitions && g.reads(ct) && g.Config().Kind == engine.Shared; i++ {
			open = append(open, x.control.Seek(g.consumer, ct.part(x, i), -1))
		}
	}
	_ = x.e.DeleteTopic(ct.Name())
	for _, o := range open {
		o.Unknown()
	}
}

func (x *chaosRun) truncate(rng *rand.Rand, ct *chaosTopic) {
	p, err := ct.Partition(rng.IntN(ct.Partitions()))
	if err != nil || !ct.trims {
		return
	}
	first, next := p.First(), p.Next()
	if next <= first {
		return
	}
	x.strike(faultTruncate)
	_ = p.TruncateBefore(soonCancelled(), first+rng.Int64N(next-first))
}

func (x *chaosRun) grow(rng *rand.Rand, ct *chaosTopic) {
	if n := ct.Partitions(); n < chaosPartitions && rng.IntN(2) == 0 {
		ct.part(x, n)
		if ct.SetPartitions(n+1) == nil {
			x.strike(faultGrow)
		}
	}
}

// low reads where a partition begins. Of a topic that is being deleted that says nothing.
func (x *chaosRun) low(ct *chaosTopic, cp check.Partition, p *engine.Partition) {
	reading := x.control.Low(cp)
	if first := p.First(); !ct.deleted.Load() {
		reading.Is(first)
	}
}

// look reads numbers that the checker compares with what happens.
func (x *chaosRun) look(rng *rand.Rand, ct *chaosTopic) {
	i := rng.IntN(ct.Partitions())
	p, err := ct.Partition(i)
	if err != nil {
		return
	}
	cp := ct.part(x, i)
	x.low(ct, cp, p)
	for _, s := range x.subs {
		if s.topic == ct && !s.over() {
			c := x.control.Committed(s.consumer, cp)
			if at, err := s.sub.Position(i); err == nil {
				c.Is(at)
			}
		}
	}
	for _, g := range x.groups {
		if g.reads(ct) {
			c := x.control.Committed(g.consumer, cp)
			if at, err := g.Committed(ct.Name(), i); err == nil {
				c.Is(at)
			}
		}
	}
}
