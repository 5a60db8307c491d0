package partition

import (
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// Chase lets a reader fall behind that would otherwise take every record from under the appender's hands: each look then
// costs the appender a cache line, and what the reader's processor fetches ahead costs it some more, so that both run 2 to 10
// times slower than when the reader takes a few dozen at a time. It tells a stream by finding few records at once, many times
// in a row, without having waited for long. Then it tries what comes if it stays away for a few microseconds. If that is more,
// it was in the way. If not, records just come slowly, and it rests for twice as many looks as after the last time.
//
// While records keep coming at more than about 13 million a second it goes on, up to as many as the reader says or the end of the
// segment: what was written so long ago has left the appender's own caches, from where it would be slow to get if the cores are far
// apart (1 appender with AppendBatch, far, 64 MiB kept: 38 million a second after one pause, 60 after a segment; near it makes no
// difference).
type Chase struct {
	streak uint32 // looks in a row that found a few records at once
	vain   uint32 // how often in a row it stayed away in vain
	rest   uint32 // for how many looks it does not try again
}

// Stay is called when r, whose gate is g or nil, has found records after a wait of so many nanoseconds, about. It may stay away until
// the window has most of them, or fewer if g would be put out for that; then it may have become empty, if what was there has been dropped
// meanwhile. On one processor nobody could do anything meanwhile.
func (c *Chase) Stay(r *segment.Reader, g *Gate, waited int64, most int) {
	have := r.Window()
	if have >= chaseMuch || waited > chaseWaited+chaseEach*int64(have) || atomicx.OneProc() {
		c.streak = 0
		return
	}
	if c.streak++; c.streak <= chaseStreak {
		return
	}
	if c.rest > 0 {
		c.rest--
		return
	}
	most = g.lagging(most)
	for tries, paid := chaseTries, false; tries > 0 && have < most; {
		atomicx.Pause(chasePause)
		r.Refill() // may find that the position has been dropped; then the window is empty
		came := r.Window() - have
		have += came
		if came >= chaseMany || came >= chaseWorth && have < chaseSome {
			tries, paid, c.vain = chaseAgain, true, 0
			continue
		}
		if tries--; tries == 0 && !paid {
			c.vain = min(c.vain+1, chaseVain)
			c.rest = chaseStreak << c.vain
		}
	}
}

const (
	pauseNs     = 25            // how long a pause takes, about
	chaseWaited = 64 * pauseNs  // having waited for longer than this is not,
	chaseEach   = 4 * pauseNs   // and this for each record
	chaseStreak = 8             // so many times in a row
	chasePause  = 48            // pauses: how far it lets the appender get ahead at a time
	chaseWorth  = 6             // records in such a time that make it worth it,
	chaseSome   = 256           // up to so many in all
	chaseMany   = 16            // and records that make it worth it up to as many as it wants
	chaseTries  = 4             // so many times, since it takes a while until the appender has got back its cache lines
	chaseAgain  = 2             // and so many times after it was worth it: what is published in batches comes by jerks
	chaseVain   = 8             // so often the rest is doubled at the most
	chaseMuch   = 1 << 12       // records at once that it is not at anybody's heels with
	chaseTarget = 4 * chaseMuch // how far a Reader falls behind in all, if the segment does not end before
)
