package segment

import (
	"math/bits"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

// place is one segment in a directory, with its base beside it so that a search touches no segment, and with the bytes of all segments
// there were before it since one was the first: their difference is what lies between two of them.
type place struct {
	base   uint64
	seg    *segment
	before int64
}

// directory is the segments of a log in order. It is never changed once it is published.
type directory struct{ segs []place }

// find returns the last segment whose base is not above off, or nil if there is none. If off is retained and below a
// committed length that was loaded before the directory was, that is the segment that has off.
func (d *directory) find(off uint64) *segment {
	i := d.index(off)
	if i < 0 {
		return nil
	}
	p := &d.segs[i]
	atomicx.Reads(unsafe.Pointer(p))
	return p.seg
}

// index is find for the place in the directory; -1 if there is none.
func (d *directory) index(off uint64) int {
	segs := d.segs
	n := len(segs)
	if n == 0 || off < segs[0].base {
		return -1
	}
	if off >= segs[n-1].base { // most look at the newest
		return n - 1
	}
	at := 0
	for n > 1 { // segs[at].base <= off, and the answer is among the n from at on
		half := n / 2
		// at += half if segs[at+half].base <= off, without a branch that could not be predicted.
		_, above := bits.Sub64(off, segs[at+half].base, 0)
		at += half & (int(above) - 1)
		n -= half
	}
	return at
}

// extend adds a segment at the end of the directory.
func (l *Log) extend(s *segment) {
	p := place{base: s.base, seg: s}
	if n := len(l.segs); n > 0 {
		last := &l.segs[n-1] // it has ended
		p.before = last.before + last.seg.bytes
	}
	segs := append(l.segs, p)
	atomicx.Writes(unsafe.Pointer(&segs[len(segs)-1]))
	l.setDir(segs)
}

// setDir replaces the directory. Only the appender calls it. segs may share a backing array with the present one; see
// Directory in the proof of Log.
func (l *Log) setDir(segs []place) {
	l.segs = segs
	l.dir.Store(&directory{segs: segs})
}
