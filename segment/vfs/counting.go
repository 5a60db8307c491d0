package vfs

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"
)

// Counting is a file system that knows what is open on it, for tests that look for leaks. Make one with NewCounting or FailNth.
type Counting struct {
	FS
	mu   sync.Mutex
	open map[*opened]string // by name
}

// opened is a file or a lock; then file is nil.
type opened struct {
	File
	closer io.Closer
	of     *Counting
}

// NewCounting returns under with a count of what is open.
func NewCounting(under FS) *Counting { return &Counting{FS: under, open: map[*opened]string{}} }

// FailNth returns under, with a count of what is open, where the n-th operation of any kind fails with cause, counted from 1; and what
// says whether it has.
func FailNth(n int, under FS, cause error) (c *Counting, failed func() bool) {
	kinds := make([]OpKind, 0, OpAllocate+1)
	for k := OpCreate; k <= OpAllocate; k++ {
		kinds = append(kinds, k)
	}
	nth := Nth(n, Fault{Err: cause}, kinds...)
	var has atomic.Bool // stored and loaded by whoever calls an operation; it publishes nothing else
	return NewCounting(NewFaulty(under, func(o Op) *Fault {
		f := nth(o)
		if f != nil {
			has.Store(true)
		}
		return f
	})), has.Load
}

// Left returns the names of what is open, in order.
func (c *Counting) Left() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.open {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// add counts what has been opened.
func (c *Counting) add(name string, f File, l io.Closer) *opened {
	x := &opened{f, l, c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[x] = name
	return x
}

func (c *Counting) file(name string, f File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return c.add(name, f, f), nil
}

// Create implements FS.
func (c *Counting) Create(name string) (File, error) {
	f, err := c.FS.Create(name)
	return c.file(name, f, err)
}

// Open implements FS.
func (c *Counting) Open(name string) (File, error) {
	f, err := c.FS.Open(name)
	return c.file(name, f, err)
}

// OpenRead implements FS.
func (c *Counting) OpenRead(name string) (File, error) {
	f, err := c.FS.OpenRead(name)
	return c.file(name, f, err)
}

// Lock implements FS.
func (c *Counting) Lock(name string) (io.Closer, error) {
	l, err := c.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	return c.add(name, nil, l), nil
}

// Close counts it no more.
func (x *opened) Close() error {
	x.of.mu.Lock()
	delete(x.of.open, x)
	x.of.mu.Unlock()
	return x.closer.Close()
}
