package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// Recovery is what Open has found and done.
type Recovery struct {
	// First and Next say what the log holds: [First, Next). All of it is durable, unless it was opened for reading only.
	First, Next uint64
	// Epoch is that of the log now.
	Epoch uint64
	// New says that there was no log.
	New bool
	// Clean says that the log had been closed properly.
	Clean bool
	// Cut is the torn end that was cut off, or that would be: nil if there was none.
	Cut *Cut
	// Mended are the files whose index was damaged, and was made anew from their frames, which are all there.
	Mended []string
	// Removed is how many files were removed that a Trim had left, and unfinished ones.
	Removed int
	// Damage is what is damaged. It is empty unless the log was opened for reading only.
	Damage []*CorruptError
	// BytesRead is how much was read to find all this.
	BytesRead int64
}

// Cut is the torn end of a log.
type Cut struct {
	// File is the file, and Pos where its sound frames ended. Bytes is how much was there beyond that.
	File       string
	Pos, Bytes int64
	// Err is what was wrong with the first frame that was cut.
	Err error
}

// Open opens the log in a directory, or makes one; only the last part of the path is made if it is not there. It returns
// ErrLocked, ErrForeign, ErrVersion, a *CorruptError, an error of the config, or one of the file system, for which it may help
// to try again. See the package comment for what it does.
func Open(dir string, c Config) (*Log, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Log{cfg: c, dir: dir, fs: c.FS}
	if err = l.enclose(); err == nil {
		err = l.loadFirst()
	}
	if err != nil {
		if closeErr := l.release(); closeErr != nil {
			err = errors.Join(err, closeErr)
		}
		return nil, err
	}
	return l, nil
}

// mostLooks is how often a log is looked at that is opened for reading only, while something else seems to be wrong each time.
const mostLooks = 100

// loadFirst is load for Open. If the log is for reading only somebody else may write to it and trim it meanwhile; so what is missing or
// damaged counts if it is so twice.
func (l *Log) loadFirst() error {
	before := ""
	for look := 1; ; look++ {
		err := l.load(0, math.MaxUint64)
		if !l.cfg.ReadOnly {
			return err
		}
		wrong := ""
		if err != nil {
			wrong = err.Error()
		} else if len(l.recovery.Damage) > 0 {
			wrong = fmt.Sprint(l.recovery.Damage)
		}
		if wrong == "" || wrong == before || look == mostLooks {
			return err
		}
		before = wrong
	}
}

// enclose makes the directory if need be, and takes its lock.
func (l *Log) enclose() (err error) {
	if l.cfg.ReadOnly {
		return nil
	}
	if err := l.fs.Mkdir(l.dir); err != nil {
		return err
	}
	if err := l.fs.SyncDir(filepath.Dir(l.dir)); err != nil {
		return err
	}
	if !l.cfg.NoLock {
		l.lock, err = l.fs.Lock(l.path(lockName))
	}
	return err
}

// Resume makes writing possible again after it has ended with an error, if what caused that has gone. It looks at the files as
// Open does, begins a new one, and drops what a failed Write had left, so that its records will never be found. After it the
// log ends where the last successful Write did, or before that if the disk has lost what was not durable: compare Next. All
// that is left is durable.
//
// If it fails writing stays impossible. On a log that works it returns nil.
func (l *Log) Resume() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.trimming.Lock()
	defer l.trimming.Unlock()
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	old, durable, next, files := l.err, l.durable, l.next, l.files
	if old == nil || l.closed {
		err := l.unusable()
		l.mu.Unlock()
		return err
	}
	l.mu.Unlock()
	_ = l.closeFiles() // what was written through them is looked at anew
	l.mu.Lock()
	l.err = nil
	l.mu.Unlock()
	err := l.load(durable, next)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.files = files
		if l.err = err; !errors.Is(err, ErrFailed) {
			l.err = &FailedError{Op: "resume", File: l.dir, Err: err}
		}
		return l.err
	}
	return nil
}

// found is what load works on.
type found struct {
	bases []uint64
	temps []string
	state frame.State
	known bool // there is a state
	drop  int  // how many of bases are below the state's low mark
	files []*file
	epoch uint64
	tail  scan // of the last file, if that is not sealed
	next  bool // the last file does not have its name yet: see loadNext
	full  scan // of the one before, if so and if that is not sealed
	rec   Recovery
}

// load finds out what there is, and unless it is only for reading, makes it ready for writing. Records below durable must be
// there, and those from limit on are dropped. All mutexes but mu are held, or nobody else has the log yet.
func (l *Log) load(durable, limit uint64) error {
	x := found{epoch: l.cfg.epoch}
	if err := l.list(&x); err != nil {
		return err
	}
	if err := l.loadState(&x); err != nil {
		return err
	}
	x.state.Durable = max(x.state.Durable, durable)
	if !x.rec.New {
		if err := l.loadFiles(&x, limit); err != nil {
			return err
		}
		if err := l.compare(&x); err != nil {
			return err
		}
	}
	if !l.cfg.ReadOnly {
		if err := l.ready(&x); err != nil {
			return err
		}
	}
	x.rec.First, x.rec.Epoch = x.state.Low, x.epoch
	if n := len(x.files); n > 0 {
		x.rec.Next = x.files[n-1].end
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files, l.epoch, l.recovery, l.rolling = x.files, x.epoch, x.rec, nil
	l.low, l.next, l.durable = x.rec.First, x.rec.Next, x.rec.Next
	l.lives++
	return nil
}

// list finds the names.
func (l *Log) list(x *found) error {
	names, err := l.fs.List(l.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		base, ok := parseName(name)
		switch {
		case ok:
			x.bases = append(x.bases, base)
		case name == stateName:
			x.known = true
		case strings.HasSuffix(name, segmentExt+tempExt) || name == stateName+tempExt:
			x.temps = append(x.temps, name)
		}
	}
	slices.Sort(x.bases)
	return nil
}

// damaged reports damage: as an error, or in the recovery if the log is for reading only.
func (l *Log) damaged(x *found, e *CorruptError) error {
	if !l.cfg.ReadOnly {
		return e
	}
	x.rec.Damage = append(x.rec.Damage, e)
	return nil
}

// check refuses files of another topic or partition.
func (l *Log) check(name string, topic frame.ID, partition int32) error {
	if l.cfg.ReadOnly && l.cfg.Topic == (frame.ID{}) || topic == l.cfg.Topic && partition == l.cfg.Partition {
		return nil
	}
	return fmt.Errorf("%w: %s is of topic %x, partition %d", ErrForeign, name, topic, partition)
}

// loadState reads the state. A log without one is new, or was about to be made when the power went.
func (l *Log) loadState(x *found) error {
	name := l.path(stateName)
	e := &CorruptError{File: name, Err: errMissing}
	if len(x.bases) > 0 {
		e.From = x.bases[0]
	}
	if !x.known {
		if !l.cfg.Existing && l.unborn(x) {
			if l.cfg.ReadOnly {
				return fmt.Errorf("disk: no log in %s: %w", l.dir, fs.ErrNotExist)
			}
			x.rec.New = true
			x.state = frame.State{Low: l.cfg.First, Durable: l.cfg.First}
			return nil
		}
		x.state.Low, x.state.Durable = e.From, e.From
		return l.damaged(x, e)
	}
	b, err := vfs.ReadFile(l.fs, name, frame.StateBytes)
	if err != nil {
		return err
	}
	x.rec.BytesRead += int64(len(b))
	x.state, err = frame.DecodeState(b)
	switch {
	case errors.Is(err, frame.ErrVersion):
		return fmt.Errorf("%s: %w", name, err)
	case err != nil:
		e.Err = err
		x.state.Low, x.state.Durable = e.From, e.From
		return l.damaged(x, e)
	}
	x.epoch = max(x.epoch, x.state.Epoch)
	return l.check(name, x.state.Topic, x.state.Partition)
}

// unborn reports whether what there is can be the rest of an attempt to make the log: no more than the first file, with
// nothing in it, since no record is taken before there is a state.
func (l *Log) unborn(x *found) bool {
	if len(x.bases) != 1 {
		return len(x.bases) == 0
	}
	f, err := l.loadHead(x.bases[0], 0)
	if err != nil || f.head.Epoch != l.cfg.epoch+1 || f.head.Base != l.cfg.First {
		return false
	}
	in, err := l.openRead(f)
	if err != nil {
		return false
	}
	defer in.Close()
	s, err := l.scanFrames(f, in, math.MaxUint64)
	return err == nil && f.empty() && s.beyond == 0
}

// loadHead reads what a file begins with. next is the base of the file after it, or 0.
func (l *Log) loadHead(base, next uint64) (*file, error) {
	name := l.path(segmentName(base))
	in, err := l.fs.OpenRead(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	head, err := readHead(in, base)
	switch {
	case err != nil && !damage(err):
		return nil, err
	case errors.Is(err, frame.ErrVersion):
		return nil, fmt.Errorf("%s: %w", name, err)
	case err != nil:
		return nil, &CorruptError{File: name, From: base, To: next, Err: err}
	}
	return newFile(name, head), l.check(name, head.Topic, head.Partition)
}

// readHead reads the head of a file whose name says with which offset it begins.
func readHead(in vfs.File, base uint64) (frame.Segment, error) {
	b := make([]byte, frame.SegmentBytes)
	n, err := in.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return frame.Segment{}, err
	}
	head, err := frame.DecodeSegment(b[:n])
	if err == nil && head.Base != base {
		err = frame.ErrFormat
	}
	return head, err
}

// loadFiles reads heads and ends of the files.
func (l *Log) loadFiles(x *found, limit uint64) error {
	for x.drop < len(x.bases)-1 && x.bases[x.drop+1] <= x.state.Low {
		x.drop++
	}
	bases := x.bases[x.drop:]
	for i, base := range bases {
		next := uint64(0)
		if i+1 < len(bases) {
			next = bases[i+1]
		}
		f, err := l.loadHead(base, next)
		if err != nil {
			var bad *CorruptError
			if !errors.As(err, &bad) {
				return err
			}
			if bad.To == 0 && x.state.Durable > base {
				bad.To = x.state.Durable
			}
			if err := l.damaged(x, bad); err != nil {
				return err
			}
			continue
		}
		x.rec.BytesRead += frame.SegmentBytes
		x.epoch = max(x.epoch, f.head.Epoch)
		if err := l.loadFile(x, f, next, limit); err != nil {
			return err
		}
		x.files = append(x.files, f)
	}
	return l.loadNext(x, limit)
}

// loadFile finds out what a file holds. next is where it must end, or 0 for the last one.
func (l *Log) loadFile(x *found, f *file, next, limit uint64) error {
	in, err := l.openRead(f)
	if err != nil {
		return err
	}
	defer in.Close()
	sealed, read, err := f.loadSeal(in)
	x.rec.BytesRead += read
	if err != nil {
		return err
	}
	e := &CorruptError{File: f.path(), Err: errShort}
	if sealed {
		e.Pos, e.From, e.To = f.size, f.end, next
		switch {
		case next == 0 || f.end == next:
			return nil
		case f.end > next:
			e.From, e.To = next, f.end
			e.Err = errOrder
		}
		return l.damaged(x, e)
	}
	s, err := l.scanFrames(f, in, limit)
	x.rec.BytesRead += s.read
	if err != nil {
		return err
	}
	if s.bad != nil {
		e.Err = s.bad
	}
	e.Pos, e.From, e.To = f.size, f.end, next
	switch {
	case next == 0:
		x.tail = s
		if e.To = max(s.proven, x.state.Durable); e.To > f.end && !l.cfg.broken.has(flawCutDamage) {
			if s.bad == nil {
				e.Err = errEvidence
			}
			return l.damaged(x, e)
		}
		if s.beyond > 0 {
			x.rec.Cut = &Cut{File: f.path(), Pos: f.size, Bytes: s.beyond, Err: s.bad}
		}
		return nil
	case f.end == next:
		x.rec.Mended = append(x.rec.Mended, f.name)
		return nil
	case f.end > next:
		e.From, e.To, e.Err = next, f.end, errOrder
	}
	return l.damaged(x, e)
}

// compare looks whether the state and the files fit each other.
func (l *Log) compare(x *found) error {
	s := &x.state
	if len(x.files) == 0 {
		if len(x.rec.Damage) > 0 {
			return nil
		}
		return l.damaged(x, &CorruptError{File: l.dir, From: s.Low, To: s.Durable, Err: errMissing})
	}
	first, last := x.files[0], x.files[len(x.files)-1]
	if first.head.Base > s.Low && len(x.rec.Damage) == 0 {
		if err := l.damaged(x, &CorruptError{File: first.name, From: s.Low, To: first.head.Base, Err: errMissing}); err != nil {
			return err
		}
	}
	if last.end < s.Durable && len(x.rec.Damage) == 0 && !l.cfg.broken.has(flawCutDamage) {
		e := &CorruptError{File: last.path(), Pos: last.size, From: last.end, To: s.Durable, Err: errShort}
		return l.damaged(x, e)
	}
	x.rec.Clean = (last.sealed || last.empty() && x.tail.beyond == 0) && last.end == s.Durable
	return nil
}
