package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Mem is a file system in memory that knows what a power cut may take away. NewMem makes one.
//
// For each file it keeps the bytes that everybody sees, and the bytes that have been synced; for each directory its names
// likewise. What lies between the two is the list of pieces: changes that a power cut may or may not keep, in the order in
// which they were made. Sync and SyncDir take the pieces of one file or directory off the list. See Crashes.
type Mem struct {
	mu     sync.Mutex
	root   *node
	pieces []piece
	locks  map[string]bool
	limit  int64 // how many bytes all files may have; negative: no limit
	used   int64
}

var _ FS = (*Mem)(nil)

// node is a file or a directory.
type node struct {
	// now and safe are the bytes of a file as they are and as they were synced. Safe is never changed in place. If shared,
	// now is not either: it is somebody's safe.
	now, safe []byte
	shared    bool

	// names and safeNames are what is in a directory. Names is nil in a file.
	names, safeNames map[string]*node
}

// NewMem returns a file system with nothing in it but its root, which has the name of the root of the real one, and of the
// current directory.
func NewMem() *Mem {
	return &Mem{root: newDir(), locks: map[string]bool{}, limit: -1}
}

// newDir returns an empty directory.
func newDir() *node { return &node{names: map[string]*node{}, safeNames: map[string]*node{}} }

// SetLimit says how many bytes all files may have together. What would make them more fails like on a full disk: a write
// after it has written what there is room for. A negative limit means none.
func (m *Mem) SetLimit(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = bytes
}

// Used returns how many bytes all files have together.
func (m *Mem) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// room returns how much of more bytes there is room for, and counts that as used.
func (m *Mem) room(more int64) int64 {
	if m.limit >= 0 && more > 0 {
		more = min(more, max(m.limit-m.used, 0))
	}
	m.used += more
	return more
}

// failed returns the error for an operation on a name.
func failed(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// parts splits a path into names.
func parts(name string) []string {
	name = strings.Trim(filepath.ToSlash(filepath.Clean(name)), "/")
	if name == "" || name == "." {
		return nil
	}
	return strings.Split(name, "/")
}

// find returns what has that name, or nil.
func (m *Mem) find(name string) *node {
	at := m.root
	for _, p := range parts(name) {
		if at == nil || at.names == nil {
			return nil
		}
		at = at.names[p]
	}
	return at
}

// place returns the directory that a name is in, and the last part of the name.
func (m *Mem) place(op, name string) (dir *node, last string, err error) {
	p := parts(name)
	if len(p) == 0 {
		return nil, "", failed(op, name, fs.ErrInvalid)
	}
	dir = m.find(strings.Join(p[:len(p)-1], "/"))
	if dir == nil || dir.names == nil {
		return nil, "", failed(op, name, fs.ErrNotExist)
	}
	return dir, p[len(p)-1], nil
}

// Create implements FS.
func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, last, err := m.place("create", name)
	if err != nil {
		return nil, err
	}
	n := dir.names[last]
	switch {
	case n == nil:
		n = &node{}
		m.link(dir, last, n)
	case n.names != nil:
		return nil, failed("create", name, fs.ErrExist)
	default:
		m.resize(n, 0)
	}
	return &memFile{fs: m, node: n, name: name, write: true}, nil
}

// link gives n a name.
func (m *Mem) link(dir *node, name string, n *node) {
	dir.names[name] = n
	m.pieces = append(m.pieces, piece{kind: linked, at: dir, name: name, node: n})
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) { return m.open(name, true) }

// OpenRead implements FS.
func (m *Mem) OpenRead(name string) (File, error) { return m.open(name, false) }

// open opens a file that is there.
func (m *Mem) open(name string, write bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil {
		return nil, failed("open", name, fs.ErrNotExist)
	}
	if n.names != nil {
		return nil, failed("open", name, fs.ErrInvalid)
	}
	return &memFile{fs: m, node: n, name: name, write: write}, nil
}

// Rename implements FS.
func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, old, err := m.place("rename", from)
	if err != nil {
		return err
	}
	toDir, last, err := m.place("rename", to)
	if err != nil {
		return err
	}
	n := dir.names[old]
	switch {
	case n == nil:
		return failed("rename", from, fs.ErrNotExist)
	case dir != toDir || n.names != nil:
		return failed("rename", from, fs.ErrInvalid)
	case dir.names[last] == n:
		return nil
	}
	if gone := dir.names[last]; gone != nil {
		m.used -= int64(len(gone.now))
	}
	delete(dir.names, old)
	dir.names[last] = n
	m.pieces = append(m.pieces, piece{kind: moved, at: dir, name: old, to: last, node: n})
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, last, err := m.place("remove", name)
	if err != nil {
		return err
	}
	n := dir.names[last]
	switch {
	case n == nil:
		return failed("remove", name, fs.ErrNotExist)
	case len(n.names) > 0:
		return failed("remove", name, fs.ErrExist)
	}
	m.used -= int64(len(n.now))
	delete(dir.names, last)
	m.pieces = append(m.pieces, piece{kind: removed, at: dir, name: last, node: n})
	return nil
}

// List implements FS.
func (m *Mem) List(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(dir)
	if n == nil || n.names == nil {
		return nil, failed("list", dir, fs.ErrNotExist)
	}
	names := make([]string, 0, len(n.names))
	for name := range n.names {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// Mkdir implements FS.
func (m *Mem) Mkdir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.find(name); n != nil {
		if n.names == nil {
			return failed("mkdir", name, fs.ErrExist)
		}
		return nil
	}
	dir, last, err := m.place("mkdir", name)
	if err != nil {
		return err
	}
	m.link(dir, last, newDir())
	return nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil {
		return Info{}, failed("stat", name, fs.ErrNotExist)
	}
	return Info{Size: int64(len(n.now)), Dir: n.names != nil}, nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil || n.names == nil {
		return failed("sync", name, fs.ErrNotExist)
	}
	m.settle(n)
	return nil
}

// Lock implements FS.
func (m *Mem) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := strings.Join(parts(name), "/")
	if m.locks[key] {
		return nil, failed("lock", name, ErrLocked)
	}
	dir, last, err := m.place("lock", name)
	if err != nil {
		return nil, err
	}
	if dir.names[last] == nil {
		m.link(dir, last, &node{})
	}
	m.locks[key] = true
	return &memLock{fs: m, key: key}, nil
}

// memLock is a lock that is held.
type memLock struct {
	fs  *Mem
	key string
}

// Close gives the lock back.
func (l *memLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.key == "" {
		return fs.ErrClosed
	}
	delete(l.fs.locks, l.key)
	l.key = ""
	return nil
}

// String says what there is, for messages of tests.
func (m *Mem) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	var walk func(path string, n *node)
	walk = func(path string, n *node) {
		if n.names == nil {
			fmt.Fprintf(&b, "%s %d bytes\n", path, len(n.now))
			return
		}
		names := make([]string, 0, len(n.names))
		for name := range n.names {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			walk(path+"/"+name, n.names[name])
		}
	}
	walk("", m.root)
	return b.String()
}
