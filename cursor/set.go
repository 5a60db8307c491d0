package cursor

import (
	"slices"

	"github.com/leatlog/leat/internal/atomicx"
)

// Set is a set of cursors that knows its low water: the lowest position in it. The zero value is empty and ready to use. It
// must not be copied after first use.
//
// # Roles
//
//   - manager: any goroutine. It calls Add and Remove.
//   - asker: any goroutine. It calls Min and Len.
//   - members: the cursors, each moved by its owner and its pushers.
//
// # Shared state
//
//	list  pointer to the members, oldest first. The slice is never edited; managers replace it, under mu; askers load it
//	pos   of each member (see Cursor)
//
// # Proof
//
// A member is counted. Add stores a list with c before it returns. A Min that is called after that loads this list or a
// later one, so it counts c unless it is removed. In the same way a Min that is called after Remove does not count c. A Min
// that overlaps an Add or Remove does either.
//
// Low water. Min loads the list once and then each member's position once, one after the other. Cursors that are only raised
// are at the position that was loaded, or beyond, from then on. So when Min returns, and for ever after, each member that it
// counted is at low or beyond; and low is at least what the low water of these members was when Min was called. It
// need not have been the low water of any one moment. A later Min of the same members returns no less.
//
// Publication. For each member that Min counted, it has loaded a position of low or beyond. So what the owners read
// below low comes before what the asker does then (see Cursor): it may overwrite what is below low.
//
// Joining. The set cannot know what an asker makes of a low water that it has got. If a cursor is added at p while an asker that
// has not counted it goes on to drop everything below low, and p is below low, the new reader loses what it joined for.
// So either the one who adds and the one who asks and drops do so under a common lock, and the one who adds chooses p at or
// above what is dropped by then; or readers find out that their position was dropped, by themselves, each time.
//
// Going back. A cursor that is moved back by Store is as one that joins: a Min that overlaps the Store may have counted the
// higher position.
//
// Progress. Min and Len take no lock, allocate nothing and are wait-free: one load for each member. Add and Remove take mu and
// copy the list.
//
// Reclaim. The list that was replaced keeps its members reachable only for as long as a Min is reading it.
//
// Not promised. That holder is still at low, or still a member, when Min returns.
type Set struct {
	// list is replaced by Add and Remove under mu and loaded by all. Storing it publishes the slice.
	list atomicx.Pointer[[]*Cursor]

	mu atomicx.Mutex
}

// Add puts c into the set and reports whether it was not there.
func (s *Set) Add(c *Cursor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.members()
	if slices.Contains(old, c) {
		return false
	}
	list := slices.Concat(old, []*Cursor{c})
	s.list.Store(&list)
	return true
}

// Remove takes c out of the set and reports whether it was there.
func (s *Set) Remove(c *Cursor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.members()
	i := slices.Index(old, c)
	if i < 0 {
		return false
	}
	list := slices.Concat(old[:i], old[i+1:])
	s.list.Store(&list)
	return true
}

// Min returns the lowest position in the set and a cursor that was there, or false if the set is empty. Of several at the
// same position it returns the one that was added first.
func (s *Set) Min() (low uint64, holder *Cursor, ok bool) {
	for _, c := range s.members() {
		if p := c.Load(); holder == nil || p < low {
			low, holder = p, c
		}
	}
	return low, holder, holder != nil
}

// Len returns the number of cursors in the set.
func (s *Set) Len() int { return len(s.members()) }

// members returns the present list. Pairs with the stores in Add and Remove.
func (s *Set) members() []*Cursor {
	if list := s.list.Load(); list != nil {
		return *list
	}
	return nil
}
