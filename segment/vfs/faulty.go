package vfs

import (
	"fmt"
	"io"
	"slices"
	"sync"
)

// OpKind says what an operation does.
type OpKind uint8

// The operations of FS and File. Closing a file is none: it is not worth failing.
const (
	OpCreate OpKind = iota
	OpOpen
	OpRename
	OpRemove
	OpList
	OpMkdir
	OpStat
	OpSyncDir
	OpLock
	OpRead
	OpWrite
	OpSync
	OpTruncate
	OpAllocate
)

// String returns the name of the operation.
func (k OpKind) String() string {
	return [...]string{"create", "open", "rename", "remove", "list", "mkdir", "stat", "syncdir", "lock", "read", "write",
		"sync", "truncate", "allocate"}[k]
}

// Changes reports whether the operation can change what a power cut leaves.
func (k OpKind) Changes() bool {
	switch k {
	case OpOpen, OpList, OpStat, OpLock, OpRead:
		return false
	}
	return true
}

// Op is one operation on a Faulty.
type Op struct {
	// N is how many there were before it.
	N    int
	Kind OpKind
	// Name is what it is done to; of a rename, the old name.
	Name string
	// Off and Len say where a read or a write is, and how long; of Truncate and Allocate Off is the size.
	Off int64
	Len int
}

// String says what the operation is.
func (o Op) String() string { return fmt.Sprintf("%d:%s %s @%d+%d", o.N, o.Kind, o.Name, o.Off, o.Len) }

// Fault is what goes wrong with an operation.
type Fault struct {
	// Err is the error. If it is nil the operation says that it went well, and has done no more than the rest says; this is for
	// Write, Sync, SyncDir, Rename, Remove, Truncate and Allocate.
	Err error
	// Keep is how many bytes of a write are written all the same.
	Keep int
	// Tear makes a write write every other sector, the first one included.
	Tear bool
	// Done makes the operation happen, as if only the news of it were lost.
	Done bool
	// Lose makes a failed Sync lose what was written: it stays visible until a power cut, but no later Sync makes it safe. It
	// has an effect if the file is one of a Mem.
	Lose bool
}

// Faulty is a file system in which things go wrong. All else goes to another. NewFaulty makes one.
type Faulty struct {
	under  FS
	decide func(Op) *Fault

	mu    sync.Mutex
	count int
}

var _ FS = (*Faulty)(nil)

// NewFaulty returns a file system that asks decide before each operation. If that returns nil the operation is done by under.
// decide is called by whoever calls the operation, under no lock: by several at once if they do, and it may use files itself.
func NewFaulty(under FS, decide func(Op) *Fault) *Faulty {
	return &Faulty{under: under, decide: decide}
}

// Nth returns a decision: the n-th operation of those kinds fails, counted from 1. Without kinds all that change something
// count.
func Nth(n int, f Fault, kinds ...OpKind) func(Op) *Fault { return counted(n, n, f, kinds) }

// Since returns a decision: from the n-th operation of those kinds on all of them fail. Without kinds all that change something
// count.
func Since(n int, f Fault, kinds ...OpKind) func(Op) *Fault { return counted(n, -1, f, kinds) }

// counted decides for the operations from one to another.
func counted(from, to int, f Fault, kinds []OpKind) func(Op) *Fault {
	var mu sync.Mutex
	n := 0
	return func(o Op) *Fault {
		if len(kinds) == 0 && !o.Kind.Changes() || len(kinds) > 0 && !slices.Contains(kinds, o.Kind) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if n++; n < from || to >= 0 && n > to {
			return nil
		}
		return &f
	}
}

// FullAfter returns a decision: once that many bytes have been written, writes fail, the one that crosses the line after the
// part that fits.
func FullAfter(bytes int) func(Op) *Fault {
	var mu sync.Mutex
	return func(o Op) *Fault {
		if o.Kind != OpWrite {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if o.Len <= bytes {
			bytes -= o.Len
			return nil
		}
		keep := bytes
		bytes = 0
		return &Fault{Err: ErrFull, Keep: keep}
	}
}

// Count returns how many operations there were.
func (f *Faulty) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// fault asks what is wrong with an operation.
func (f *Faulty) fault(kind OpKind, name string, off int64, n int) *Fault {
	f.mu.Lock()
	o := Op{N: f.count, Kind: kind, Name: name, Off: off, Len: n}
	f.count++
	f.mu.Unlock()
	return f.decide(o)
}

// do does an operation, or not.
func (f *Faulty) do(kind OpKind, name string, size int64, op func() error) error {
	fault := f.fault(kind, name, size, 0)
	if fault == nil {
		return op()
	}
	if fault.Done {
		_ = op()
	}
	return fault.error(kind, name)
}

// error returns what the operation returns.
func (f *Fault) error(kind OpKind, name string) error {
	if f.Err == nil {
		return nil
	}
	return failed(kind.String(), name, f.Err)
}

// open opens a file, or not.
func (f *Faulty) open(kind OpKind, name string, op func(string) (File, error)) (file File, err error) {
	err = f.do(kind, name, 0, func() (err error) {
		file, err = op(name)
		return err
	})
	if err != nil {
		if file != nil {
			_ = file.Close()
		}
		return nil, err
	}
	return &faultyFile{File: file, fs: f, name: name}, nil
}

// Create implements FS.
func (f *Faulty) Create(name string) (File, error) { return f.open(OpCreate, name, f.under.Create) }

// Open implements FS.
func (f *Faulty) Open(name string) (File, error) { return f.open(OpOpen, name, f.under.Open) }

// OpenRead implements FS.
func (f *Faulty) OpenRead(name string) (File, error) { return f.open(OpOpen, name, f.under.OpenRead) }

// Rename implements FS.
func (f *Faulty) Rename(from, to string) error {
	return f.do(OpRename, from, 0, func() error { return f.under.Rename(from, to) })
}

// Remove implements FS.
func (f *Faulty) Remove(name string) error {
	return f.do(OpRemove, name, 0, func() error { return f.under.Remove(name) })
}

// List implements FS.
func (f *Faulty) List(dir string) (names []string, err error) {
	err = f.do(OpList, dir, 0, func() (err error) {
		names, err = f.under.List(dir)
		return err
	})
	return names, err
}

// Mkdir implements FS.
func (f *Faulty) Mkdir(dir string) error {
	return f.do(OpMkdir, dir, 0, func() error { return f.under.Mkdir(dir) })
}

// Stat implements FS.
func (f *Faulty) Stat(name string) (info Info, err error) {
	err = f.do(OpStat, name, 0, func() (err error) {
		info, err = f.under.Stat(name)
		return err
	})
	return info, err
}

// SyncDir implements FS.
func (f *Faulty) SyncDir(dir string) error {
	return f.do(OpSyncDir, dir, 0, func() error { return f.under.SyncDir(dir) })
}

// Lock implements FS.
func (f *Faulty) Lock(name string) (lock io.Closer, err error) {
	err = f.do(OpLock, name, 0, func() (err error) {
		lock, err = f.under.Lock(name)
		return err
	})
	if err != nil {
		if lock != nil {
			_ = lock.Close()
		}
		return nil, err
	}
	return lock, nil
}

// faultyFile is an open file of a Faulty.
type faultyFile struct {
	File
	fs   *Faulty
	name string
}

// ReadAt implements File.
func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	if fault := f.fs.fault(OpRead, f.name, off, len(p)); fault != nil {
		return 0, failed("read", f.name, fault.Err)
	}
	return f.File.ReadAt(p, off)
}

// WriteAt implements File.
func (f *faultyFile) WriteAt(p []byte, off int64) (n int, err error) {
	fault := f.fs.fault(OpWrite, f.name, off, len(p))
	switch {
	case fault == nil:
		return f.File.WriteAt(p, off)
	case fault.Done:
		n, _ = f.File.WriteAt(p, off)
	case fault.Tear:
		for at := 0; at < len(p); at += 2 * sector {
			_, _ = f.File.WriteAt(p[at:min(at+sector, len(p))], off+int64(at))
		}
	case fault.Keep > 0:
		n, _ = f.File.WriteAt(p[:min(fault.Keep, len(p))], off)
	}
	if fault.Err == nil {
		return len(p), nil
	}
	return n, fault.error(OpWrite, f.name)
}

// Sync implements File.
func (f *faultyFile) Sync() error {
	fault := f.fs.fault(OpSync, f.name, 0, 0)
	if fault == nil {
		return f.File.Sync()
	}
	if m, ok := f.File.(*memFile); ok && fault.Lose {
		m.lose()
	}
	if fault.Done {
		_ = f.File.Sync()
	}
	return fault.error(OpSync, f.name)
}

// Truncate implements File.
func (f *faultyFile) Truncate(size int64) error {
	return f.fs.do(OpTruncate, f.name, size, func() error { return f.File.Truncate(size) })
}

// Allocate implements File.
func (f *faultyFile) Allocate(size int64) error {
	return f.fs.do(OpAllocate, f.name, size, func() error { return f.File.Allocate(size) })
}
