package stream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/leatlog/leat/bench/load/number"
)

// ErrForm is wrapped by every error of the parsers. The text names the forms that are allowed.
var ErrForm = errors.New("stream: not a known form")

// Part says whose stream it is.
type Part struct {
	// Seed decides what is drawn.
	Seed uint64
	// Producer is which of the Of producers it is, from 0.
	Producer int
	// Of is how many producers there are. Less than 1 means 1.
	Of int
}

// What a generator is for, so that the streams of one producer differ.
const (
	forTimes = 1 + iota
	forSizes
	forKeys
)

// random returns the part's own generator for a purpose.
func (p Part) random(purpose uint64) *rand.Rand {
	// The second half of the seed is the same for no two producers and purposes. PCG mixes both halves well.
	return rand.New(rand.NewPCG(p.Seed, mix(uint64(p.Producer)<<8|purpose)))
}

// mix is the finalizer of splitmix64: neighbouring numbers become unlike ones.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// formError says what is wrong with text, and what is allowed instead.
func formError(text, forms, format string, a ...any) error {
	return fmt.Errorf("%w: %q: %s; must be one of %s", ErrForm, text, fmt.Sprintf(format, a...), forms)
}

// fields splits "kind:a:b" into kind and [a b].
func fields(text string) (kind string, args []string) {
	all := strings.Split(text, ":")
	return all[0], all[1:]
}

// between reads a number that is at least low and at most high.
func between(name, text string, low, high float64) (float64, error) {
	v, err := number.Parse(text)
	if err != nil || !(v >= low && v <= high) {
		return 0, fmt.Errorf("%s is %q%s: must be a number from %v to %v", name, text, vanishing(err), low, high)
	}
	return v, nil
}

// whole reads a whole number that is at least low and at most high.
func whole(name, text string, low, high int) (int, error) {
	v, err := strconv.Atoi(text)
	if err != nil || v < low || v > high {
		return 0, fmt.Errorf("%s is %q: must be a whole number from %d to %d", name, text, low, high)
	}
	return v, nil
}

// duration reads a time above 0.
func duration(name, text string) (time.Duration, error) {
	d, err := number.Duration(text)
	if err != nil || d <= 0 || d > 1000*time.Hour {
		return 0, fmt.Errorf("%s is %q%s: must be a time such as 10ms, above 0 and at most 1000h", name, text, vanishing(err))
	}
	return d, nil
}

// vanishing says so of a number that would count as 0 and is not, or is one with a minus.
func vanishing(err error) string {
	if errors.Is(err, number.ErrVanishes) || errors.Is(err, number.ErrMinus) {
		return ", " + err.Error()
	}
	return ""
}

// arguments says so if there are not as many as a form has.
func arguments(args []string, least, most int, form string) error {
	if len(args) < least || len(args) > most {
		return fmt.Errorf("the form is %s", form)
	}
	return nil
}
