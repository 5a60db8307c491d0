package atomicx

// Watch reads a Clock for one goroutine at a time, in a third of the time: between two looks at the clock it goes by the
// processor's time stamp counter (12 ns, where the clock takes 35). As long as the counter is steady, what it says is within 200 ns of
// the clock and mostly ahead of it, by the time that a look takes; so it may go back by as much.
//
// # Proof
//
// The counter is not trusted: in a virtual machine it may jump, stand still, or change its speed. So a Watch goes by it only for
// watchSpan counts after a look, which is a millisecond at most, and only at a speed that has been measured twice in a row, over four
// times as long, with the same result. Whatever has been false is forgotten at a look:
//
//   - A counter that jumps, either way, is outside the span; then the clock is looked at. One that ends inside it, or has stood still,
//     makes the Watch wrong by as much until the span is over. Only one that stops for good would stop the Watch as well.
//   - One that changes its speed makes it wrong by up to the length of a span until a measurement differs from the one before: the
//     present one, or the next. From then on each call looks at the clock until two agree. A clock that is made to go slower or faster,
//     to be right again, is the same the other way round: by 500 ppm that is 0.2 us for a few spans.
//   - A look that is interrupted takes longer than others, and is not used.
//   - Where the clock is not real (a synctest bubble) it stands still while anybody runs, and so while NewWatch looks; the counter has
//     nothing to do with it. Nor is it used where reading it takes more than half as long as the clock does, or the processor does not
//     say that its speed is constant.
type Watch struct {
	clock *Clock
	able  bool // immutable: the counter may be used

	count uint64 // the counter at the last look
	now   int64  // the clock then
	span  uint64 // for how many counts after it the counter is gone by; 0 if its speed is not known
	scale uint64 // nanoseconds a count, in units of 2^-32

	quickest uint64 // counts that a look takes when nothing gets between
	mark     uint64 // the counter when the present measurement of its speed began
	marked   int64  // the clock then
	measured uint64 // what the last measurement found, as scale
}

const (
	watchSpan    = 1 << 20       // counts
	watchMeasure = 4 * watchSpan // counts, at least
	watchAgree   = 1 << 13       // measurements agree that differ by less than one part in this
	watchSlowest = 1             // ns a count: slower than this is no speed, so that a span is short, and nothing overflows
)

// NewWatch returns a Watch that reads c.
func NewWatch(c *Clock) Watch { return Watch{clock: c, able: counterWorth(c)} }

// counterWorth reports whether to go by the counter instead of the clock: see Proof.
func counterWorth(c *Clock) bool {
	if Exploring || !constantSpeed {
		return false
	}
	began := c.Now()
	one, other := ^uint64(0), ^uint64(0)
	for range 8 { // some of them are not interrupted
		before := counter()
		between := counter()
		c.Now()
		one, other = min(one, between-before), min(other, counter()-between)
	}
	return c.Now() > began && 3*one <= other // the other is the clock, and the counter once
}

// Now returns the time.
func (w *Watch) Now() int64 {
	if w.able {
		if now, ok := w.at(counter()); ok {
			return now
		}
		return w.look()
	}
	return w.clock.Now()
}

// at returns the time by the counter, if that may be gone by.
func (w *Watch) at(count uint64) (now int64, ok bool) {
	d := count - w.count
	return w.now + int64(d*w.scale>>32), d < w.span
}

// look looks at the clock.
func (w *Watch) look() int64 {
	before := counter()
	now := w.clock.Now()
	w.learn(before, now, counter())
	return now
}

// learn takes note of a look: the clock, and the counter before and after it. That before is the one that is used: so the Watch is
// ahead of the clock rather than behind, and a record does not seem to be older than what came before it.
func (w *Watch) learn(before uint64, now int64, after uint64) {
	took := after - before
	if w.quickest == 0 || took < w.quickest {
		w.quickest = max(took, 1)
	}
	if took > 2*w.quickest { // the next call looks again, as the span is over
		w.quickest += w.quickest/8 + 1 // if all take so long, it is not an interruption
		return
	}
	w.count, w.now = before, now
	counts := before - w.mark
	if counts < watchMeasure {
		return
	}
	// Where it has gone back, or this is the first look, the speed is none.
	var scale uint64
	if speed := float64(now-w.marked) / float64(counts); speed < watchSlowest {
		scale = uint64(speed * (1 << 32))
	}
	w.span, w.scale = 0, scale
	if differ := max(scale, w.measured) - min(scale, w.measured); differ < scale/watchAgree {
		w.span = watchSpan
	}
	w.mark, w.marked, w.measured = before, now, scale
}
