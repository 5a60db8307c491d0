package disk

import (
	"errors"
	"io/fs"
	"math"

	"github.com/leatlog/leat/segment/frame"
)

// Verified is what Verify has found.
type Verified struct {
	// Files, Frames and Records are how many were read, and Bytes how long the files are.
	Files, Frames, Records, Bytes int64
	// Damage is all that is wrong, what was found at Open included: one for each file at the most.
	Damage []*CorruptError
}

// Verify reads all that the log holds, and checks each frame by its checksums, each record by its form, and the index of each file
// against what is in it. A file that has been trimmed meanwhile is passed over. progress may be nil; it is told of so many bytes more.
// The error is one of the file system, which says nothing about what is there.
func (l *Log) Verify(progress func(bytes int64)) (Verified, error) {
	if progress == nil {
		progress = func(int64) {}
	}
	l.mu.Lock()
	v := Verified{Damage: append([]*CorruptError(nil), l.recovery.Damage...)}
	files := make([]file, len(l.files))
	for i, f := range l.files {
		files[i] = *f
		files[i].index.list = append([]frame.Entry(nil), f.index.list...)
	}
	l.mu.Unlock()
	for i := range files {
		bad, err := l.verifyFile(&files[i], &v, progress)
		switch {
		case errors.Is(err, fs.ErrNotExist) && i+1 < len(files):
			continue
		case err != nil:
			return v, err
		case bad != nil && !v.knows(bad):
			v.Damage = append(v.Damage, bad)
		}
	}
	return v, nil
}

// knows reports whether there is damage of the same place.
func (v *Verified) knows(e *CorruptError) bool {
	for _, d := range v.Damage {
		if d.File == e.File && d.Pos == e.Pos {
			return true
		}
	}
	return false
}

// verifyFile reads one file.
func (l *Log) verifyFile(f *file, v *Verified, progress func(int64)) (*CorruptError, error) {
	in, err := l.openRead(f)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	v.Files++
	v.Bytes += f.size
	c := chunks{f: in, size: f.size}
	oldest, newest := int64(math.MaxInt64), int64(math.MinInt64)
	sum := frame.None
	pos, off, entries := int64(frame.SegmentBytes), f.head.Base, f.index.list
	bad := func(err error) *CorruptError {
		return &CorruptError{File: f.path(), Pos: pos, From: off, To: max(off, f.end), Err: err}
	}
	for pos < f.size {
		b, err := c.frame(f.seed, pos)
		if err == nil && (b.First != off || b.Epoch != f.head.Epoch || b.Kind == frame.Seal) {
			err = errOrder
		}
		before := sum
		if err == nil {
			err = verifyRecords(&b, &sum)
		}
		if err != nil {
			if damage(err) {
				return bad(err), nil
			}
			return nil, err
		}
		if len(entries) > 0 && entries[0].Pos <= pos {
			e := frame.Entry{Offset: off, Pos: pos, Before: newest, Sum: before}
			if !f.summed {
				e.Sum = entries[0].Sum
			}
			if entries[0] != e {
				return bad(errIndex), nil
			}
			entries = entries[1:]
		}
		if b.Kind == frame.Records {
			oldest, newest = min(oldest, b.Time), max(newest, b.Newest)
			v.Records += int64(b.Count)
		}
		v.Frames++
		pos += b.Bytes()
		off = b.Next()
		progress(b.Bytes())
	}
	seen := file{time: oldest, newest: newest}
	from, to := seen.times()
	if says, til := f.times(); pos != f.size || off != f.end || len(entries) > 0 || from != says || to != til ||
		f.summed && f.sum != sum {
		return bad(errIndex), nil
	}
	return nil, nil
}

// verifyRecords looks at each record of a frame, and adds it to sum.
func verifyRecords(b *frame.Batch, sum *frame.Sum) error {
	var r frame.Record
	it := b.Records()
	for it.Next(&r) {
		if _, err := View(&r); err != nil {
			return err
		}
	}
	if err := it.Err(); err != nil {
		return err
	}
	s, err := b.Sum()
	sum.Add(s)
	return err
}
