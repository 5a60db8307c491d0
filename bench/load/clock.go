package load

import (
	"math/bits"
	"runtime"
	"sync"
	"time"

	"github.com/loov/hrtime"

	"github.com/leatlog/leat/internal/atomicx"
)

// clock tells nanoseconds since some moment before the run. It is immutable once made and shared by all goroutines of a run.
//
// Where the processor has a time stamp counter that runs at one speed, that is read directly: 11 ns instead of the 25 to 37 ns
// of time.Since. Its speed is measured once per process against the runtime's monotonic clock, to a few parts in a million.
type clock struct {
	from  time.Time
	count hrtime.Count // the counter at from
	scale uint64       // nanoseconds per count, in units of 2^-32; 0: use the runtime's clock

	// exact is for tests in a synctest bubble, where time passes only while everybody sleeps: waiting is sleeping.
	exact bool
}

// scaleOnce holds the measured speed of the counter.
var scaleOnce = sync.OnceValue(func() uint64 {
	if !hrtime.TSCSupported() || hrtime.TSC() == 0 {
		return 0
	}
	const long = 20 * time.Millisecond
	t0, c0 := time.Now(), hrtime.TSC()
	for time.Since(t0) < long {
		runtime.Gosched()
	}
	d, c := time.Since(t0), hrtime.TSC()-c0
	if c <= 0 {
		return 0
	}
	return uint64(float64(d) / float64(c) * (1 << 32))
})

// newClock starts a clock.
func newClock() *clock {
	return &clock{scale: scaleOnce(), from: time.Now(), count: hrtime.TSC()}
}

// now returns the time. It is never 0 in practice, since a run begins later than its clock; a stamp of 0 means "none".
func (c *clock) now() int64 {
	if c.scale == 0 {
		return int64(time.Since(c.from))
	}
	hi, lo := bits.Mul64(uint64(hrtime.TSC()-c.count), c.scale)
	return int64(hi<<32 | lo>>32)
}

// source names where the time comes from.
func (c *clock) source() string {
	if c.scale == 0 {
		return "monotonic"
	}
	return "tsc"
}

// drift returns how far the clock has moved away from the runtime's own since it was made, as a fraction.
func (c *clock) drift() float64 {
	d := float64(time.Since(c.from))
	return (float64(c.now()) - d) / d
}

const (
	// sleepSlack is how long before its time a sleeper wakes to look at the clock in a loop instead: time.Sleep is late by
	// about a millisecond.
	sleepSlack = 2 * time.Millisecond
	// sleepMost bounds one sleep, so that a run that is cut short ends soon.
	sleepMost = 100 * time.Millisecond
)

// until waits until time t, or until halt holds, and returns the time then. It sleeps while t is far off and then lets other
// goroutines run, again and again; with a processor to spare it pauses a little first.
func (c *clock) until(t int64, halt *atomicx.Bool) int64 {
	var first uint32
	if runtime.GOMAXPROCS(0) == 1 {
		first = 1 << 16 // go straight to yielding: whom we wait for needs the processor
	}
	turn := first
	for {
		now := c.now()
		if now >= t || halt.Load() {
			return now
		}
		d := time.Duration(t - now)
		switch {
		case c.exact:
			time.Sleep(min(d, sleepMost))
		case d > sleepSlack:
			time.Sleep(min(d-sleepSlack, sleepMost))
			turn = first
		default:
			atomicx.Relax(turn)
			turn++
		}
	}
}

// schedule says when one producer's messages should be sent: the producers take turns at an even rate.
type schedule struct {
	start    int64
	gap      float64 // nanoseconds between two messages of all producers
	producer int
	of       int
}

// at returns the intended time of the producer's k-th message.
func (s schedule) at(k int64) int64 {
	return s.start + int64(float64(k*int64(s.of)+int64(s.producer))*s.gap)
}

// before returns how many of the producer's messages should have been sent before time t.
func (s schedule) before(t int64) int64 {
	if t <= s.start {
		return 0
	}
	k := int64((float64(t-s.start)/s.gap - float64(s.producer)) / float64(s.of))
	for k > 0 && s.at(k-1) >= t { // float rounding may be off by one either way
		k--
	}
	for s.at(k) < t {
		k++
	}
	return k
}
