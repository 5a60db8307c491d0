package cursor

import (
	"errors"
	"fmt"

	"github.com/leatlog/leat/internal/atomicx"
)

// Wait says how a reader that has caught up waits for more. The zero value is WaitPark.
type Wait uint8

const (
	// WaitPark looks again a few times, lets others run once, and then parks. An idle reader costs nothing.
	WaitPark Wait = iota
	// WaitYield never parks: between two looks it lets others run. It answers sooner and keeps a processor busy.
	WaitYield
	// WaitSpin never parks: it pauses between two looks, and lets others run only now and then. It answers soonest, if there
	// is a processor to spare for it.
	WaitSpin
)

var waitNames = [...]string{WaitPark: "park", WaitYield: "yield", WaitSpin: "spin"}

// ErrWait is returned by ParseWait for a text that names no way to wait. Trying again does not help.
var ErrWait = errors.New("cursor: no such way to wait")

// ParseWait returns the Wait that String writes as s.
func ParseWait(s string) (Wait, error) {
	for w, name := range waitNames {
		if s == name {
			return Wait(w), nil
		}
	}
	return WaitPark, fmt.Errorf("%w: %q is none of park, yield, spin", ErrWait, s)
}

// String returns park, yield or spin.
func (w Wait) String() string {
	if int(w) < len(waitNames) {
		return waitNames[w]
	}
	return fmt.Sprintf("Wait(%d)", uint8(w))
}

// Valid reports whether w is one of the three.
func (w Wait) Valid() bool { return int(w) < len(waitNames) }

// Backoff returns the turns that w takes between two looks. Once its Again returns false, park: for WaitYield and WaitSpin
// it never does.
func (w Wait) Backoff() atomicx.Backoff {
	switch w {
	case WaitYield:
		return atomicx.Backoff{Spins: 16, Steady: true, Yields: 16, Endless: true}
	case WaitSpin:
		return atomicx.Backoff{Spins: 1024, Steady: true, Yields: 1, Endless: true}
	}
	return atomicx.Backoff{Spins: 4, Yields: 1}
}
