// Package number reads numbers and times that people write, and refuses what would count as 0 but is not, 1e-400 or 0.1ns, or is
// hardly meant: -0.
package number

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

var (
	// ErrNone says that a text is no number, or no time, or one that is too large.
	ErrNone = errors.New("no number")
	// ErrVanishes says that a text is so near to 0 that it would count as 0.
	ErrVanishes = errors.New("too near to 0: it would count as 0")
	// ErrMinus says that a text is 0 with a minus.
	ErrMinus = errors.New("0 with a minus")
)

// Zero says what is wrong with a text that has been read as 0: it may be something else that was rounded, or a 0 with a minus.
func Zero(text string) error {
	switch {
	case nonZero(text):
		return ErrVanishes
	case strings.HasPrefix(text, "-"):
		return ErrMinus
	}
	return nil
}

// Parse reads a number that is neither infinite nor NaN, and 0 only if the text says so, without a minus.
func Parse(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		return 0, ErrNone
	case v == 0:
		return 0, Zero(text)
	}
	return v, nil
}

// Duration reads a time as [time.ParseDuration] does, and 0 only if the text says so, without a minus.
func Duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, ErrNone
	case d == 0:
		return 0, Zero(text)
	}
	return d, nil
}

// nonZero reports whether a text that is a number, or a time, says that it is not 0, whatever it is rounded to.
func nonZero(text string) bool {
	text = strings.ToLower(text)
	digits, exponent := "123456789", "e"
	if strings.Contains(text, "0x") {
		digits, exponent = "123456789abcdef", "p"
	}
	mantissa, _, _ := strings.Cut(text, exponent)
	return strings.ContainsAny(mantissa, digits)
}
