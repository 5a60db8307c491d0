package segment

import (
	"math"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

// ahead is how far the memory behind what is staged has been fetched for writing. Whoever appends one record at a time does something locked
// for each, and that waits for all that was stored before; so each record would wait until its lines have come from the readers that had
// them, or from memory. On processors that are far apart 19 to 22 million records a second are visible at once instead of 6 to 9. Batches
// do without: their stores wait in line.
type ahead struct {
	below int // more is fetched when the room is less than this
	pos   int // bytes before it have been
	top   int // so have entries from it on
}

const (
	bytesAhead   = 1024
	entriesAhead = 64
	fetchEach    = 256 // bytes, entries included, at least: one by one would cost a call for each record
)

// newAhead is for a segment that begins. On one processor nobody takes any lines, and to fetch them would cost 5 % of the records.
func newAhead(entries int) ahead {
	if atomicx.Exploring || atomicx.OneProc() {
		return ahead{below: math.MinInt}
	}
	return ahead{below: math.MaxInt, top: entries}
}

// fetchAhead fetches a little more if it is time for it.
func (l *Log) fetchAhead() {
	if l.room() < l.ahead.below {
		l.fetchMore()
	}
}

//go:noinline
func (l *Log) fetchMore() {
	a := &l.ahead
	a.below = l.room() - fetchEach
	if from, to := max(l.pos, a.pos), min(l.pos+bytesAhead, len(l.data)); from < to {
		atomicx.PrefetchWrite(unsafe.Pointer(&l.data[from]), to-from)
		a.pos = to
	}
	if from, to := max(0, l.top-entriesAhead), min(l.top, a.top); from < to {
		atomicx.PrefetchWrite(unsafe.Pointer(&l.index[from]), (to-from)*EntryBytes)
		a.top = from
	}
}
