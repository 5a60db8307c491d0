package storage

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/disk"
)

// Policy says when a record counts as published.
type Policy uint8

const (
	// Always publishes a record when it is durable.
	Always Policy = iota
	// Every publishes a record when it is written, and makes it durable soon.
	Every
	// Never publishes a record when it is written, and leaves the rest to the system.
	Never
)

// Config says how to keep the records of one partition.
type Config struct {
	// Dir is the directory of the files, and Disk says what they are.
	Dir  string
	Disk disk.Config

	// Policy says when a record counts as published; under Every, Interval is the longest time until its sync begins.
	Policy   Policy
	Interval time.Duration

	// Failed is told, once until the next Resume, that nothing can be written any more, on the goroutine where that was found,
	// which may hold the partition's role. It must not wait, nor use the Log.
	Failed func(error)
}

// Log keeps the records of one partition. Open opens one.
//
// # Roles
//
//   - holder: who holds the partition's role. It calls Commit and Resume, and touches out.
//   - anybody: the rest.
type Log struct {
	// Immutable after Open.
	cfg   Config
	files *disk.Log
	timer *time.Timer // under Every: fires when it is time to sync

	// out is the holder's.
	out writer

	// took is what SyncTime returns, in nanoseconds. Stored by the holder, loaded by it and by publishers, for whom it is a hint. It
	// publishes no memory.
	took atomic.Int64

	early int64 // see syncEarly; immutable

	// ahead says that there is a goroutine of syncEarly: CASed by the holder and stored by that goroutine, loaded by nobody else.
	// It publishes no memory.
	ahead atomic.Bool

	// armed says that the timer is set, or its goroutine syncs: so there is one at a time. CASed by the holder and stored by
	// that goroutine, loaded by nobody else. It publishes no memory.
	armed atomic.Bool

	// below is the offset below which records have been dropped from memory: CASed by whoever drops them, loaded by the trimmer.
	// It publishes no memory.
	below atomic.Uint64
	// trimming says that there is a trimmer: CASed by who starts it, stored by the trimmer, loaded by nobody else. It publishes
	// no memory.
	trimming atomic.Bool

	// syncs counts the syncs that Commit has waited for. Added to by the holder, loaded by Stats. It publishes no memory.
	syncs atomic.Int64
	// writes counts the frames. Added to by the holder, loaded by Stats. It publishes no memory.
	writes atomic.Int64

	// committing and syncing say since when, after begun, Commit and the timer's goroutine wait for the files; 0 if they do not.
	// Stored by these, loaded by Stalled. They publish no memory.
	committing, syncing atomic.Int64

	mu     sync.Mutex
	closed bool             // under mu: no goroutine begins any more
	busy   sync.WaitGroup   // goroutines that use the files; added to under mu while it is not closed
	told   bool             // under mu: Failed has been called
	loads  map[uint64]int64 // under mu: since when, after begun, a segment is loaded, by its first offset
}

// leastEarly is how many bytes syncEarly is worth it for at the least.
const leastEarly = 1 << 20

// Open opens the files of a partition, or makes them.
func Open(c Config) (*Log, error) {
	l := &Log{cfg: c}
	if c.Policy != Always { // which waits for the file anyway
		c.Disk.Behind = l.behind
	}
	files, err := disk.Open(c.Dir, c.Disk)
	if err != nil {
		return nil, Opening(err)
	}
	l.files = files
	l.out.init(l)
	l.early = max(c.Disk.SegmentBytes/4, leastEarly)
	l.below.Store(files.First())
	if c.Policy == Every {
		l.timer = time.AfterFunc(time.Hour, l.tick)
		l.timer.Stop()
	}
	return l, nil
}

// Files returns the files, for looking at.
func (l *Log) Files() *disk.Log { return l.files }

// Syncs reports whether Commit syncs.
func (l *Log) Syncs() bool { return l.cfg.Policy == Always }

// Durable returns the offset below which everything survives a power cut.
func (l *Log) Durable() uint64 { return l.files.Durable() }

// Err returns why nothing can be written, or nil.
func (l *Log) Err() error {
	if err := l.files.Err(); err != nil {
		return &Error{Err: err}
	}
	return nil
}

// Commit writes what is staged in mem, and under Always makes it durable. When it has returned nil the caller publishes. After
// an error, which is an *Error, the caller drops what is staged. The caller holds the role.
func (l *Log) Commit(mem *segment.Log) error {
	if err := l.files.Err(); err != nil {
		l.tell(err)
		return &Error{Err: err}
	}
	l.committing.Store(int64(time.Since(begun)))
	defer l.committing.Store(0)
	l.out.begin(mem.Published())
	mem.EachStaged(l.out.each)
	if err := l.out.end(); err != nil {
		l.tell(err)
		return &Error{Indefinite: true, Err: err}
	}
	switch l.cfg.Policy {
	case Always:
		l.syncs.Add(1)
		began := time.Now()
		if _, err := l.files.Sync(); err != nil {
			l.tell(err)
			return &Error{Indefinite: true, Err: err}
		}
		l.took.Store(int64(time.Since(began)))
		return nil
	case Every:
		if l.armed.CompareAndSwap(false, true) {
			l.timer.Reset(l.cfg.Interval)
		}
	}
	if l.out.since >= l.early {
		l.syncEarly()
	}
	return nil
}

// SyncTime returns how long the last sync took that a Commit has waited for: 0 before the first, and if Commit does not sync.
func (l *Log) SyncTime() time.Duration { return time.Duration(l.took.Load()) }

// syncEarly has written, beside the next commits, what they would have to wait for when the file is full: a file is made durable before
// the next one begins.
func (l *Log) syncEarly() {
	if !l.ahead.CompareAndSwap(false, true) {
		return // the disk is slower than we are
	}
	l.out.since = 0
	if !l.begin() {
		return
	}
	go func() {
		defer l.busy.Done()
		if _, err := l.files.Sync(); err != nil {
			l.tell(err)
		}
		l.ahead.Store(false)
	}()
}

// behind runs the rest of a roll beside the next commits.
func (l *Log) behind(rest func()) {
	if !l.begin() {
		return // Close does it
	}
	go func() {
		defer l.busy.Done()
		rest()
		if err := l.files.Err(); err != nil {
			l.tell(err)
		}
	}()
}

// tell tells that nothing can be written, if that is still so: a Resume may have been quicker than whoever has found it. It is told
// under mu, so that Resume returns after that.
func (l *Log) tell(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told || l.closed || l.files.Err() == nil {
		return
	}
	l.told = true
	if l.cfg.Failed != nil {
		l.cfg.Failed(&Error{Err: err})
	}
}

// begun is what times are counted from.
var begun = time.Now()

// Stalled returns for how long somebody has been waiting for the files: 0 if nobody is.
func (l *Log) Stalled() (d time.Duration) {
	for _, at := range []int64{l.committing.Load(), l.syncing.Load()} {
		if at != 0 {
			d = max(d, time.Since(begun)-time.Duration(at))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.loads {
		d = max(d, time.Since(begun)-time.Duration(at))
	}
	return d
}

// beginLoad is begin for who loads a segment, which is ended by endLoad.
func (l *Log) beginLoad(first uint64) bool {
	if !l.begin() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loads == nil {
		l.loads = map[uint64]int64{}
	}
	l.loads[first] = int64(time.Since(begun))
	return true
}

func (l *Log) endLoad(first uint64) {
	l.mu.Lock()
	delete(l.loads, first)
	l.mu.Unlock()
	l.busy.Done()
}

// begin lets a goroutine use the files, unless they are being closed.
func (l *Log) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.busy.Add(1)
	}
	return !l.closed
}

// tick is the timer's goroutine.
func (l *Log) tick() {
	if !l.begin() {
		return
	}
	defer l.busy.Done()
	l.syncing.Store(int64(time.Since(begun)))
	_, err := l.files.Sync()
	l.syncing.Store(0)
	if err != nil {
		l.tell(err)
	}
	l.armed.Store(false)
	// A write that came after the sync began may have found it armed.
	if err == nil && l.files.Durable() < l.files.Next() && l.armed.CompareAndSwap(false, true) {
		l.timer.Reset(l.cfg.Interval)
	}
}

// errLost says that the files do not have what readers can see.
var errLost = errors.New("the files have lost records that are visible")

// Sync makes durable what is written below upTo. It returns when that is done, or with the error of ctx; then the sync goes on.
func (l *Log) Sync(ctx context.Context, upTo uint64) error {
	if l.files.Durable() >= upTo {
		return nil
	}
	if !l.begin() {
		return &Error{Err: disk.ErrClosed}
	}
	synced := make(chan error, 1)
	go func() {
		defer l.busy.Done()
		durable, err := l.files.Sync()
		switch {
		case err != nil:
			l.tell(err)
			err = &Error{Err: err}
		case durable < upTo: // the files have been resumed, and what they had lost is not written again yet
			err = &Error{Err: errLost}
		}
		synced <- err
	}()
	select {
	case err := <-synced:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Dropped notes that the records below an offset are not in memory any more, and has files removed that hold nothing else. It
// does not wait.
func (l *Log) Dropped(below uint64) {
	for {
		old := l.below.Load()
		if below <= old {
			return
		}
		if l.below.CompareAndSwap(old, below) {
			break
		}
	}
	if !l.trimming.CompareAndSwap(false, true) {
		return // it looks once more before it ends
	}
	if !l.begin() {
		return
	}
	go l.trimSpare()
}

// trimSpare is the trimmer: it removes files as long as there is one to spare.
func (l *Log) trimSpare() {
	defer l.busy.Done()
	for {
		below := l.below.Load()
		if l.spare(below) {
			if err := l.files.Trim(below); err != nil {
				l.tell(err) // if it comes from the files; then the next Commit finds it as well
				l.trimming.Store(false)
				return
			}
		}
		l.trimming.Store(false)
		// A Dropped that came after the look has raised below before it found trimming set.
		if l.below.Load() == below || !l.trimming.CompareAndSwap(false, true) {
			return
		}
	}
}

// spare reports whether a file holds nothing from an offset on, and is not the last one.
func (l *Log) spare(below uint64) bool {
	files := l.files.Files()
	return len(files) > 1 && files[0].End <= below
}

// Trim makes the log begin at an offset for good: also after a crash. It waits for the files.
func (l *Log) Trim(below uint64) error {
	if !l.begin() {
		return &Error{Err: disk.ErrClosed}
	}
	defer l.busy.Done()
	if err := l.files.Trim(min(below, l.files.Next())); err != nil {
		if l.files.Err() != nil {
			l.tell(err)
		}
		return &Error{Err: err}
	}
	return nil
}

// shut lets no goroutine begin any more, and waits for those that there are.
func (l *Log) shut() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.busy.Wait()
}

// Close makes all durable and closes the files. What was dropped from memory is dropped from them, so that the next Open finds
// what there was. Nobody commits any more.
func (l *Log) Close() error {
	l.shut()
	if l.files.Err() == nil {
		if err := l.files.Trim(min(l.below.Load(), l.files.Next())); err != nil {
			return errors.Join(err, l.files.Close())
		}
	}
	return l.files.Close()
}

// Abandon closes the files as they are.
func (l *Log) Abandon() error {
	l.shut()
	return l.files.Abandon()
}

// Stats is a snapshot.
type Stats struct {
	Durable       uint64
	Epoch         uint64
	Files         int
	Bytes         int64
	Writes, Syncs int64
	Stalled       time.Duration
	Err           error
}

// Stats returns a snapshot.
func (l *Log) Stats() Stats {
	s := Stats{Durable: l.files.Durable(), Epoch: l.files.Epoch(), Writes: l.writes.Load(), Syncs: l.syncs.Load(), Stalled: l.Stalled(),
		Err: l.Err()}
	for _, f := range l.files.Files() {
		s.Files++
		s.Bytes += f.Bytes
	}
	return s
}
