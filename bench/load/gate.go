package load

import (
	"math"
	"time"

	"github.com/leatlog/leat/internal/atomicx"
)

// gate stops all readers and subscribers for a while, at the start of the measured time.
type gate struct {
	_ atomicx.Pad
	// closed says that consumers wait for open. Stored by the collector, loaded by consumers for each message; publishes nothing
	// else: open is made before anybody runs.
	closed atomicx.Bool
	_      atomicx.Pad

	open chan struct{}

	// The collector's own.
	state    gateState
	from, to mark // when the readers went on, and when they had caught up
	stoppedS float64
}

type gateState int

const (
	gateAhead gateState = iota // nobody was stopped yet
	gateClosed
	gateCatching // the readers catch up
	gateOver
)

// BacklogResult is how readers that had stood still caught up.
type BacklogResult struct {
	// StoppedS is for how long they stood still, in seconds, and Messages how many the slowest one had to catch up with then.
	StoppedS float64 `json:"stopped_s"`
	Messages uint64  `json:"messages"`
	// CatchUpS is how long it took from there until the slowest one was at most 2 ms of the rate behind. 0: it never was.
	CatchUpS float64 `json:"catch_up_s"`
	// MsgsPerS is how many messages a second the slowest one got meanwhile.
	MsgsPerS float64 `json:"catch_up_msgs_per_s"`
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

// pass waits while the gate is closed.
func (g *gate) pass() {
	if g.closed.Load() {
		<-g.open
	}
}

func (g *gate) next(r *run, at int64) int64 {
	switch g.state {
	case gateAhead:
		return min(at, r.phases.measured)
	case gateClosed:
		return min(at, r.phases.measured+int64(r.s.Stop))
	case gateCatching:
		return min(at, r.clock.Now()+int64(time.Millisecond))
	default:
		return at
	}
}

// phase does what is due at a time.
func (g *gate) phase(r *run, now int64) {
	switch g.state {
	case gateAhead:
		if now >= r.phases.measured {
			g.state = gateClosed
			g.closed.Store(true)
		}
	case gateClosed:
		if now >= r.phases.measured+int64(r.s.Stop) {
			g.release(r, now)
		}
	case gateCatching:
		if m := r.mark(); m.lag() <= max(uint64(r.s.Rate/500), 100) {
			g.state, g.to = gateOver, m
		}
	}
}

// release lets the readers go on.
func (g *gate) release(r *run, now int64) {
	switch g.state {
	case gateAhead:
		g.state = gateOver
	case gateClosed:
		g.state = gateCatching
		g.from = r.mark()
		g.stoppedS = float64(now-r.phases.measured) / 1e9
		g.closed.Store(false)
		close(g.open)
	}
}

// openGate lets readers go on, if there is something that stops them, and lets nothing stop them any more.
func (r *run) openGate() {
	if r.gate != nil {
		r.gate.release(r, r.clock.Now())
	}
}

// result returns how readers caught up, or nil if they were never stopped.
func (g *gate) result() *BacklogResult {
	if g.stoppedS == 0 {
		return nil
	}
	b := &BacklogResult{StoppedS: g.stoppedS, Messages: g.from.lag()}
	if g.to.at > g.from.at {
		b.CatchUpS = float64(g.to.at-g.from.at) / 1e9
		b.MsgsPerS = math.Inf(1)
		for c, n := range g.to.accepted {
			b.MsgsPerS = min(b.MsgsPerS, float64(n-g.from.accepted[c])/b.CatchUpS)
		}
	}
	return b
}
