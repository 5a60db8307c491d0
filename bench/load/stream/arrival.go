package stream

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ArrivalForms are the forms that ParseArrival knows, for help and errors.
const ArrivalForms = "constant, poisson, burst:ON/OFF (burst:10ms/90ms), ramp:FROM-TO:STEPS:EACH in shares of the rate " +
	"(ramp:0.1-1:10:5s), poisson+burst:ON/OFF, poisson+ramp:FROM-TO:STEPS:EACH"

// Arrival says how messages are spread in time. It has two halves. A profile says how the rate changes: not at all, on and off,
// or in steps. And within the profile messages come evenly spaced, or at random (Poisson), as if many independent users sent them.
//
// The zero value is constant: evenly spaced, at one rate.
type Arrival struct {
	poisson  bool
	on, off  time.Duration // bursts, if on is above 0
	from, to float64       // steps, if there are any: shares of the rate
	steps    int
	each     time.Duration
}

// ParseArrival reads one of ArrivalForms.
func ParseArrival(text string) (Arrival, error) {
	var a Arrival
	fail := func(format string, args ...any) (Arrival, error) {
		return Arrival{}, formError(text, ArrivalForms, format, args...)
	}
	rest, random := strings.CutPrefix(text, "poisson")
	if random {
		a.poisson = true
		if rest == "" {
			return a, nil
		}
		if rest, random = strings.CutPrefix(rest, "+"); !random {
			return fail("unknown")
		}
	}
	kind, args := fields(rest)
	var err error
	switch kind {
	case "constant":
		if a.poisson {
			return fail("a stream is constant or poisson")
		}
		err = arguments(args, 0, 0, "constant")
	case "burst":
		err = a.parseBurst(args)
	case "ramp":
		err = a.parseRamp(args)
	default:
		return fail("unknown")
	}
	if err != nil {
		return fail("%v", err)
	}
	return a, nil
}

func (a *Arrival) parseBurst(args []string) (err error) {
	const form = "burst:ON/OFF"
	if err := arguments(args, 1, 1, form); err != nil {
		return err
	}
	on, off, _ := strings.Cut(args[0], "/")
	if a.on, err = duration("ON", on); err != nil {
		return err
	}
	a.off, err = duration("OFF", off)
	return err
}

func (a *Arrival) parseRamp(args []string) (err error) {
	const form = "ramp:FROM-TO:STEPS:EACH"
	if err := arguments(args, 3, 3, form); err != nil {
		return err
	}
	from, to := fromTo(args[0])
	if a.from, err = between("FROM", from, 1e-6, 1e6); err != nil {
		return err
	}
	if a.to, err = between("TO", to, 1e-6, 1e6); err != nil {
		return err
	}
	if a.steps, err = whole("STEPS", args[1], 2, 10_000); err != nil {
		return err
	}
	a.each, err = duration("EACH", args[2])
	return err
}

// String returns the text that ParseArrival reads.
func (a Arrival) String() string {
	profile := ""
	switch {
	case a.on > 0:
		profile = "burst:" + ascii(a.on) + "/" + ascii(a.off)
	case a.steps > 0:
		profile = "ramp:" + text(a.from) + "-" + text(a.to) + ":" + strconv.Itoa(a.steps) + ":" + ascii(a.each)
	}
	switch {
	case !a.poisson && profile == "":
		return "constant"
	case !a.poisson:
		return profile
	case profile == "":
		return "poisson"
	}
	return "poisson+" + profile
}

// ascii is d with us instead of a Greek letter.
func ascii(d time.Duration) string { return strings.Replace(d.String(), "\u00b5", "u", 1) }

// fromTo splits FROM-TO, where the minus of an exponent, or of a number, is none between the two.
func fromTo(text string) (from, to string) {
	number := func(text string) bool {
		_, err := strconv.ParseFloat(text, 64)
		return !errors.Is(err, strconv.ErrSyntax)
	}
	for i, c := range text {
		if c == '-' && number(text[:i]) && number(text[i+1:]) {
			return text[:i], text[i+1:]
		}
	}
	from, to, _ = strings.Cut(text, "-") // and one of them says what is wrong with it
	return from, to
}

// text is v without an exponent.
func text(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// step is a time of constant rate.
type step struct {
	count float64 // how many messages of all producers come before it
	from  float64 // when it begins, in nanoseconds
	gap   float64 // nanoseconds between two messages of all producers
}

// Times says when one producer's messages should be sent, in nanoseconds since the start, in order.
//
// The k-th message of all producers together comes when the profile has let k through, which is computed from k alone: rounding
// does not add up, and after any number of hours a time is exact to a nanosecond. Evenly spaced producers take turns. With
// Poisson, messages come where the sum of independent exponential steps of mean 1 would have them instead of at k.
type Times struct {
	producer, of float64
	k            int64 // how many this producer has had

	random *rand.Rand // nil: evenly spaced
	passed int64      // the sum of the exponential steps, its whole part
	part   float64    // and its fraction

	gap      float64 // nanoseconds between two messages of all producers while they come
	on       float64 // with bursts: how long one lasts,
	period   float64 // how long it is from one to the next,
	perBurst float64 // and how many messages each has, on average
	steps    []step  // with a ramp; the first is the one we are in, the last has no end

	next   int64
	peeked bool
}

// Times returns the times of a part of the load, in which all producers together send rate messages a second: in the mean of a
// whole cycle with bursts, and as the share of 1 with a ramp, which goes on at its last rate. It panics if rate is not above 0.
func (a Arrival) Times(p Part, rate float64) *Times {
	if !(rate > 0) || math.IsInf(rate, 1) {
		panic("stream: the rate must be above 0")
	}
	t := &Times{producer: float64(p.Producer), of: float64(max(p.Of, 1)), gap: 1e9 / rate}
	if a.poisson {
		t.random = p.random(forTimes)
	}
	switch {
	case a.on > 0:
		t.on, t.period = float64(a.on), float64(a.on+a.off)
		t.perBurst = rate * t.period / 1e9
		t.gap = t.on / t.perBurst
	case a.steps > 0:
		var at, count float64
		for i := range a.steps {
			gap := 1e9 / (rate * a.share(i))
			t.steps = append(t.steps, step{count, at, gap})
			at += float64(a.each)
			count += float64(a.each) / gap
		}
	}
	return t
}

// Next returns the time of the next message.
func (t *Times) Next() int64 {
	if t.peeked {
		t.peeked = false
		return t.next
	}
	return t.draw()
}

// Peek returns what Next will return.
func (t *Times) Peek() int64 {
	if !t.peeked {
		t.next, t.peeked = t.draw(), true
	}
	return t.next
}

// Before takes all messages that should be sent before a time, and returns how many they were: what a producer that gave up has
// left out. It takes 5 to 30 ns for each.
func (t *Times) Before(at int64) (n int64) {
	for t.Peek() < at {
		t.peeked = false
		n++
	}
	return n
}

func (t *Times) draw() int64 {
	x := float64(t.k)*t.of + t.producer
	if t.random != nil {
		t.part += t.random.ExpFloat64()
		w := math.Floor(t.part)
		t.passed += int64(w)
		t.part -= w
		x = (float64(t.passed) + t.part) * t.of // independent producers: each has its share of the rate
	}
	t.k++
	switch {
	case t.period > 0:
		// Rounding may put a message at the very end of a burst into the next one; it stays inside either.
		n := math.Floor(x / t.perBurst)
		within := min(max(x-n*t.perBurst, 0)*t.gap, t.on)
		return int64(n*t.period + within)
	case t.steps != nil:
		for len(t.steps) > 1 && x >= t.steps[1].count {
			t.steps = t.steps[1:]
		}
		s := &t.steps[0]
		return int64(s.from + (x-s.count)*s.gap)
	}
	return int64(x * t.gap)
}

// Mean returns the mean rate over the first part of a run, as a share of the rate that Times is given: 1 but for a ramp.
func (a Arrival) Mean(d time.Duration) float64 {
	if a.steps == 0 || d <= 0 {
		return 1
	}
	var sum float64
	left := d
	for i := range a.steps {
		part := min(left, a.each)
		if i == a.steps-1 {
			part = left
		}
		sum += a.share(i) * float64(part)
		left -= part
	}
	return sum / float64(d)
}

// Step is a part of a run with one rate.
type Step struct {
	From  time.Duration
	Share float64 // of the rate that Times is given
}

// Steps returns the parts of the first part of a run that differ in their rate, so that a report can show them. There are none where
// there is one rate; bursts do not count.
func (a Arrival) Steps(d time.Duration) (steps []Step) {
	for i := range a.steps {
		if from := time.Duration(i) * a.each; from < d {
			steps = append(steps, Step{From: from, Share: a.share(i)})
		}
	}
	return slices.Clip(steps)
}

// share is the rate of a step.
func (a Arrival) share(i int) float64 {
	return a.from + (a.to-a.from)*float64(i)/float64(a.steps-1)
}
