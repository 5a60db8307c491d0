package group

import "fmt"

// Kind is what an Action is.
type Kind uint8

// What the engine is told to do. Member is who it concerns.
const (
	// Assign: the member owns Partition from now on, under Generation: call its assigned callback and start delivery at the
	// group's position. With Grown, a partition that has no position starts at the oldest record.
	Assign Kind = iota + 1

	// Revoke: start on no more records, wait for those in progress, commit, call the revoked callback, and then say
	// Released. It has to be done by Deadline.
	Revoke

	// Lost: the ownership has ended, for Cause. Fence it: what is still in progress may end, but its commits and
	// acknowledgements are refused, and nothing else begins. Call the lost callback, unless the revoked callback of the same
	// generation has been called.
	Lost

	// Left: the member has left the group, and has given everything back or lost it.
	Left

	// Evict: the member has been put out of the group, for Cause. What it had has been lost.
	Evict
)

var kindNames = [...]string{Assign: "assign", Revoke: "revoke", Lost: "lost", Left: "left", Evict: "evict"}

// String returns the kind's name in small letters.
func (k Kind) String() string { return textOf(k, kindNames[:], "Kind") }

// Cause is why an ownership or a membership has ended.
type Cause uint8

// Why something was lost, or somebody put out.
const (
	CauseDeadline   Cause = iota + 1 // it was not given back in time
	CauseNoProgress                  // the member was at work and made no progress
	CauseReplaced                    // a static member of the same name has joined
	CauseRemoved                     // Evict was called
	CauseReset                       // the group's position was set
	CauseDeleted                     // the topic is gone
)

var causeTexts = [...]string{
	CauseDeadline:   "not given back in time",
	CauseNoProgress: "made no progress",
	CauseReplaced:   "replaced by a member of the same name",
	CauseRemoved:    "removed",
	CauseReset:      "position reset",
	CauseDeleted:    "topic deleted",
}

// String says it in a few words.
func (c Cause) String() string { return textOf(c, causeTexts[:], "Cause") }

// Action is something that the engine has to do. Those of one event are to be done in their order.
type Action struct {
	Kind       Kind
	Partition  Partition // of Assign, Revoke and Lost
	Member     MemberID
	Name       string // the member's
	Generation uint64 // of Assign, Revoke and Lost
	Deadline   int64  // of Revoke
	Cause      Cause  // of Lost and Evict
	Grown      bool   // of Assign: the partition came to a topic that the group knew
}

// String is for logs and tests.
func (a Action) String() string {
	s := fmt.Sprintf("%v %s(%d)", a.Kind, a.Name, a.Member)
	if a.Generation != 0 {
		s += fmt.Sprintf(" %v @%d", a.Partition, a.Generation)
	}
	switch {
	case a.Kind == Revoke:
		s += fmt.Sprintf(" until %d", a.Deadline)
	case a.Cause != 0:
		s += fmt.Sprintf(" (%v)", a.Cause)
	case a.Grown:
		s += " grown"
	}
	return s
}
