package atomicx

// Vigil is how a goroutine that has used up its Backoff goes on waiting: awake for a while if that has been worth it lately, and
// else parked. To wake a goroutine that has parked takes 5 to 100 us and some of both sides' time; so where what it waits for
// comes more often than that, it is better off awake, and so is who wakes it. As many may be awake at a time as leave one
// processor to others.
//
//	for turn := v.Begin(); v.Again(&turn); {
//		if there() {
//			v.End(true)
//			return
//		}
//	}
//	v.Park(clock.Now())
//	...                      // parked
//	v.Unpark(clock.Now())
//
// The zero value has not been worth it yet. It is one goroutine's own.
type Vigil struct {
	credit uint8 // how often it may be in vain until it counts as not worth it
	awake  bool  // it has been counted among those that are awake
	parked int64
}

const (
	vigilWorth = 40_000 // ns: what comes after at most so long is worth staying awake for
	vigilTurns = 1024   // of about 100 ns: how long to stay awake
	vigilPause = 4      // pauses between two looks
	vigilYield = 256    // each so many turns others get their turn instead
	vigilVain  = 3      // times in a row: one long gap, or a slow wake, says little
)

// Begin begins to wait awake, if that is worth it and there is a processor for it.
func (v *Vigil) Begin() (turn uint32) {
	if v.credit == 0 || !takeAwake() {
		return vigilTurns
	}
	v.awake = true
	return 0
}

// Again passes one turn, and reports whether to look again. It returns false when it is time to park.
func (v *Vigil) Again(turn *uint32) bool {
	t := *turn
	if t >= vigilTurns {
		if v.awake {
			v.End(false)
		}
		return false
	}
	if t%vigilYield == vigilYield-1 {
		Yield()
	} else {
		Pause(vigilPause)
	}
	*turn = t + 1
	return true
}

// End ends the wait before its time, and says whether it was worth it.
func (v *Vigil) End(pays bool) {
	v.note(pays)
	v.awake = false
	leaveAwake()
}

func (v *Vigil) note(pays bool) {
	switch {
	case pays:
		v.credit = vigilVain
	case v.credit > 0:
		v.credit--
	}
}

// Park notes the time at which the goroutine parks.
func (v *Vigil) Park(now int64) { v.parked = now }

// Unpark notes the time at which it has been woken: if that is soon after, it stays awake the next time.
func (v *Vigil) Unpark(now int64) { v.note(now-v.parked <= vigilWorth) }

// Note says whether staying awake would have been worth it, for who knows better than Park and Unpark.
func (v *Vigil) Note(pays bool) { v.note(pays) }

// procs is what NoteProcs last found. It publishes no memory.
var procs Int64

// awake is how many vigils there are. Added to by takeAwake and leaveAwake, and looked at by nobody else; it publishes no
// memory.
var awake Int64

// takeAwake counts one more, if one processor is left for others.
func takeAwake() bool {
	if Exploring || oneProc.Load() {
		return false
	}
	if awake.Add(1) < procs.Load() {
		return true
	}
	awake.Add(-1)
	return false
}

func leaveAwake() { awake.Add(-1) }
