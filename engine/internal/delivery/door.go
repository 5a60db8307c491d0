package delivery

import (
	"time"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/mutant"
)

// door is what a worker goes through to call user code, and what others shut.
//
// # Shared state
//
//	wish   bits set by callers of shut, looked at by the worker before each call of user code
//	phase  stored by the worker: resting, about to call user code, inside it; loaded by callers of settle
//
// # Proof: nothing begins after shut returned
//
// The worker stores about-to in phase and then loads wish. Who shuts sets its bit in wish and then loads phase. In their one
// total order either the worker sees the bit, and does not go in, or the other one sees about-to, and waits for the few
// instructions until the worker has either seen the bit or gone in: a call that thus began before shut returned.
type door struct {
	_ atomicx.Pad
	// wish is set by callers, and cleared by whoever the bit says. It publishes no memory.
	wish atomicx.Uint32
	// phase is stored by the worker and loaded by those who shut the door, and by Stats. It publishes no memory.
	phase atomicx.Uint64
	_     atomicx.Pad
}

// What others want.
const (
	wishPause uint32 = 1 << iota
	wishSeek
	wishStop
	wishHold // nothing at all, before Start
)

// What the worker is doing.
const (
	resting uint64 = iota
	aboutTo
	inside
)

// enter begins a call of user code, unless somebody wants something that comes first.
func (d *door) enter() bool {
	if mutant.Enabled && mutant.Is(mutant.DeliverAfterStop) {
		time.Sleep(time.Millisecond / 4)
		d.phase.Store(inside)
		return true
	}
	d.phase.Store(aboutTo)
	if d.wish.Load() != 0 { // pairs with shut
		d.leave()
		return false
	}
	atomicx.StoreRelease(&d.phase, inside)
	return true
}

// leave ends it.
func (d *door) leave() { atomicx.StoreRelease(&d.phase, resting) }

// shut sets a wish and returns when no call can begin that does not know it.
func (d *door) shut(wish uint32) {
	d.wish.Or(wish)
	d.settle()
}

// settle is the second half of shut, after the wish has been set.
func (d *door) settle() {
	for turn := uint32(0); d.phase.Load() == aboutTo; turn++ {
		atomicx.Relax(turn)
	}
}

// entered reports whether user code is being called.
func (d *door) entered() bool { return d.phase.Load() == inside }
