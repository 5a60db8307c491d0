package ring_test

import (
	"sync/atomic"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/ring"
)

// message is what the tests hand over: a slot of 64 bytes, the first of a claim says how many it has.
type message struct {
	n        int // slots in the claim; in the first only
	producer int
	seq      uint64
	check    uint64
	_        [4]uint64
}

// checksum lets anybody verify a message by itself.
func checksum(producer int, seq uint64) uint64 {
	x := uint64(producer)<<56 ^ seq
	x = (x ^ x>>31) * 0x9E3779B97F4A7C15
	return x ^ x>>29
}

func (m *message) valid() bool { return m.check == checksum(m.producer, m.seq) }

// consumer is the consumer's side of the protocol as the engine plays it: drain what is ready, release once per run, look
// a few times more, go to sleep on the ring's own word, park.
type consumer struct {
	r      *ring.MPSC[message]
	parker atomicx.Parker
	visit  func(*message)
	maxRun int // claims per Release

	// How often it met what the stress tests want to meet. Only if watch is set: it then looks each time whether what is not
	// ready is claimed, which it should not do where time is measured.
	watch                        bool
	empty, unready, inLine, held atomic.Int64
}

func newConsumer(r *ring.MPSC[message], visit func(*message)) *consumer {
	return &consumer{r: r, parker: atomicx.NewParker(), visit: visit, maxRun: r.Cap()}
}

// drain visits everything that is ready, and reports whether that was anything.
func (c *consumer) drain() bool {
	head := c.r.Head()
	pos := head
	for run := 0; run < c.maxRun && c.r.IsReady(pos); run++ {
		n := c.r.Slot(pos, 0).n
		for i := range n {
			c.visit(c.r.Slot(pos, i))
		}
		pos = c.r.Advance(pos, n)
	}
	if pos == head {
		switch {
		case !c.watch:
		case c.r.Claimed():
			c.unready.Add(1)
		default:
			c.empty.Add(1)
		}
		return false
	}
	if c.watch && c.r.Waiting() > 0 {
		c.inLine.Add(1)
		if c.r.Held() {
			c.held.Add(1)
		}
	}
	c.r.Release(pos)
	return true
}

// run consumes until the ring is closed and empty.
func (c *consumer) run() {
	idle := atomicx.Backoff{Spins: 4, Yields: 16}
	for {
		switch {
		case c.drain():
			idle.Reset()
		case idle.Again(): // before it looks at the claim word, which producers need more
		case c.r.Claimed():
			atomicx.Yield()
			idle.Reset()
		case c.r.Closed():
			// Closed is final: what Claimed says after it is final, too.
			if !c.r.Claimed() {
				return
			}
		case c.r.Sleep():
			c.parker.Park(nil)
			idle.Reset()
		}
	}
}

// wake wakes the consumer if the outcome says so.
func (c *consumer) wake(o ring.Outcome) {
	if o == ring.ClaimedIdle {
		c.parker.Unpark()
	}
}

// put hands over n messages of one producer, seq and those that follow it, in one claim.
func put(c *consumer, n, producer int, seq uint64) ring.Outcome {
	pos, o, _ := c.r.Claim(n, nil)
	if o != ring.Closed {
		fill(c.r, pos, n, producer, seq)
		c.r.Ready(pos)
		c.wake(o)
	}
	return o
}

func fill(r *ring.MPSC[message], pos uint64, n, producer int, seq uint64) {
	for i := range n {
		m := r.Slot(pos, i)
		m.n, m.producer, m.seq = 0, producer, seq+uint64(i)
		m.check = checksum(m.producer, m.seq)
	}
	r.Slot(pos, 0).n = n
}
