package powercut_test

import (
	"io"
	"math/rand/v2"
	"slices"
)

const (
	pageBytes   = 4096
	sectorBytes = 512 // what a disk writes as a whole, or not at all
)

type page [pageBytes]byte

// image is what a disk holds. Pages that are nil are zeroes. Clones share pages, so a page that is not one's own is copied
// before it is changed.
type image struct {
	pages []*page
	own   []bool
}

func newImage(bytes int64) *image {
	n := bytes / pageBytes
	return &image{make([]*page, n), make([]bool, n)}
}

func (im *image) bytes() int64 { return int64(len(im.pages)) * pageBytes }

// clone returns a copy. Neither of the two owns the pages that there are from then on.
func (im *image) clone() *image {
	clear(im.own)
	return &image{slices.Clone(im.pages), make([]bool, len(im.pages))}
}

// write changes bytes. What lies beyond the end is left out.
func (im *image) write(b []byte, off int64) {
	for len(b) > 0 && off < im.bytes() {
		i, from := off/pageBytes, off%pageBytes
		if !im.own[i] {
			p := new(page)
			if im.pages[i] != nil {
				*p = *im.pages[i]
			}
			im.pages[i], im.own[i] = p, true
		}
		n := copy(im.pages[i][from:], b)
		b, off = b[n:], off+int64(n)
	}
}

// read fills b as far as there is something, and returns how far.
func (im *image) read(b []byte, off int64) (n int) {
	for n < len(b) && off < im.bytes() {
		i, from := off/pageBytes, off%pageBytes
		k := min(len(b)-n, int(pageBytes-from))
		if p := im.pages[i]; p != nil {
			copy(b[n:n+k], p[from:])
		} else {
			clear(b[n : n+k])
		}
		n, off = n+k, off+int64(k)
	}
	return n
}

// writeTo writes what is not zero.
func (im *image) writeTo(w io.WriterAt) error {
	for i, p := range im.pages {
		if p != nil && *p != (page{}) {
			if _, err := w.WriteAt(p[:], int64(i)*pageBytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// event is something that a disk was told to do: a write, or a flush.
type event struct {
	flush bool
	off   int64
	data  []byte
}

// cut is a moment at which the power goes, and what of the last writes arrives all the same.
type cut struct {
	at    int // so many events of the log had been then
	since int // so many of them are sure: the last of these is a flush, or there is none
	mode  cutMode
	seed  uint64
	whole span // written as if it were one sector
	lie   int  // so many flushes more have been told to be done
}

// span is a part of a disk: from the one position, up to the other.
type span struct{ from, to int64 }

type cutMode uint8

const (
	keepNone   cutMode = iota // what was flushed, and nothing else
	keepAll                   // the last writes as well
	keepSome                  // of each sector by chance whether it arrives
	keepWrites                // of each write by chance whether it arrives
	loseOne                   // all but one sector
	keepOne                   // one sector
	keepFirst                 // all up to some sector: the last write is torn
	cutModes   = iota
)

func (m cutMode) String() string {
	return [...]string{"nothing", "everything", "some sectors", "some writes", "all but one sector", "one sector", "a beginning"}[m]
}

// sectors calls f for each sector that was written since the last flush, in order, with a number for each, and returns how many
// there were.
func (c cut) sectors(log []event, f func(n, write int, off int64, b []byte)) (n int) {
	for i, e := range log[c.since:c.at] {
		for b, off := e.data, e.off; len(b) > 0; n++ {
			end := off - off%sectorBytes + sectorBytes
			if c.whole.from <= off && off < c.whole.to {
				end = c.whole.to
			}
			k := min(int64(len(b)), end-off)
			f(n, i, off, b[:k])
			b, off = b[k:], off+k
		}
	}
	return n
}

// apply makes of an image that has all that is sure what the cut leaves.
func (c cut) apply(im *image, log []event) {
	count := c.sectors(log, func(int, int, int64, []byte) {})
	if count == 0 || c.mode == keepNone {
		return
	}
	rng := rand.New(rand.NewPCG(c.seed, 1))
	one, share := rng.IntN(count), []float64{0.1, 0.5, 0.9}[rng.IntN(3)]
	last, arrives := -1, false // keepWrites: what was decided for the last write
	c.sectors(log, func(n, write int, off int64, b []byte) {
		keep := true
		switch c.mode {
		case keepSome:
			keep = rng.Float64() < share
		case keepWrites:
			if write != last {
				last, arrives = write, rng.Float64() < share
			}
			keep = arrives
		case loseOne:
			keep = n != one
		case keepOne:
			keep = n == one
		case keepFirst:
			keep = n <= one
		}
		if keep {
			im.write(b, off)
		}
	})
}

// cuts returns n power cuts in the order of the log, from an event on. Every stretch between two flushes is taken about as often
// as any other.
func cuts(log []event, from, n int, whole span, rng *rand.Rand) (all []cut) {
	type stretch struct{ since, end int }
	var stretches []stretch
	since := from
	for i := from; i <= len(log); i++ {
		if i == len(log) || log[i].flush {
			stretches = append(stretches, stretch{since, i})
			since = i + 1
		}
	}
	for len(all) < n {
		for _, i := range rng.Perm(len(stretches)) {
			if s := stretches[i]; len(all) < n {
				c := cut{since: s.since, at: s.end, seed: rng.Uint64(), whole: whole}
				switch rng.IntN(4) {
				case 0: // just after the flush
					c.at = s.since
				case 1: // somewhere between
					c.at = s.since + rng.IntN(s.end-s.since+1)
					c.mode = cutMode(rng.IntN(cutModes))
				default: // just before the next flush has done anything
					c.mode = cutMode(1 + rng.IntN(cutModes-1))
				}
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b cut) int { return a.since - b.since })
	return all
}

// images calls f for each cut with what it leaves, in order. f may keep the image.
func images(before *image, log []event, all []cut, f func(int, cut, *image) bool) {
	sure, n := before.clone(), 0
	for i, c := range all {
		for ; n < c.since; n++ {
			sure.write(log[n].data, log[n].off)
		}
		im := sure.clone()
		c.apply(im, log)
		if !f(i, c, im) {
			return
		}
	}
}
