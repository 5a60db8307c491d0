package cursor

import (
	"errors"
	"math/bits"
)

// DefaultMaxAhead is how far ahead of the floor the zero value of Acks remembers acknowledgements.
const DefaultMaxAhead = 1 << 16

// ErrTooFarAhead is returned by Acks.Ack for an offset that is so far above the floor that it is not remembered. It works
// once the floor has come closer.
var ErrTooFarAhead = errors.New("cursor: acknowledged too far ahead of the floor")

// Acks turns acknowledgements that come in any order into a floor: everything below it is acknowledged, and it is not. What
// has been acknowledged above the floor is remembered, a bit for each offset, until the floor gets there.
//
// The zero value is ready to use, with the floor at 0. It is one goroutine's, or under its owner's lock.
//
// # Invariants
//
// Floor. Every offset below the floor has been acknowledged, or passed by Raise or Reset; the one at the floor has not. So a
// floor that is stored as a group's position loses nothing, whatever the order in which the work was finished.
//
// Never back. Only Reset lowers the floor.
//
// Once. Ack says that it was the first for each offset once between two Resets, and not at all for an offset that Raise or
// Reset has passed.
//
// Bound. Offsets from floor+MaxAhead on are refused and change nothing. The memory is at most the next power of two of
// MaxAhead bits, it grows by doubling as far as it was ever needed, and nothing else is allocated: none for
// acknowledgements in order.
type Acks struct {
	// MaxAhead is how many offsets from the floor on can be acknowledged. 0 means DefaultMaxAhead. It may be changed at any
	// time; what is remembered stays so.
	MaxAhead int

	floor uint64
	high  uint64 // one past the highest offset that is acknowledged; the floor if none above it is
	ahead int    // how many offsets in [floor, high) are acknowledged

	// ring has the bit of offset o in word o/64 modulo its length, a power of two. high-floor is at most the number of bits,
	// so the bits of offsets in [floor, high) are distinct; all others are 0.
	ring []uint64
}

const wordBits = 64

// Floor returns the end of the gap-free prefix of what is acknowledged: the next offset to process.
func (a *Acks) Floor() uint64 { return a.floor }

// Ahead returns how many offsets above the floor are acknowledged.
func (a *Acks) Ahead() int { return a.ahead }

// Limit returns the lowest offset that Ack refuses now.
func (a *Acks) Limit() uint64 { return a.floor + a.maxAhead() }

// Done reports whether off is below the floor, or acknowledged above it.
func (a *Acks) Done(off uint64) bool {
	return off < a.floor || off < a.high && a.ring[a.word(off)]&bit(off) != 0
}

// Ack acknowledges off, and reports whether it was the first to do so. The only error is ErrTooFarAhead.
func (a *Acks) Ack(off uint64) (first bool, err error) {
	switch {
	case off < a.floor:
		return false, nil
	case off == a.floor:
		a.floor++
		a.run()
		return true, nil
	case off-a.floor >= a.maxAhead():
		return false, ErrTooFarAhead
	}
	if off-a.floor >= uint64(len(a.ring))*wordBits {
		a.grow(off)
	}
	w := &a.ring[a.word(off)]
	if *w&bit(off) != 0 {
		return false, nil
	}
	*w |= bit(off)
	a.ahead++
	a.high = max(a.high, off+1)
	return true, nil
}

// Raise lifts the floor to to, or further if what comes there is acknowledged, and returns how many of the offsets that it
// has passed were not. It is the cumulative acknowledgement of everything below to, and what is to be done when retention
// has dropped it. A floor at to or beyond stays where it is.
func (a *Acks) Raise(to uint64) (passed uint64) {
	if to <= a.floor {
		return 0
	}
	known := a.clear(a.floor, min(to, a.high))
	passed = to - a.floor - uint64(known)
	a.ahead -= known
	a.floor = to
	a.run()
	return passed
}

// Reset puts the floor at floor, forward or back, and forgets everything above it.
func (a *Acks) Reset(floor uint64) {
	a.clear(a.floor, a.high)
	a.floor, a.high, a.ahead = floor, floor, 0
}

// run moves the floor, which has just been lifted, over what is acknowledged already.
func (a *Acks) run() {
	for a.ahead > 0 {
		// The bits of this word from the floor's on. Those below the floor's, if any, are of the other end of the ring, but
		// they are not reached: shifting puts zeroes behind the last one.
		w := &a.ring[a.word(a.floor)]
		n := bits.TrailingZeros64(^(*w >> (a.floor % wordBits)))
		if n == 0 {
			break
		}
		*w &^= mask(n) << (a.floor % wordBits)
		a.floor += uint64(n)
		a.ahead -= n
	}
	a.high = max(a.high, a.floor)
}

// clear clears the bits of the offsets in [from, to), and returns how many were set.
func (a *Acks) clear(from, to uint64) (n int) {
	for from < to {
		m := mask(int(min(to-from, wordBits-from%wordBits)))
		w := &a.ring[a.word(from)]
		set := *w & (m << (from % wordBits))
		n += bits.OnesCount64(set)
		*w &^= set
		from += wordBits - from%wordBits
	}
	return n
}

// grow makes the ring large enough for off.
func (a *Acks) grow(off uint64) {
	size := max(1, 2*len(a.ring))
	for uint64(size)*wordBits <= off-a.floor {
		size *= 2
	}
	old := Acks{ring: a.ring}
	a.ring = make([]uint64, size)
	for from := a.floor; from < a.high; from += wordBits - from%wordBits {
		m := mask(int(min(a.high-from, wordBits-from%wordBits)))
		a.ring[a.word(from)] |= old.ring[old.word(from)] & (m << (from % wordBits))
	}
}

func (a *Acks) maxAhead() uint64 {
	if a.MaxAhead <= 0 {
		return DefaultMaxAhead
	}
	return uint64(a.MaxAhead)
}

func (a *Acks) word(off uint64) int { return int(off / wordBits & uint64(len(a.ring)-1)) }

func bit(off uint64) uint64 { return 1 << (off % wordBits) }

// mask returns the n lowest bits, for n from 0 to 64.
func mask(n int) uint64 { return 1<<n - 1 }
