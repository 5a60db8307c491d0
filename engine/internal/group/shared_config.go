package group

import (
	"fmt"
	"time"
)

// Defaults of a SharedConfig.
const (
	DefaultMaxInFlight = 1000
	DefaultMaxWindow   = 1 << 16
	DefaultAckWait     = 30 * time.Second
)

// Bounds of a SharedConfig.
const (
	maxWindow   = 1 << 30
	maxAckWaits = 64
)

// SharedConfig is how one partition of a shared group behaves. The zero value works.
type SharedConfig struct {
	// MaxInFlight is how many records may be held by members at a time. Those that wait to be delivered again, after a
	// failure, do not count: a few bad records cannot stop the others. 0 means DefaultMaxInFlight.
	MaxInFlight int

	// MaxWindow is how far above the floor records are handed out: the bound of what one record that does not get settled
	// can cost in memory and in records that would be repeated after a crash. 0 means DefaultMaxWindow.
	MaxWindow int

	// AckWait is how long a member may hold a record at its first, second, ... delivery; the last repeats. Empty means
	// DefaultAckWait.
	AckWait []time.Duration

	// Backoff is how long after its first, second, ... failure a record is delivered again; the last repeats. Of a record that
	// was held for too long the time that it was held at the end counts, so that one whose AckWait is longer than its Backoff
	// comes back at once. Empty means at once.
	Backoff []time.Duration

	// InOrder delivers records again before new ones, in the order of their offsets, as the one owner of a partition expects
	// it. Without it a record that always fails does not keep new ones waiting.
	InOrder bool

	// MaxDeliveries is how often a record is delivered, if it always fails. 0 means without end.
	MaxDeliveries int

	// DeadLetter keeps records that have failed MaxDeliveries times until Buried says that they are safe somewhere else.
	// Without it they are given up.
	DeadLetter bool

	// DeadLetterRejected does the same for records that a member has rejected.
	DeadLetterRejected bool
}

// Check returns what is wrong with c, or nil. The text begins with the field's name.
func (c SharedConfig) Check() error {
	switch {
	case c.MaxInFlight < 0:
		return fmt.Errorf("MaxInFlight is %d: must not be negative (0 means %d)", c.MaxInFlight, DefaultMaxInFlight)
	case c.MaxWindow < 0 || c.MaxWindow > maxWindow:
		return fmt.Errorf("MaxWindow is %d: must be from 0 to %d (0 means %d)", c.MaxWindow, maxWindow, DefaultMaxWindow)
	case len(c.AckWait) > maxAckWaits:
		return fmt.Errorf("AckWait has %d entries: must not have more than %d", len(c.AckWait), maxAckWaits)
	case c.MaxDeliveries < 0:
		return fmt.Errorf("MaxDeliveries is %d: must not be negative (0 means without end)", c.MaxDeliveries)
	}
	for _, d := range c.AckWait {
		if d <= 0 {
			return fmt.Errorf("AckWait has %v: must be positive", d)
		}
	}
	for _, d := range c.Backoff {
		if d < 0 {
			return fmt.Errorf("Backoff has %v: must not be negative", d)
		}
	}
	return nil
}

// withDefaults returns c with its own lists and no zero where that means something else. It panics if c.Check fails.
func (c SharedConfig) withDefaults() SharedConfig {
	if err := c.Check(); err != nil {
		panic("group: " + err.Error())
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = DefaultMaxInFlight
	}
	if c.MaxWindow == 0 {
		c.MaxWindow = DefaultMaxWindow
	}
	if len(c.AckWait) == 0 {
		c.AckWait = []time.Duration{DefaultAckWait}
	}
	if len(c.Backoff) == 0 {
		c.Backoff = []time.Duration{0}
	}
	c.AckWait = append([]time.Duration(nil), c.AckWait...)
	c.Backoff = append([]time.Duration(nil), c.Backoff...)
	return c
}

// of returns the entry of list for an attempt, which counts from 1: the last one repeats.
func of(list []time.Duration, attempt int) time.Duration { return list[step(len(list), attempt)] }

func step(entries, attempt int) int { return min(max(attempt, 1), entries) - 1 }
