package disk

import (
	"io"
	"sort"

	"github.com/leatlog/leat/segment/frame"
)

// Reader goes through the frames of a log, from the files. It sees what has been written when it looks. It is not for several
// goroutines at once; the log may be written, trimmed and resumed meanwhile.
type Reader struct {
	l    *Log
	next uint64

	// The file that it stands in; nil if none.
	at    *file
	lives int
	pos   int64
	c     chunks
	batch frame.Batch
}

// NewReader returns a reader whose first frame is the one that offset from is in: it may begin with records before that. from
// may be Next. Otherwise the error is an *OffsetError. Close gives its file back.
func (l *Log) NewReader(from uint64) (*Reader, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if from < l.low || from > l.next {
		return nil, &OffsetError{Asked: from, First: l.low, Next: l.next}
	}
	return &Reader{l: l, next: from}, nil
}

// Offset returns the offset that the reader has come to: everything before it has been returned, or was not asked for.
func (r *Reader) Offset() uint64 { return r.next }

// Close closes the file that the reader stands in.
func (r *Reader) Close() error {
	if r.at == nil {
		return nil
	}
	r.at = nil
	return r.c.f.Close()
}

// Next returns the next frame, of kind frame.Records or frame.Lost, and valid until the next call. It returns io.EOF at the end
// of what has been written, and then may be called again later; an *OffsetError if a Trim has passed the reader, a
// *CorruptError if the frame is damaged, ErrClosed, or an error of the file system.
func (r *Reader) Next() (*frame.Batch, error) {
	for {
		l := r.l
		l.mu.Lock()
		low, next, closed, lives := l.low, l.next, l.closed, l.lives
		var end uint64
		if r.at != nil {
			end, r.c.size = r.at.end, r.at.size
		}
		l.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case r.at != nil && (lives != r.lives || r.next >= end && r.next < next):
			if err := r.Close(); err != nil {
				return nil, err
			}
			continue
		case r.next == next:
			return nil, io.EOF
		case r.next > next || r.at == nil && r.next < low:
			return nil, &OffsetError{Asked: r.next, First: low, Next: next}
		}
		if r.at == nil {
			if ok, err := r.enter(); err != nil || !ok {
				if err == nil {
					continue // the files have changed
				}
				return nil, err
			}
		}
		b, err := r.c.frame(r.at.seed, r.pos)
		if err == nil && (b.Epoch != r.at.head.Epoch || b.First > r.next || b.Kind == frame.Seal) {
			err = errOrder
		}
		if err != nil {
			if damage(err) {
				l.mu.Lock()
				name := r.at.path()
				l.mu.Unlock()
				err = &CorruptError{File: name, Pos: r.pos, From: r.next, To: r.at.end, Err: err}
			}
			return nil, err
		}
		r.pos += b.Bytes()
		if b.Next() <= r.next {
			continue // on the way from an entry of the index
		}
		r.next = b.Next()
		r.batch = b
		return &r.batch, nil
	}
}

// enter opens the file that the next offset is in. It reports false if that is to be tried again.
func (r *Reader) enter() (ok bool, err error) {
	l := r.l
	l.mu.Lock()
	if r.next < l.low || r.next >= l.next {
		l.mu.Unlock()
		return false, nil
	}
	i := sort.Search(len(l.files), func(i int) bool { return l.files[i].head.Base > r.next }) - 1
	var f *file
	var entry frame.Entry
	var size int64
	gap := &CorruptError{File: l.dir, From: r.next, Err: errMissing}
	if i+1 < len(l.files) {
		gap.To = l.files[i+1].head.Base
	}
	if i >= 0 {
		f, size = l.files[i], l.files[i].size
		gap.File, gap.Pos = f.path(), size
	}
	if i < 0 || r.next >= f.end { // only if damage has been passed over
		l.mu.Unlock()
		return false, gap
	}
	entry = f.index.at(r.next)
	r.lives = l.lives
	l.mu.Unlock()
	in, err := l.openRead(f)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if r.next < l.low || r.lives != l.lives {
			return false, nil // removed just now, by a Trim or because a Resume has found that it means nothing any more
		}
		return false, err
	}
	r.at, r.pos = f, entry.Pos
	r.c = chunks{f: in, size: size, buf: r.c.buf[:0]}
	return true, nil
}

// OffsetAt returns the first offset of the first frame that has a record with an append time of t or later, or Next if there is
// none: so no record before it is that young. The error is one of the file system, or a *CorruptError.
func (l *Log) OffsetAt(t int64) (uint64, error) {
	l.mu.Lock()
	next, low := l.next, l.low
	var f *file
	var entry frame.Entry
	for _, x := range l.files {
		if x.newest >= t && !x.empty() {
			f, entry = x, x.index.when(t)
			break
		}
	}
	l.mu.Unlock()
	if f == nil {
		return next, nil
	}
	r, err := l.NewReader(max(entry.Offset, low))
	if err != nil {
		return 0, err
	}
	defer r.Close()
	for {
		b, err := r.Next()
		switch {
		case err == io.EOF:
			return r.Offset(), nil
		case err != nil:
			return 0, err
		case b.Kind == frame.Records && b.Newest >= t:
			return max(b.First, low), nil
		}
	}
}
