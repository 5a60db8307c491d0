package disk

import (
	"errors"
	"io/fs"
	"math"
	"strings"

	"github.com/leatlog/leat/segment/frame"
)

// What becomes of a file that was the active one before it had its name, because the one before had not been sealed yet: see roll.

// loadNext looks for a file that was the active one before it had its name, since the one before had not been sealed yet. Nothing in it
// had ever been durable. If the file before is whole it goes on there, as it does if only the process has died; otherwise it
// is one of those that are removed.
func (l *Log) loadNext(x *found, limit uint64) error {
	if len(x.files) == 0 || len(x.rec.Damage) > 0 {
		return nil
	}
	last := x.files[len(x.files)-1]
	for _, name := range x.temps {
		base, ok := parseName(strings.TrimSuffix(name, tempExt))
		if !ok || base < last.end {
			continue
		}
		f, s, err := l.scanNext(base)
		switch {
		case err != nil:
			return err
		case f == nil || f.head.Epoch != last.head.Epoch:
		case base > last.end && s.proven > last.end: // what it says was safe is not there
			return l.damaged(x, &CorruptError{File: last.name, Pos: last.size, From: last.end, To: s.proven, Err: errEvidence})
		case l.cfg.broken.has(flawNextLost):
		case base == last.end || l.cfg.broken.has(flawNextGap):
			return l.takeNext(x, f, limit)
		}
	}
	return nil
}

// takeNext has the log go on in a file that does not have its name yet, unless nothing is in it.
func (l *Log) takeNext(x *found, f *file, limit uint64) error {
	full, cut := x.tail, x.rec.Cut
	f = newFile(f.name, f.head)
	f.temp = true
	if err := l.loadFile(x, f, 0, limit); err != nil {
		return err
	}
	if f.empty() {
		x.tail, x.rec.Cut = full, cut
		return nil
	}
	x.next, x.full = true, full
	x.files = append(x.files, f)
	return nil
}

// scanNext reads a file that does not have its name yet. It returns nil if there is none, or none that means anything.
func (l *Log) scanNext(base uint64) (f *file, s scan, err error) {
	f = newFile(l.path(segmentName(base)), frame.Segment{})
	f.temp = true
	in, err := l.fs.OpenRead(f.path())
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
	f = newFile(f.name, head)
	f.temp = true
	s, err = l.scanFrames(f, in, math.MaxUint64)
	return f, s, err
}

// salvageNext goes on in a file that does not have its name yet, as loadNext does.
func (s *salvage) salvageNext(heads []*file) error {
	if len(heads) == 0 || heads[len(heads)-1] == nil {
		return nil
	}
	for _, name := range s.found.temps {
		base, ok := parseName(strings.TrimSuffix(name, tempExt))
		if !ok || base < s.next {
			continue
		}
		f, found, err := s.old.scanNext(base)
		if err != nil {
			return err
		}
		if f == nil || f.head.Epoch != heads[len(heads)-1].head.Epoch {
			continue
		}
		if base > s.next {
			s.proven = max(s.proven, found.proven)
			continue
		}
		return s.reading(f.path(), func(c *chunks) error { return s.frames(newFile(f.name, f.head), c) })
	}
	return nil
}
