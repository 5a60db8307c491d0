package disk

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/frame"
)

// Piece is a run of frames of a file to which nothing is added any more, and what the file's index says of their records. So
// they can have a place in a log in memory before anybody reads them: see segment.Log.AttachCold.
type Piece struct {
	// First and End are the offsets of the records: [First, End). Some may be below the log's First.
	First, End uint64
	// Memory is how many bytes they take in a segment of a log in memory, index entries included.
	Memory int64
	// No record was appended before Oldest, the last one was at Newest, and no timestamp is greater than Latest.
	Oldest, Newest, Latest int64

	at       *file // which is immutable
	pos, to  int64
	before   frame.Sum // of what lies before in the file
	sumAfter frame.Sum // and with the piece
}

// Pieces returns the oldest records as pieces, as small as the indexes of the files allow, in order and without a gap. They
// end before the file that records go to, and before a file of which the index does not say enough: records of it are lost, or
// it was written by an earlier version. No file is read for it.
func (l *Log) Pieces() (list []Piece) {
	l.mu.Lock()
	defer l.mu.Unlock()
	files := l.files
	if n := len(files); n > 0 && !files[n-1].sealed {
		files = files[:n-1] // it may grow
	}
	next := l.low
	for _, f := range files {
		if !f.summed || f.empty() || f.head.Base > next || len(list) > 0 && f.head.Base != next {
			break
		}
		for i, e := range f.index.list {
			end := frame.Entry{Offset: f.end, Pos: f.size, Before: f.newest, Sum: f.sum}
			if i+1 < len(f.index.list) {
				end = f.index.list[i+1]
			}
			p := Piece{First: e.Offset, End: end.Offset, Oldest: max(e.Before, f.time), Newest: end.Before, at: f, pos: e.Pos, to: end.Pos,
				before: e.Sum, sumAfter: end.Sum}
			if p.sum(); !p.possible() {
				return list // whoever reads the file finds out what is wrong
			}
			if p.End > l.low {
				list = append(list, p)
			}
		}
		next = f.end
	}
	return list
}

// sum works out what follows from before and sumAfter.
func (p *Piece) sum() {
	p.Memory = int64(p.sumAfter.Body-p.before.Body) + int64(p.End-p.First)*segment.EntryBytes
	p.Latest = p.sumAfter.Latest
}

// mostGrowth is by how much a record can be larger in memory than in a file: the entry and the length of its headers, less what is
// in the file in their place.
const mostGrowth = segment.EntryBytes + 2

// possible reports whether there can be such records in that place: checksums do not say that, and memory is taken for them before
// they are read.
func (p *Piece) possible() bool {
	bytes, records := p.to-p.pos, int64(p.End-p.First)
	return records > 0 && records < bytes && p.Oldest <= p.Newest && p.sumAfter.Body >= p.before.Body &&
		p.Memory >= records*segment.EntryBytes && p.Memory <= bytes+records*mostGrowth
}

// Join adds q, which comes next, to p, and reports whether it did: they have to lie in one file.
func (p *Piece) Join(q *Piece) bool {
	if p.at != q.at || p.to != q.pos {
		return false
	}
	p.End, p.Newest, p.to, p.sumAfter = q.End, q.Newest, q.to, q.sumAfter
	p.sum()
	return true
}

// Corrupt returns the error for a piece whose records are not what the index says.
func (p *Piece) Corrupt(cause error) error {
	return &CorruptError{File: p.at.name, Pos: p.pos, From: p.First, To: p.End, Err: cause}
}

// buffers are those of ReadPiece.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// ReadPiece reads the frames of a piece and gives them to yield, until that returns an error. They are valid during the call. An
// error of its own is an *OffsetError if a Trim has dropped all of the piece, a *CorruptError, ErrClosed, or one of the file
// system.
func (l *Log) ReadPiece(p *Piece, yield func(*frame.Batch) error) error {
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return ErrClosed
	}
	in, err := l.openRead(p.at)
	if err != nil {
		l.mu.Lock()
		low, next := l.low, l.next
		l.mu.Unlock()
		switch {
		case p.End <= low:
			return &OffsetError{Asked: p.First, First: low, Next: next}
		case errors.Is(err, fs.ErrNotExist) && !l.cfg.ReadOnly: // otherwise its owner may have trimmed it
			return p.Corrupt(errMissing)
		}
		return err
	}
	defer in.Close()
	buf := buffers.Get().(*[]byte)
	c := chunks{f: in, size: p.to, buf: (*buf)[:0]}
	defer func() {
		if cap(c.buf) <= 4*chunkBytes {
			*buf = c.buf
		}
		buffers.Put(buf)
	}()
	next := p.First
	for pos := p.pos; pos < p.to; {
		b, err := c.frame(p.at.seed, pos)
		if err == nil && (b.First != next || b.Epoch != p.at.head.Epoch || b.Kind == frame.Seal) {
			err = errOrder
		}
		if err != nil {
			if damage(err) {
				err = &CorruptError{File: p.at.name, Pos: pos, From: next, To: p.End, Err: err}
			}
			return err
		}
		if err := yield(&b); err != nil {
			return err
		}
		pos += b.Bytes()
		next = b.Next()
	}
	if next != p.End {
		return p.Corrupt(errIndex)
	}
	return nil
}
