package vfs

import (
	"io"
	"io/fs"
	"slices"
)

// memFile is an open file of a Mem.
type memFile struct {
	fs     *Mem
	node   *node
	name   string
	write  bool
	closed bool
}

// begin takes the file system's lock for an operation, unless the file is closed, or open only for reading and the operation
// writes.
func (f *memFile) begin(op string, writes bool) error {
	f.fs.mu.Lock()
	switch {
	case f.closed:
		f.fs.mu.Unlock()
		return failed(op, f.name, fs.ErrClosed)
	case writes && !f.write:
		f.fs.mu.Unlock()
		return failed(op, f.name, fs.ErrPermission)
	}
	return nil
}

// ReadAt implements File.
func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.begin("read", false); err != nil {
		return 0, err
	}
	defer f.fs.mu.Unlock()
	if off < 0 {
		return 0, failed("read", f.name, fs.ErrInvalid)
	}
	if off >= int64(len(f.node.now)) {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	n := copy(p, f.node.now[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements File.
func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.begin("write", true); err != nil {
		return 0, err
	}
	defer f.fs.mu.Unlock()
	if off < 0 {
		return 0, failed("write", f.name, fs.ErrInvalid)
	}
	m, n := f.fs, f.node
	var err error
	if more := off + int64(len(p)) - int64(len(n.now)); more > 0 {
		if got := m.room(more); got < more {
			err = failed("write", f.name, ErrFull)
			if short := int64(len(p)) - (more - got); short <= 0 {
				m.used -= got
				return 0, err
			} else {
				p = p[:short]
			}
		}
		m.grow(n, off+int64(len(p)))
	}
	n.own()
	copy(n.now[off:], p)
	m.pieces = appendSectors(m.pieces, n, off, slices.Clone(p))
	return len(p), err
}

// own makes n.now changeable.
func (n *node) own() {
	if n.shared {
		n.now, n.shared = slices.Clone(n.now), false
	}
}

// grow makes n longer.
func (m *Mem) grow(n *node, size int64) {
	n.own()
	n.now = append(n.now, make([]byte, size-int64(len(n.now)))...)
	m.pieces = append(m.pieces, piece{kind: grown, at: n, off: size})
}

// resize makes n that long. There must be room.
func (m *Mem) resize(n *node, size int64) {
	have := int64(len(n.now))
	switch {
	case size > have:
		m.used += size - have
		m.grow(n, size)
	case size < have:
		m.used -= have - size
		n.own()
		n.now = n.now[:size:size]
		m.pieces = append(m.pieces, piece{kind: cut, at: n, off: size})
	}
}

// Truncate implements File.
func (f *memFile) Truncate(size int64) error { return f.setSize("truncate", size, false) }

// Allocate implements File.
func (f *memFile) Allocate(size int64) error { return f.setSize("allocate", size, true) }

// setSize is Truncate and Allocate.
func (f *memFile) setSize(op string, size int64, atLeast bool) error {
	if err := f.begin(op, true); err != nil {
		return err
	}
	defer f.fs.mu.Unlock()
	if size < 0 {
		return failed(op, f.name, fs.ErrInvalid)
	}
	m, more := f.fs, size-int64(len(f.node.now))
	if atLeast && more <= 0 {
		return nil
	}
	if more > 0 && m.limit >= 0 && more > m.limit-m.used {
		return failed(op, f.name, ErrFull)
	}
	m.resize(f.node, size)
	return nil
}

// Sync implements File.
func (f *memFile) Sync() error {
	if err := f.begin("sync", false); err != nil {
		return err
	}
	defer f.fs.mu.Unlock()
	f.fs.settle(f.node)
	return nil
}

// lose is a Sync that fails in the worst way: what was written since the last one stays visible, but will never be on the
// disk, whatever is synced later.
func (f *memFile) lose() {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	m := f.fs
	m.pieces = slices.DeleteFunc(m.pieces, func(p piece) bool { return p.at == f.node && p.kind == wrote })
	m.settle(f.node) // the length of the file is not what gets lost
}

// Size implements File.
func (f *memFile) Size() (int64, error) {
	if err := f.begin("size", false); err != nil {
		return 0, err
	}
	defer f.fs.mu.Unlock()
	return int64(len(f.node.now)), nil
}

// Close implements File.
func (f *memFile) Close() error {
	if err := f.begin("close", false); err != nil {
		return err
	}
	defer f.fs.mu.Unlock()
	f.closed = true
	return nil
}
