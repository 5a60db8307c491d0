package group

import (
	"fmt"
	"slices"
	"time"

	"github.com/leatlog/leat/engine/internal/due"
)

// MemberID is one membership: each Join gives out another one, also to a name that has been in the group before. 0 is none.
type MemberID uint64

// Member is what a member says of itself when it joins.
type Member struct {
	// Name tells members apart. It is also the order in which partitions are dealt.
	Name string

	// Static keeps the member's partitions for it for the grace time after it has left, so that it may come back without a
	// rebalance. Joining under the name of a static member that is there fences that one.
	Static bool

	// Topics are what it wants to read.
	Topics []string
}

// AssignedConfig is how an assigned group behaves. All times may be 0.
type AssignedConfig struct {
	// Assignor plans who is to have which partition.
	Assignor Assignor

	// RevokeTimeout is how long an owner may take to give a partition back, before it is fenced. With 0 it is not asked.
	RevokeTimeout time.Duration

	// ProgressTimeout is how long a member that is at work may make no progress, before it is put out. 0 means for ever.
	ProgressTimeout time.Duration

	// Grace is how long a static member's partitions are kept for it after it has left.
	Grace time.Duration
}

// Assigned is the coordinator of an assigned group: a state machine that is told of events and returns what the engine has
// to do, in this order. It has no clock; times are nanoseconds of the engine's, which do not go back. It is not safe for
// concurrent use.
//
// # States
//
// A partition is free, owned, or being revoked; its Word says which, and under which generation:
//
//	        Assign               Revoke                  Released
//	free ----------> owned ----------------> revoking ------------> free
//	                   |                        | deadline
//	                   +---------- Lost --------+-----------------> free
//
// The plan says who is to have each partition. Where the owner is another one it is asked to give the partition back, and
// the one who is to have it gets it once it is free. A new plan may come at any time; it changes where partitions go that
// are on their way, and nothing else has to be undone.
//
// # Numbers
//
// All come from one counter, so no number is ever used for two things.
//
//   - The group's generation changes when members or partitions change. It is for people: it fences nothing.
//   - A MemberID is of one membership. It fences what a member says about itself: Leave, Progress, Rest, Subscribe.
//   - A partition's generation is of one interval of ownership, or of one between two. It fences deliveries, commits,
//     acknowledgements and Released. It changes when an ownership begins and when it ends, whether it was given back or lost.
//
// # Invariants
//
// One owner. A partition that is assigned was free, and is not assigned again before its ownership has ended.
//
// Pairs. Each Assign is followed by exactly one end with the same partition, member and generation: a Released that was
// accepted, or a Lost. A member that has gone (Left, Evict) has had an end for each Assign, and is not named again.
//
// Untouched. A partition whose owner is also its next owner under the new plan appears in no action.
//
// Fenced. After the end of an ownership no call with its generation is accepted, and the error carries a newer generation.
//
// Converges. If nothing else happens, the partitions are owned as planned once each Revoke has been answered or its deadline
// has passed, but those that are kept for a static member that is away, which are free.
//
// Quiet. A deadline strikes in the Tick at or after it and not before: until then an owner is one. After Tick(now) the next
// deadline is after now.
type Assigned struct {
	cfg AssignedConfig

	last       uint64 // the last number that was given out
	generation uint64

	topics   map[string][]*part
	parts    []*part // all, in order
	seats    map[string]*seat
	order    []*seat // the same, by name: so a plan need not sort them
	sessions map[MemberID]*session
	timers   *due.Heap[*timer]

	// Of the plan in force.
	alike    bool    // all seats want the same topics; false if that is not known
	most     int     // no seat is to have more partitions
	fullest  ranking // all seats, if all want the same topics and the plan is sticky
	emptiest ranking // the same
	plans    int     // how many have been made, for tests

	out []Action // of the event that is being dealt with
}

// part is a partition.
type part struct {
	Partition
	word   Word
	owner  *session // nil unless owned or revoking
	target *seat    // who is to have it; nil if nobody wants it
	slot   int      // where in what that one is to have
	grown  bool
	timer  timer // the deadline of a revoke
}

// seat is a member as the plan knows it: a name. A static member's seat outlives its sessions.
type seat struct {
	name    string
	static  bool
	topics  []string
	planned []*part  // what it is to have, in no order
	ranks   [2]int   // its places in the rankings
	session *session // nil: away
	timer   timer    // the end of the grace time
}

// session is one membership. One that leaves has no seat any more, but may still have partitions.
type session struct {
	id    MemberID
	seat  *seat // its seat; nil once it leaves
	name  string
	owned int
	timer timer // the deadline for progress
}

// timer is a deadline of one of the three, which it is a part of.
type timer struct {
	place   int // in the heap; 0 if it is not set
	at      int64
	part    *part
	seat    *seat
	session *session
}

// NewAssigned returns a group without members and partitions. Its numbers begin after last: 0, or the Last of a group of
// the same name that was restored. It panics if there is no such assignor.
func NewAssigned(cfg AssignedConfig, last uint64) *Assigned {
	if !cfg.Assignor.Valid() {
		panic("group: no such assignor: " + cfg.Assignor.String())
	}
	return &Assigned{
		cfg:      cfg,
		last:     last,
		topics:   map[string][]*part{},
		seats:    map[string]*seat{},
		sessions: map[MemberID]*session{},
		emptiest: ranking{least: true},
		timers:   due.New(func(t *timer, place int) { t.place = place }),
	}
}

// Last returns the last number that the group has given out.
func (g *Assigned) Last() uint64 { return g.last }

// Generation returns the group's generation.
func (g *Assigned) Generation() uint64 { return g.generation }

// Members returns how many members the group has, counting static ones that are away.
func (g *Assigned) Members() int { return len(g.seats) }

// Idle reports whether nobody has or may get anything: there is no member, and none that is still leaving.
func (g *Assigned) Idle() bool { return len(g.seats) == 0 && len(g.sessions) == 0 }

// Sits reports whether there is a member of that name that is neither away nor leaving.
func (g *Assigned) Sits(name string) bool {
	s := g.seats[name]
	return s != nil && s.session != nil
}

// Join adds a member. The errors are ErrName and ErrMemberExists; then nothing has changed.
func (g *Assigned) Join(m Member, now int64) (MemberID, []Action, error) {
	if m.Name == "" {
		return 0, nil, ErrName
	}
	topics := sorted(m.Topics)
	s, changed := g.seats[m.Name], g.parts
	switch {
	case s == nil:
		s = &seat{name: m.Name, static: m.Static, topics: topics}
		s.timer.seat = s
		g.add(s)
		g.sit(s)
		changed = g.come(s)
	case !s.static || !m.Static:
		return 0, nil, fmt.Errorf("%w: %q", ErrMemberExists, m.Name)
	default:
		if s.session != nil {
			g.putOut(s.session, CauseReplaced)
		}
		g.stop(&s.timer)
		g.sit(s)
		if slices.Equal(s.topics, topics) {
			g.generation = g.number()
		} else {
			s.topics = topics
			g.replan()
		}
	}
	for _, p := range changed {
		g.settle(p, now)
	}
	return s.session.id, g.actions(), nil
}

// Leave lets a member go. It is asked to give back what it has, and has left after that. If it is static its partitions are
// kept for it for the grace time. Leaving again does nothing.
func (g *Assigned) Leave(id MemberID, now int64) ([]Action, error) {
	m := g.sessions[id]
	if m == nil {
		return nil, g.noMember(id)
	}
	s := m.seat
	if s == nil {
		return nil, nil
	}
	m.seat, s.session = nil, nil
	g.stop(&m.timer)
	changed := g.parts
	if s.static && g.cfg.Grace > 0 {
		g.set(&s.timer, after(now, g.cfg.Grace))
		g.generation = g.number()
	} else {
		g.remove(s)
		changed = g.gone(s)
	}
	for _, p := range changed {
		g.settle(p, now)
	}
	g.leftIfDone(m)
	return g.actions(), nil
}

// Evict puts a member out at once: it loses what it has.
func (g *Assigned) Evict(id MemberID, now int64) ([]Action, error) {
	m := g.sessions[id]
	if m == nil {
		return nil, g.noMember(id)
	}
	g.evict(m, CauseRemoved)
	g.replan()
	g.settleAll(now)
	return g.actions(), nil
}

// Forget gives the partitions of a static member that is away to the others, before the grace time is over. The error is
// ErrUnknownMember if nobody of that name is away.
func (g *Assigned) Forget(name string, now int64) ([]Action, error) {
	s := g.seats[name]
	if s == nil || s.session != nil {
		return nil, fmt.Errorf("%w: nobody named %q is away", ErrUnknownMember, name)
	}
	g.remove(s)
	g.replan()
	g.settleAll(now)
	return g.actions(), nil
}

// Subscribe changes the topics that a member wants.
func (g *Assigned) Subscribe(id MemberID, topics []string, now int64) ([]Action, error) {
	m := g.sessions[id]
	if m == nil || m.seat == nil {
		return nil, g.noMember(id)
	}
	topics = sorted(topics)
	if slices.Equal(topics, m.seat.topics) {
		return nil, nil
	}
	m.seat.topics = topics
	g.replan()
	g.settleAll(now)
	return g.actions(), nil
}

// SetPartitions tells the group how many partitions a topic has. Partitions that come to a topic that the group knows
// already are marked as grown in their Assign: a position that they do not have begins at the oldest record, so that
// nothing published before the group noticed is lost. The error is ErrShrink.
func (g *Assigned) SetPartitions(topic string, n int, now int64) ([]Action, error) {
	parts, known := g.topics[topic]
	if n < len(parts) {
		return nil, fmt.Errorf("%w: %q has %d, not %d", ErrShrink, topic, len(parts), n)
	}
	if known && n == len(parts) {
		return nil, nil
	}
	for i := len(parts); i < n; i++ {
		p := &part{Partition: Partition{topic, i}, grown: known, word: freeWord(g.number())}
		p.timer.part = p
		parts = append(parts, p)
		g.parts = append(g.parts, p)
	}
	g.topics[topic] = parts
	slices.SortFunc(g.parts, func(a, b *part) int { return a.Compare(b.Partition) })
	g.replan()
	g.settleAll(now)
	return g.actions(), nil
}

// RemoveTopic takes a topic's partitions away from the group; their owners lose them. A topic that the group does not know
// is not an error.
func (g *Assigned) RemoveTopic(topic string, now int64) []Action {
	if _, known := g.topics[topic]; !known {
		return nil
	}
	for _, p := range g.topics[topic] {
		if p.owner != nil {
			g.lose(p, CauseDeleted)
		}
		p.aim(nil)
	}
	delete(g.topics, topic)
	g.parts = slices.DeleteFunc(g.parts, func(p *part) bool { return p.Topic == topic })
	g.replan()
	g.settleAll(now)
	return g.actions()
}

// Reset ends the present ownership of a partition, so that its position can be set while members run: what its owner had in
// progress is fenced, and the one who is to have the partition, most often the same, gets it under a new generation.
func (g *Assigned) Reset(at Partition, now int64) ([]Action, error) {
	p := g.part(at)
	if p == nil {
		return nil, fmt.Errorf("%w: %v", ErrUnknownPartition, at)
	}
	if p.owner != nil {
		g.lose(p, CauseReset)
		g.settle(p, now)
	}
	return g.actions(), nil
}

// Released takes a partition back that its owner was asked for. The owner has finished and committed, and does nothing more
// with it. An owner that comes too late, after its deadline has struck, gets a FencedError.
func (g *Assigned) Released(at Partition, id MemberID, generation uint64, now int64) ([]Action, error) {
	if err := g.Owns(at, id, generation); err != nil {
		return nil, err
	}
	p := g.part(at)
	if !p.word.Revoking() {
		return nil, fmt.Errorf("%w: %v", ErrNotRevoking, at)
	}
	g.free(p)
	g.settle(p, now)
	return g.actions(), nil
}

// Owns returns nil if the member owns the partition under that generation, also while it is being revoked, and otherwise a
// FencedError, or ErrUnknownPartition.
func (g *Assigned) Owns(at Partition, id MemberID, generation uint64) error {
	p := g.part(at)
	if p == nil {
		return fmt.Errorf("%w: %v", ErrUnknownPartition, at)
	}
	if p.word.MayCommit(generation) && p.owner.id == id {
		return nil
	}
	e := &FencedError{Reason: FenceOwner, Member: id, Partition: at, Generation: generation, Current: p.word.Generation()}
	if p.owner != nil {
		e.Owner = p.owner.id
	}
	switch {
	case g.sessions[id] == nil:
		e.Reason = FenceMember
	case p.word.MayCommit(generation):
		e.Reason = FenceForeign
	}
	return e
}

// Word returns the state of a partition, or false if the group does not know it.
func (g *Assigned) Word(at Partition) (Word, bool) {
	if p := g.part(at); p != nil {
		return p.word, true
	}
	return 0, false
}

// Progress says that a member is at work and was seen to make progress at now: its deadline counts from there. The time may
// be an earlier one than that of other events.
func (g *Assigned) Progress(id MemberID, now int64) error {
	m := g.sessions[id]
	if m == nil {
		return g.noMember(id)
	}
	if m.seat != nil && g.cfg.ProgressTimeout > 0 {
		g.set(&m.timer, after(now, g.cfg.ProgressTimeout))
	}
	return nil
}

// Rest says that a member has nothing to do, so that it has no deadline. A member that has just joined rests.
func (g *Assigned) Rest(id MemberID) error {
	m := g.sessions[id]
	if m == nil {
		return g.noMember(id)
	}
	g.stop(&m.timer)
	return nil
}

// Overdue appends to dst the members that the next Tick at now would put out. Who keeps the time of each member's last
// progress elsewhere asks before that Tick, and tells Progress or Rest of those that are fine; so nothing has to be told
// while all goes well.
func (g *Assigned) Overdue(now int64, dst []MemberID) []MemberID {
	from := len(dst)
	g.timers.Due(now, func(t *timer) {
		if t.session != nil {
			dst = append(dst, t.session.id)
		}
	})
	slices.Sort(dst[from:])
	return dst
}

// NextDeadline returns when Tick has something to do, or false if no deadline is set.
func (g *Assigned) NextDeadline() (int64, bool) { return g.timers.Next() }

// Tick lets the deadlines strike that have passed.
func (g *Assigned) Tick(now int64) []Action {
	replan := false
	var freed []*part
	for t, ok := g.timers.Pop(now); ok; t, ok = g.timers.Pop(now) {
		switch {
		case t.session != nil:
			g.evict(t.session, CauseNoProgress)
			replan = true
		case t.seat != nil:
			g.remove(t.seat)
			replan = true
		default:
			p := t.part
			g.lose(p, CauseDeadline)
			freed = append(freed, p)
		}
	}
	// Only now: nothing is given to somebody whose own deadline has struck too.
	if replan {
		g.replan()
		g.settleAll(now)
	} else {
		for _, p := range freed {
			g.settle(p, now)
		}
	}
	return g.actions()
}
