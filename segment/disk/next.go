package disk

import (
	"errors"
	"io/fs"
	"math"
	"strings"

	"github.com/leatlog/leat/segment/frame"
)

// What becomes of a file that was the active one before it had its name, because the one before had not been sealed yet: see roll.

// loadNext looks for such a file. Nothing in it had ever been durable. If the file before is whole, as it is if only the process has
// died, the log goes on in it; otherwise it is a part of the torn end, and one of the files that are removed.
func (l *Log) loadNext(x *found, limit uint64) error {
	if len(x.files) == 0 || len(x.rec.Damage) > 0 {
		return nil
	}
	last := x.files[len(x.files)-1]
	for _, name := range x.temps {
		f, s, err := l.scanNext(name, last.end)
		x.rec.BytesRead += s.read
		switch {
		case err != nil:
			return err
		case f == nil || !f.follows(last):
		case f.head.Base > last.end && s.proven > last.end: // what it says was safe is not there
			return l.damaged(x, &CorruptError{File: last.name, Pos: last.size, From: last.end, To: s.proven, Err: errEvidence})
		case l.cfg.broken.has(flawNextLost):
		case f.head.Base == last.end || l.cfg.broken.has(flawNextGap):
			return l.takeNext(x, f, limit)
		case x.rec.Cut == nil && !f.empty():
			x.rec.Cut = &Cut{File: f.path(), Pos: frame.SegmentBytes, Bytes: f.size - frame.SegmentBytes, Err: errOrder}
		}
	}
	return nil
}

// follows reports whether f, which does not have its name yet, was made to come behind a file: there are records in that, and both are
// of one life of one log.
func (f *file) follows(last *file) bool {
	a, b := &f.head, &last.head
	return a.Topic == b.Topic && a.Partition == b.Partition && a.Epoch == b.Epoch && a.Base > b.Base
}

// takeNext has the log go on in a file that does not have its name yet, unless nothing is in it.
func (l *Log) takeNext(x *found, f *file, limit uint64) error {
	full, cut := x.tail, x.rec.Cut
	f = newNext(f.name, f.head)
	if err := l.loadFile(x, f, 0, limit); err != nil {
		return err
	}
	if f.empty() {
		x.tail = full
		if cut != nil {
			x.rec.Cut = cut
		}
		return nil
	}
	x.next, x.full = true, full
	x.files = append(x.files, f)
	return nil
}

// newNext returns a file that does not have its name yet, in which there is no record.
func newNext(name string, head frame.Segment) *file {
	f := newFile(name, head)
	f.temp = true
	return f
}

// scanNext reads a file with the name of one that does not have its own yet. It returns nil if it means nothing, or begins below an
// offset.
func (l *Log) scanNext(name string, from uint64) (f *file, s scan, err error) {
	base, ok := parseName(strings.TrimSuffix(name, tempExt))
	if !ok || base < from {
		return nil, s, nil
	}
	name = l.path(segmentName(base))
	in, err := l.fs.OpenRead(name + tempExt)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && l.cfg.ReadOnly {
			err = nil // its owner has given it its name meanwhile, or removed it
		}
		return nil, s, err
	}
	defer in.Close()
	head, err := readHead(in, base)
	if err != nil {
		if damage(err) {
			err = nil
		}
		return nil, s, err
	}
	f = newNext(name, head)
	s, err = l.scanFrames(f, in, math.MaxUint64)
	return f, s, err
}

// salvageNext goes on in a file that does not have its name yet, as loadNext does. If nothing is left of the one before the epoch
// tells: those of earlier ones have been removed.
func (s *salvage) salvageNext(heads []*file) error {
	if len(heads) == 0 {
		return nil
	}
	last := heads[len(heads)-1]
	for _, name := range s.found.temps {
		f, found, err := s.old.scanNext(name, s.next)
		if err != nil {
			return err
		}
		if f == nil || last != nil && !f.follows(last) || last == nil && !s.latest(f) {
			continue
		}
		s.proven = max(s.proven, found.proven)
		if f.head.Base > max(s.next, s.proven) {
			continue // behind a torn end
		}
		if err := s.to.under(f.head.Epoch); err != nil {
			return err
		}
		return s.reading(f.path(), func(c *chunks) error { return s.frames(newFile(f.name, f.head), c) })
	}
	return nil
}

// latest reports whether f is of this log, of no epoch before the latest that is known, and has records.
func (s *salvage) latest(f *file) bool {
	c := &s.old.cfg
	return f.head.Topic == c.Topic && f.head.Partition == c.Partition && f.head.Epoch >= s.found.epoch && !f.empty()
}
