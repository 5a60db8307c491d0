package load

import (
	"math/bits"
	"runtime"
	"sync"
	"time"

	"github.com/loov/hrtime"

	"github.com/leatlog/leat/internal/atomicx"
)

// Clock tells nanoseconds since some moment before the run. It is immutable once made and shared by all goroutines of a run.
//
// Where the operating system itself goes by the processor's time stamp counter, the counter is read directly. Its speed is
// measured once per process against the runtime's monotonic clock, to a few parts in a million. Elsewhere it is time.Since.
//
// A processor runs ahead: it may read the counter before a load that comes earlier in the program has its value, and so miss
// just what is to be measured, the 100 to 300 ns in which a cache line comes from another core. After waits for that, Now does
// not: 20 and 10 ns, where time.Since takes 28. So a measurement begins with Now and ends with After.
type Clock struct {
	from  time.Time
	count hrtime.Count // the counter at from
	scale uint64       // nanoseconds per count, in units of 2^-32; 0: use the runtime's clock

	// exact is for tests in a synctest bubble, where time passes only while everybody sleeps: waiting is sleeping.
	exact bool
}

// scaleOnce holds the measured speed of the counter.
var scaleOnce = sync.OnceValue(func() uint64 {
	if !hrtime.TSCSupported() || !counterTrusted() {
		return 0
	}
	const long = 20 * time.Millisecond
	t0, c0 := both()
	for time.Since(t0) < long {
		runtime.Gosched()
	}
	t1, c1 := both()
	if c1 <= c0 {
		return 0
	}
	return uint64(float64(t1.Sub(t0)) / float64(c1-c0) * (1 << 32))
})

// both reads the two clocks at the same moment: of several tries it takes the one in which the least time went by.
func both() (t time.Time, c hrtime.Count) {
	best := hrtime.Count(-1)
	for range 10 {
		before := hrtime.TSC()
		now := time.Now()
		after := hrtime.TSC()
		if d := after - before; best < 0 || d < best {
			best, t, c = d, now, before+d/2
		}
	}
	return t, c
}

// NewClock starts a clock.
func NewClock() *Clock {
	c := &Clock{scale: scaleOnce()}
	if c.scale == 0 {
		c.from = time.Now()
	} else {
		c.from, c.count = both()
	}
	return c
}

// Now returns the time in nanoseconds. It is never 0 in practice, since a run begins later than its clock; a stamp of 0 means "none".
func (c *Clock) Now() int64 {
	if c.scale == 0 {
		return int64(time.Since(c.from))
	}
	return c.ns(hrtime.TSC())
}

// After returns the time once everything that comes before it in the program has been done, loads included.
func (c *Clock) After() int64 {
	if c.scale == 0 {
		return int64(time.Since(c.from))
	}
	return c.ns(hrtime.Count(hrtime.RDTSCP()))
}

func (c *Clock) ns(count hrtime.Count) int64 {
	hi, lo := bits.Mul64(uint64(count-c.count), c.scale)
	return int64(hi<<32 | lo>>32)
}

// source names where the time comes from.
func (c *Clock) source() string {
	if c.scale == 0 {
		return "monotonic"
	}
	return "tsc"
}

// drift returns how far the clock has moved away from the runtime's own since it was made, as a fraction.
func (c *Clock) drift() float64 {
	if c.scale == 0 {
		return 0
	}
	now, count := both()
	d := float64(now.Sub(c.from))
	return (float64(c.ns(count)) - d) / d
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
func (c *Clock) until(t int64, halt *atomicx.Bool) int64 {
	var first uint32
	if runtime.GOMAXPROCS(0) == 1 {
		first = 1 << 16 // go straight to yielding: whom we wait for needs the processor
	}
	turn := first
	for {
		now := c.Now()
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
