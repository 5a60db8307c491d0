package cursor

import (
	"slices"

	"github.com/leatlog/leat/internal/atomicx"
)

// Set is a set of cursors that knows its low water: the lowest position in it. The zero value is empty and ready to use. It
// must not be copied after first use.
type Set struct {
	// list is replaced, never edited, under mu, and loaded by all. Storing it publishes the slice.
	list atomicx.Pointer[[]*Cursor]
	mu   atomicx.Mutex
}

// Add puts c into the set and reports whether it was not there. Every Min that is called after Add has returned counts c.
func (s *Set) Add(c *Cursor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.cursors()
	if slices.Contains(old, c) {
		return false
	}
	list := append(slices.Clip(old), c)
	s.list.Store(&list)
	return true
}

// Remove takes c out of the set and reports whether it was there. No Min that is called after Remove has returned counts c.
func (s *Set) Remove(c *Cursor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.cursors()
	i := slices.Index(old, c)
	if i < 0 {
		return false
	}
	list := slices.Concat(old[:i], old[i+1:])
	s.list.Store(&list)
	return true
}

// Min returns the lowest position in the set and the cursor that is there, or false if the set is empty. Of several at the
// same position it returns the one that was added first.
func (s *Set) Min() (low uint64, holder *Cursor, ok bool) {
	for _, c := range s.cursors() {
		if p := c.Load(); holder == nil || p < low {
			low, holder = p, c
		}
	}
	return low, holder, holder != nil
}

// Len returns the number of cursors in the set.
func (s *Set) Len() int { return len(s.cursors()) }

func (s *Set) cursors() []*Cursor {
	if list := s.list.Load(); list != nil {
		return *list
	}
	return nil
}
