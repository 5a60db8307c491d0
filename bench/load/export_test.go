package load

import (
	"time"

	"github.com/leatlog/leat/internal/atomicx"
)

// UseSynctestClock makes a run fit for a synctest bubble: all waiting is sleeping, and times are exact.
func (s *Scenario) UseSynctestClock() {
	s.NoPlacement = true
	s.clock = &Clock{from: time.Now(), exact: true}
}

// Schedule opens schedule.
type Schedule = schedule

func NewSchedule(start int64, rate float64, producer, of int) Schedule {
	return schedule{start: start, gap: 1e9 / rate, producer: producer, of: of}
}

func (s schedule) At(k int64) int64     { return s.at(k) }
func (s schedule) Before(t int64) int64 { return s.before(t) }

// TestMessage opens message.
type TestMessage struct{ m *message }

func NewTestMessage(s Scenario, producer int) TestMessage {
	return TestMessage{newMessage(&s, producer)}
}

func (m TestMessage) Set(partition int, seq uint64, stamp int64) []byte {
	return m.m.set(partition, seq, stamp)
}

func Parse(p []byte, size, partition int) (stamp int64, producer int, seq uint64, ok bool) {
	return parse(p, size, size, partition)
}

// TestLane opens lane.
type TestLane struct{ *lane }

func NewTestLane(s Scenario, partition int) TestLane {
	return TestLane{&lane{
		streams: make([]series, s.Producers), rec: newRecorder(new(atomicx.Uint32), false), clock: NewClock(),
		least: s.Size, most: s.Size, partition: partition, measured: 1,
	}}
}

func (l TestLane) Deliver(p []byte) { l.deliver(p) }
func (l TestLane) Close(sent func(p int) uint64) Lane {
	lane, _ := l.close(sent, false)
	return lane
}

func (l TestLane) Accepted() uint64 { return l.accepted.Load() }
func (l TestLane) Dropped() uint64  { return l.dropped.Load() }
func (l TestLane) Measured() uint64 { return l.rec.cur.Count() }

// HolesMost is how many holes a lane remembers for each producer.
const HolesMost = holesMost

// Highest is the end of a histogram's range.
const Highest = highest

// TestRecorder opens recorder.
type TestRecorder struct {
	r    *recorder
	turn atomicx.Uint32
}

func NewTestRecorder() *TestRecorder {
	t := &TestRecorder{}
	t.r = newRecorder(&t.turn, true)
	return t
}

func (t *TestRecorder) Record(v int64)             { t.r.record(v) }
func (t *TestRecorder) Ask()                       { t.turn.Add(1) }
func (t *TestRecorder) Collect(into ...*Histogram) { t.r.collect(into...) }
func (t *TestRecorder) Finish(into *Histogram)     { t.r.finish(into) }

// WindowLength opens windowLength.
func (s Scenario) WindowLength() time.Duration { return s.windowLength() }

// NewQuiet returns the look of a quiet.
func NewQuiet(now time.Duration) func(now time.Duration, moved bool) time.Duration {
	q := quietFrom(int64(now))
	return func(now time.Duration, moved bool) time.Duration { return time.Duration(q.look(int64(now), moved)) }
}
