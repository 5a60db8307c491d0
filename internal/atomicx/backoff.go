package atomicx

import "runtime"

// Backoff says how to wait for something that another goroutine will do: look, pause a little, look, let others run,
// look, and in the end park. The zero value parks at once.
//
// It is a plain value that one goroutine owns; there is no interface in the loop:
//
//	b := atomicx.Backoff{Spins: 4, Yields: 16}
//	for !done() {
//		if !b.Again() {
//			park()
//		}
//	}
type Backoff struct {
	// Spins is how many times to pause, each time longer, up to 16 pauses (about 0.4 us on amd64).
	Spins uint32
	// Steady says to pause once each time instead: it looks more often.
	Steady bool
	// Yields is how many times to let other goroutines run after that.
	Yields uint32
	// Endless says never to park: once the turns are used up they start over.
	Endless bool

	turn   uint32
	waited uint32
}

// Again passes one turn and reports whether to look again without parking. It returns false once the turns are used up and
// are not Endless.
func (b *Backoff) Again() bool {
	if Exploring {
		if b.Endless {
			Yield()
		}
		return b.Endless
	}
	t := b.turn
	switch {
	case t < b.Spins:
		if oneProc.Load() {
			Yield() // nobody else can do anything while this goroutine pauses
		} else {
			n := uint32(1)
			if !b.Steady {
				n <<= min(t, 4)
			}
			b.waited += n
			Pause(n)
		}
	case t-b.Spins < b.Yields: // no sum, which could wrap
		b.waited += yieldPauses
		Yield()
	case b.Endless:
		b.turn = 0
		b.waited += yieldPauses
		Yield() // in case there were no turns at all
		return true
	default:
		return false
	}
	b.turn++
	return true
}

// oneProc is set by NoteProcs and read by every loop that pauses. It publishes no memory.
var oneProc Bool

// NoteProcs looks how many processors goroutines may use now: where there is only one, pausing is a waste, and loops let
// others run instead.
func NoteProcs() {
	n := runtime.GOMAXPROCS(0)
	procs.Store(int64(n))
	oneProc.Store(n == 1)
}

// OneProc reports what NoteProcs last found.
func OneProc() bool { return oneProc.Load() }

// yieldPauses is how many pauses letting others run takes at least.
const yieldPauses = 4

// Reset starts over.
func (b *Backoff) Reset() { b.turn, b.waited = 0, 0 }

// Waited returns how many pauses have passed since the last Reset, at least.
func (b *Backoff) Waited() uint32 { return b.waited }

// Turns returns how many turns have passed since the last Reset, or since the turns last started over.
func (b *Backoff) Turns() uint32 { return b.turn }
