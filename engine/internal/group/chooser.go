package group

// Chooser picks the member that gets the next record of a shared group: by turns, of those that have room. The zero value
// has no members. It is not safe for concurrent use.
//
// # Invariants
//
// Room. A member is picked only while it has taken less than its room. What it has taken is never less than 0 and grows by
// Next only, so it is beyond its room only after SetRoom has lowered that.
//
// Turns. Between two turns of one member each other one that had room all the time has had exactly one.
//
// Cost. Each method takes a constant number of steps, and nothing is allocated: the members' places are the callers' Takers.
type Chooser struct {
	next  *Taker // whose turn it is, of the ring of those with room; nil if nobody has any
	ready int
}

// Taker is one member's place in a Chooser. It must not be copied while it is in one.
type Taker struct {
	Member MemberID
	Owner  any // the caller's own; nothing here looks at it

	in          *Chooser
	room, taken int
	before      *Taker // its neighbours in the ring; nil if it has no room
	behind      *Taker
}

// Taken returns how many records the member has taken and not done with.
func (t *Taker) Taken() int { return t.taken }

// In reports whether the member takes part in c.
func (t *Taker) In(c *Chooser) bool { return t.in == c }

// Ready returns how many members have room.
func (c *Chooser) Ready() int { return c.ready }

// Add lets a member take part, which can take so many records at a time. Its turn comes after those of all others. It
// panics if t takes part already.
func (c *Chooser) Add(t *Taker, room int) {
	if t.in != nil {
		panic("group: taker is in a chooser already")
	}
	t.in, t.room = c, room
	c.review(t)
}

// Remove ends a member's part. What it has taken remains its own to finish with.
func (c *Chooser) Remove(t *Taker) {
	if t.in != c {
		return
	}
	t.in = nil
	c.review(t)
}

// SetRoom changes how many records a member can take at a time.
func (c *Chooser) SetRoom(t *Taker, room int) {
	t.room = room
	c.review(t)
}

// Next picks the member whose turn it is and takes one of its room, or returns nil if nobody has any.
func (c *Chooser) Next() *Taker {
	t := c.next
	if t == nil {
		return nil
	}
	t.taken++
	c.next = t.behind
	c.review(t)
	return t
}

// Peek returns the member whose turn it is, or nil if nobody has any room. It takes nothing.
func (c *Chooser) Peek() *Taker { return c.next }

// Take takes one of a certain member's room, out of turn, or returns false if it has none.
func (c *Chooser) Take(t *Taker) bool {
	if t.behind == nil || t.in != c {
		return false
	}
	t.taken++
	c.review(t)
	return true
}

// Done gives back one of a member's room, and returns false if it has taken none.
func (c *Chooser) Done(t *Taker) bool {
	if t.taken == 0 {
		return false
	}
	t.taken--
	c.review(t)
	return true
}

// review puts t into the ring, at the end, or takes it out, if it is not where it should be.
func (c *Chooser) review(t *Taker) {
	switch room := t.in == c && t.taken < t.room; {
	case room == (t.behind != nil):
	case room && c.next == nil:
		t.before, t.behind = t, t
		c.next = t
		c.ready++
	case room:
		t.before, t.behind = c.next.before, c.next
		t.before.behind, t.behind.before = t, t
		c.ready++
	default:
		t.before.behind, t.behind.before = t.behind, t.before
		if c.next == t {
			c.next = t.behind
		}
		if c.next == t { // the only one
			c.next = nil
		}
		t.before, t.behind = nil, nil
		c.ready--
	}
}
