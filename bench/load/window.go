package load

import (
	"math"
	"time"

	"github.com/leatlog/leat/bench/load/export"
)

// Window is how things stand at the end of about a second, for the impatient.
type Window struct {
	Elapsed  time.Duration // since the run began
	Of       time.Duration // how long the run is to be, warm-up included
	Warmup   bool          // the warm-up was not over at the start of the window
	Sent     uint64        // messages published so far
	Rate     float64       // messages published a second, in this window
	Lag      uint64        // messages that the slowest reader or subscriber has still to get
	Delay    time.Duration // the largest publish delay measured in this window
	Samples  uint64        // how many end-to-end latencies were measured in this window
	P50, P99 time.Duration // of them
	Max      time.Duration // the largest of them

	Blocked time.Duration // how long producers were not let in, all together: calls of 10 us and more
	Dropped uint64        // messages that consumers have jumped over so far, and not had since: see Faults.Lost at the end
	GCs     uint64        // collections that ended in this window
	GCPause time.Duration // how long they stopped the world
	Cores   float64       // how many processors were busy with the process

	Messages uint64 // how many messages the run is to have at the most; 0: no limit
}

const (
	windowMost = 1200 // windows of a run, about
	// recordersMost bounds how many recorders have a second histogram for windows, half a megabyte each with the first; and it is from how
	// many owners on that recorders are shared.
	recordersMost = 512
	liveEvery     = int64(time.Second)
)

// windowLengths are the lengths to choose from: each goes into a second, or a second into it.
var windowLengths = []time.Duration{
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second,
	5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, time.Hour,
}

// windowLength returns how long windows are, or 0 for none.
func (s *Scenario) windowLength() time.Duration {
	switch {
	case s.Window > 0:
		return s.Window
	case s.Window < 0 && s.Live == nil && s.Intervals == nil:
		return 0
	}
	all := s.Warmup + s.Duration
	for i, l := range windowLengths {
		if all/l > windowMost || i == 0 && s.Duration >= 2*time.Second || i == 1 && s.Duration >= 5*time.Second {
			continue
		}
		return l
	}
	return windowLengths[len(windowLengths)-1]
}

// windowed reports whether recorders are to hand over what they have from time to time.
func (r *run) windowed() bool {
	s := &r.s
	if s.windowLength() == 0 {
		return false
	}
	receivers := s.Consumers()
	if receivers > recordersMost/s.Partitions || s.Producers > recordersMost {
		if r.win.few {
			return false
		}
		r.win.few = true
		r.notes = append(r.notes, "too many producers and consumers to measure each window by itself: windows have no latencies")
		return false
	}
	return true
}

// windows cuts a run into windows. The collector's own.
type windows struct {
	length, hand int64
	next, last   int64
	asked        bool // the owners have been asked for the window that ends at next
	few          bool
	list         []export.Window
	before       mark

	e2e, publish, delay *Histogram // of the window

	// Of the live window, which is a second, or the window if that is longer.
	nextLive, lastLive int64
	live               mark // at its start
	liveE2E, liveDelay *Histogram
}

// handTime is how long before the end of a window the recorders are asked for it, at the most: each hands it over with the next
// value it records.
const handTime = int64(20 * time.Millisecond)

func (w *windows) init(s *Scenario) {
	w.length = int64(s.windowLength())
	w.e2e, w.publish, w.delay = NewHistogram(), NewHistogram(), NewHistogram()
	if s.Live != nil {
		w.liveE2E, w.liveDelay = NewHistogram(), NewHistogram()
	}
	w.hand = min(handTime, w.length/4)
}

func (w *windows) start(at int64, m mark) {
	w.last, w.lastLive, w.before, w.live = at, at, m, m
	w.before.at, w.live.at = at, at
	w.next = math.MaxInt64
	if w.length > 0 {
		w.next = at + w.length
	}
	w.nextLive = at + liveEvery
}

// due returns when there is something to do for windows, but not later than at.
func (w *windows) due(at int64) int64 {
	if w.asked || w.length == 0 {
		return min(at, w.next)
	}
	return min(at, w.next-w.hand)
}

// window does what is due for windows.
func (r *run) window(now int64) {
	w := &r.win
	if w.length == 0 {
		return
	}
	if !w.asked && now >= w.next-w.hand {
		w.asked = true
		r.turn.Add(1)
	}
	if now < w.next {
		return
	}
	w.asked = false
	for w.next <= now {
		w.next += w.length
	}
	for _, l := range r.lanes {
		l.rec.collect(w.e2e)
	}
	if r.g != nil {
		r.g.collect()
	}
	for _, p := range r.producers {
		p.delay.collect(w.delay)
		p.publish.collect(w.publish)
	}
	m := r.mark()
	m.at = now
	r.closeWindow(m)
	if r.s.Live != nil && now >= w.nextLive {
		r.live(m)
	}
}

// closeWindow ends the window that is open, and starts another one.
func (r *run) closeWindow(m mark) {
	w := &r.win
	took := float64(m.at-w.before.at) / 1e9
	if took > 0 {
		r.addWindow(m, took)
		if r.s.Intervals != nil {
			start := r.phases.start
			r.s.Intervals(time.Duration(w.before.at-start), time.Duration(m.at-start), w.e2e, w.publish, w.delay)
		}
	}
	for _, x := range []struct{ from, live, all *Histogram }{
		{w.e2e, w.liveE2E, r.e2e}, {w.publish, nil, r.publish}, {w.delay, w.liveDelay, r.delay},
	} {
		x.all.Merge(x.from)
		if x.live != nil {
			x.live.Merge(x.from)
		}
		x.from.Reset()
	}
	w.before = m
}

func (r *run) addWindow(m mark, took float64) {
	w := &r.win
	b := &w.before
	sent := m.sent - b.sent
	x := export.Window{
		FromS: float64(b.at-r.phases.start) / 1e9, ToS: float64(m.at-r.phases.start) / 1e9, Warmup: b.at < r.phases.measured,
		Sent: sent, PublishMsgsPerS: float64(sent) / took, RateMsgsPerS: float64(sent) / took, Lag: m.lag(),
		E2E: w.e2e.summary(), Publish: w.publish.summary(), Delay: w.delay.summary(),
		Cores: float64(m.cpu-b.cpu) / 1e9 / took, GCs: uint64(m.gcs - b.gcs), GCPauseNs: m.pauses - b.pauses,
		BlockedNs: int64(m.blocked - b.blocked), Dropped: m.dropped, HeapBytes: m.heap,
	}
	for c, n := range m.accepted {
		if rate := float64(n-b.accepted[c]) / took; c == 0 || rate < x.RateMsgsPerS {
			x.RateMsgsPerS = rate
		}
	}
	if sent > 0 {
		x.CPUNsPerMsg = float64(m.cpu-b.cpu) / float64(sent)
	}
	w.list = append(w.list, x)
}

// lag returns how many messages the slowest consumer has still to get.
func (m *mark) lag() (lag uint64) {
	for _, a := range m.accepted {
		if a < m.sent {
			lag = max(lag, m.sent-a)
		}
	}
	return lag
}

// live reports the live window that ends with m.
func (r *run) live(m mark) {
	w := &r.win
	b := &w.live
	took := float64(m.at-b.at) / 1e9
	r.s.Live(Window{
		Elapsed: time.Duration(m.at - r.phases.start), Of: r.s.Warmup + r.s.Duration, Messages: uint64(r.s.Messages), Warmup: b.at < r.phases.measured,
		Sent: m.sent, Rate: float64(m.sent-b.sent) / took, Lag: m.lag(), Delay: time.Duration(w.liveDelay.Max()),
		Samples: w.liveE2E.Count(), P50: time.Duration(w.liveE2E.Percentile(50)),
		P99: time.Duration(w.liveE2E.Percentile(99)), Max: time.Duration(w.liveE2E.Max()),
		Blocked: time.Duration(m.blocked - b.blocked), Dropped: m.dropped, GCs: uint64(m.gcs - b.gcs),
		GCPause: time.Duration(m.pauses - b.pauses), Cores: float64(m.cpu-b.cpu) / 1e9 / took,
	})
	w.liveE2E.Reset()
	w.liveDelay.Reset()
	w.live = m
	for w.nextLive <= m.at {
		w.nextLive += liveEvery
	}
}
