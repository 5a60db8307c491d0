package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"sync"

	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

const (
	lockName   = "LOCK"
	stateName  = "state"
	segmentExt = ".leat"
	tempExt    = vfs.TempExt
)

// Log is the files of one partition. Open opens one.
//
// # Roles
//
//   - appender: one goroutine at a time calls Write, Roll and Resume; that others do so as well is kept apart by a mutex, but
//     their order is then anybody's.
//   - syncer: any goroutine that calls Sync. One at a time does it; the others wait, and find it done.
//   - trimmer: any goroutine that calls Trim. One at a time does it.
//   - readers: any number, each with a Reader of its own.
//
// # Mutexes
//
// They are taken in the order writing, trimming, syncing, mu. Only mu is taken by readers and for queries, and no operation on
// a file is done under it.
type Log struct {
	// Immutable after Open.
	cfg Config
	dir string
	fs  vfs.FS

	// lock keeps others out. Close's own.
	lock io.Closer

	// writing is held by whoever extends the log, or exchanges its files.
	writing sync.Mutex

	// trimming is held by whoever writes the state or removes files.
	trimming sync.Mutex

	// syncing is held by whoever syncs or seals a file, and whoever finishes a roll.
	syncing sync.Mutex

	// mu guards the rest.
	mu       sync.Mutex
	files    []*file // oldest first; the last one is active, unless the log is open for reading only
	low      uint64  // first offset that has not been dropped
	next     uint64  // one past the last record written
	durable  uint64  // everything below survives a power cut
	epoch    uint64
	rolling  *file // the file that is full while the active one does not have its name yet; nil if there is none
	lives    int   // how often Resume has exchanged the files
	err      error // why nothing can be written
	closed   bool
	recovery Recovery

	// buf is of writing's holder.
	buf []byte
}

// file is one of the files.
type file struct {
	// Immutable once it is in the list.
	name string // with the directory
	head frame.Segment
	seed frame.Seed

	// f is the active file, or the one that is full, open for writing; syncing's holder closes it. Readers open files for themselves.
	f vfs.File

	// allocated is the length of the active file. It belongs to writing's holder.
	allocated int64

	// Guarded by the log's mu. Once the file is not active only sealed and temp change.
	end          uint64 // one past the last record
	size         int64  // where the frames end
	index        index
	time, newest int64     // append times of the first record and the last
	sum          frame.Sum // of all records, if summed
	summed       bool      // false if some are lost, or the seal does not say it
	sealed       bool
	temp         bool // it does not have its name yet: see roll
}

// path returns the name that the file has now. The log's mu is held.
func (f *file) path() string {
	if f.temp {
		return f.name + tempExt
	}
	return f.name
}

// openRead opens a file for reading. It may get its name meanwhile.
func (l *Log) openRead(f *file) (vfs.File, error) {
	l.mu.Lock()
	path, temp := f.path(), f.temp
	l.mu.Unlock()
	in, err := l.fs.OpenRead(path)
	if temp && errors.Is(err, fs.ErrNotExist) {
		in, err = l.fs.OpenRead(f.name)
	}
	return in, err
}

// empty reports whether there are no records in the file.
func (f *file) empty() bool { return f.end == f.head.Base }

// add counts a frame that lies at the end; sum is that of its records, or nil if it is not known.
func (f *file) add(h *frame.Header, sum *frame.Sum) {
	f.index.add(h.First, f.size, f.newest, f.sum)
	if f.summed = f.summed && sum != nil; f.summed {
		f.sum.Add(*sum)
	}
	if h.Kind == frame.Records {
		f.time, f.newest = min(f.time, h.Time), max(f.newest, h.Newest)
	}
	f.end = h.Next()
	f.size += h.Bytes()
}

// times returns the append times of the first record and the last, or 0 if there is none.
func (f *file) times() (oldest, newest int64) {
	if f.time > f.newest {
		return 0, 0
	}
	return f.time, f.newest
}

// newFile returns a file in which there is no record.
func newFile(name string, head frame.Segment) *file {
	return &file{name: name, head: head, seed: head.Seed(), end: head.Base, size: frame.SegmentBytes, time: math.MaxInt64,
		newest: math.MinInt64, sum: frame.None, summed: true}
}

// segmentName returns the name of the file for records from base on: such names sort like the offsets.
func segmentName(base uint64) string { return fmt.Sprintf("%020d%s", base, segmentExt) }

// parseName returns the base that a file's name says.
func parseName(name string) (base uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, segmentExt)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' || base > frame.MaxOffset/10 {
			return 0, false
		}
		base = base*10 + uint64(c-'0')
	}
	return base, base <= frame.MaxOffset
}

// path returns a name with the directory.
func (l *Log) path(name string) string { return filepath.Join(l.dir, name) }

// First returns the first offset that has not been dropped.
func (l *Log) First() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.low
}

// Next returns the offset that the next record gets: everything below is written.
func (l *Log) Next() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// Durable returns the offset below which everything survives a power cut.
func (l *Log) Durable() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable
}

// Epoch returns how often the log has been opened, this time included.
func (l *Log) Epoch() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// EndOf returns where the log ended when an epoch was over: the offsets from there on belong to later ones. Of the epoch that is on it
// is Next.
func (l *Log) EndOf(epoch uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.files {
		if f.head.Epoch > epoch {
			return min(f.head.Base, l.next)
		}
	}
	return l.next
}

// Err returns why nothing can be written, or nil if it can.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unusable()
}

// Recovery returns what Open, or the last Resume, has found.
func (l *Log) Recovery() Recovery {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recovery
}

// FileInfo describes one file.
type FileInfo struct {
	Name string
	// First and End are the offsets in it: [First, End). Some may be below the log's First.
	First, End uint64
	Epoch      uint64
	// Bytes is how long it is, without what is only reserved.
	Bytes int64
	// Oldest and Newest are the append times of its first record and its last, both 0 if there is none.
	Oldest, Newest int64
	Sealed         bool
}

// Files describes the files, oldest first.
func (l *Log) Files() []FileInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]FileInfo, len(l.files))
	for i, f := range l.files {
		list[i] = FileInfo{Name: f.path(), First: f.head.Base, End: f.end, Epoch: f.head.Epoch, Bytes: f.size, Sealed: f.sealed}
		list[i].Oldest, list[i].Newest = f.times()
	}
	return list
}

// unusable returns why nothing can be written. mu is held.
func (l *Log) unusable() error {
	switch {
	case l.closed:
		return ErrClosed
	case l.cfg.ReadOnly:
		return ErrReadOnly
	}
	return l.err
}

// fail makes the log unusable for writing, because of what came of an operation, and returns the error. The first one stays.
func (l *Log) fail(op, name string, cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = &FailedError{Op: op, File: name, Err: cause}
	}
	return l.err
}

// Fail makes the log unusable for writing until the next Resume, because of something that whoever uses it knows and it does not: as
// if an operation had failed with that cause. If nothing can be written anyway it changes nothing.
func (l *Log) Fail(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unusable() == nil {
		l.err = &FailedError{Op: "use", File: l.dir, Err: cause}
	}
}

// active returns the file that records go to.
func (l *Log) active() *file {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastFile()
}

// lastFile returns the file that records go to, or nil if there is none. mu is held.
func (l *Log) lastFile() *file {
	if len(l.files) == 0 {
		return nil
	}
	return l.files[len(l.files)-1]
}

// Close seals the log if nothing has failed, so that the next Open is quick and knows for sure where it ends, and gives the
// lock back. It returns the error that ended writing, if any; the log is closed all the same. Later calls return nil.
func (l *Log) Close() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	err, closed := l.err, l.closed
	l.mu.Unlock()
	if closed {
		return nil
	}
	if !l.cfg.ReadOnly {
		if err == nil {
			err = l.sealActive()
		}
		if err == nil {
			l.trimming.Lock()
			err = l.writeState(l.First(), l.Durable())
			l.trimming.Unlock()
		}
	}
	l.trimming.Lock()
	defer l.trimming.Unlock()
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return errors.Join(err, l.release())
}

// Abandon closes the log without writing anything: the files stay as they are, as if the process had ended. It gives the lock
// back. Later calls, and Close, return nil.
func (l *Log) Abandon() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.trimming.Lock()
	defer l.trimming.Unlock()
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if closed {
		return nil
	}
	return l.release()
}

// release closes what is open.
func (l *Log) release() error {
	err := l.closeFiles()
	if l.lock != nil {
		err = errors.Join(err, l.lock.Close())
	}
	return err
}

// closeFiles closes the files that are open for writing.
func (l *Log) closeFiles() (err error) {
	l.mu.Lock()
	files := l.files
	l.mu.Unlock()
	for _, f := range files {
		if f.f != nil {
			err = errors.Join(err, f.f.Close())
			f.f = nil
		}
	}
	return err
}
