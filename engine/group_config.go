package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/leatlog/leat/engine/internal/group"
)

// GroupKind says how the members of a group share its records.
type GroupKind uint8

const (
	// Assigned shares out the partitions: each has at most one owner at every instant, who gets its records in order. The
	// default.
	Assigned GroupKind = iota

	// Shared shares out the records: each goes to one member, by turns among those that have room, and members work on
	// records of one partition at the same time. There is no order among members, nor among what is delivered again.
	Shared
)

// String returns the kind's name in small letters.
func (k GroupKind) String() string {
	switch k {
	case Assigned:
		return "assigned"
	case Shared:
		return "shared"
	}
	return fmt.Sprintf("GroupKind(%d)", uint8(k))
}

// Assignor says which member of an assigned group gets which partition. Each is a pure function of the members' names and
// topics; if all want the same topics no member has two partitions more than another.
type Assignor = group.Assignor

const (
	// Sticky moves as few partitions as it can. The default.
	Sticky = group.Sticky
	// Range gives each member a run of consecutive partitions of each topic.
	Range = group.Range
	// Deal deals the partitions of all topics like cards: round robin.
	Deal = group.RoundRobin
)

// Settling says how records that are settled one by one are held, and how often and when they are delivered again. It is
// for shared groups, and for the Manual mode of assigned groups and subscriptions. The zero value works.
type Settling struct {
	// AckWait is how long a delivered record may stay unsettled, at its first, second, ... delivery, before it is delivered
	// again; the last value repeats. Extend begins it anew. Empty means 30 s. It does not apply to an assigned group that is
	// not Manual: there the owner has the record until it loses the partition.
	AckWait []time.Duration

	// MaxInFlight is how many records of a partition may be delivered and not settled at a time. Those that wait to be
	// delivered again do not count. 0 means 1000.
	MaxInFlight int

	_ struct{}
}

// GroupConfig configures a consumer group: what all its members have in common. It must name topics; the rest may be zero.
type GroupConfig struct {
	// Topics are what the group reads. They must exist.
	Topics []string

	// Kind says how members share.
	Kind GroupKind

	// Start is where the group's positions are when it is created. The zero value means Latest. Partitions that a topic gets
	// later begin with their first record.
	Start Start

	// Mode says when a record counts as processed.
	Mode Mode

	// Settling says how records are held that are settled one by one.
	Settling Settling

	// Backoff is how long to wait after the first, second, ... failure of a record (an error, a panic, a Nack without a
	// delay) until it is delivered again; the last value repeats. Empty means 10 ms, 100 ms, 1 s, 10 s. The least is 1 ms.
	Backoff []time.Duration

	// MaxDeliveries is how often a record is delivered, the first time included, before it is given up. 0 means 10, Unlimited
	// no bound.
	MaxDeliveries int

	// DeadLetter is the topic that gets the records that are given up, with headers that say where they come from and why
	// (see HeaderTopic). A record is given up only when it is there: as long as it cannot be published it stays due. Empty
	// means that records that are given up are counted and told to Hooks.Dropped. It must exist, and not be one of Topics.
	DeadLetter string

	// DeadLetterRejected says that records which a handler has rejected go there as well.
	DeadLetterRejected bool

	// Assignor says which member gets which partition. For assigned groups, as are the next three.
	Assignor Assignor

	// RevokeTimeout is how long a member may take to give back a partition that is to move: to finish what its handler is
	// doing, and its revoked callback. Then it has lost it, and whatever it still does there counts no more. 0 means 30 s.
	RevokeTimeout time.Duration

	// ProgressTimeout puts out a member one of whose handlers or callbacks has been running for so long, or that has
	// partitions and has not polled for so long; others get its partitions. A handler that has been making progress until
	// then may be given as much time once more. The member joins again by itself when its handlers and callbacks have
	// returned, or when it polls. 0 means 5 min, Unlimited never.
	ProgressTimeout time.Duration

	// Grace is how long the partitions of a static member are kept for it after it has closed. 0 means 30 s.
	Grace time.Duration

	// ExpireAfter deletes the group when it has had no member for so long. 0 means 7 days, Unlimited never.
	ExpireAfter time.Duration

	// NonGating says that publishers do not wait for this group: what it has not read may be dropped. A group without members
	// never makes them wait; a static member that is away is one until Grace is over.
	NonGating bool

	// Gap says what to do about records that were dropped before they were delivered: FailOnGap ends the member that finds
	// them.
	Gap GapPolicy

	// OnGap is told of each gap before the next record is delivered, on the same goroutine. May be nil.
	OnGap func(topic string, gap GapError)

	_ struct{}
}

// Defaults of a GroupConfig.
const (
	defaultRevokeTimeout   = 30 * time.Second
	defaultProgressTimeout = 5 * time.Minute
	defaultGrace           = 30 * time.Second
	defaultExpireAfter     = 7 * 24 * time.Hour
)

func (c GroupConfig) withDefaults() (GroupConfig, error) {
	switch {
	case len(c.Topics) == 0:
		return c, configError("the group has no topics")
	case c.Kind > Shared:
		return c, configError("Kind is %d", c.Kind)
	case c.Mode > Manual:
		return c, configError("Mode is %d", c.Mode)
	case !c.Assignor.Valid():
		return c, configError("Assignor is %d", c.Assignor)
	case c.Gap > FailOnGap:
		return c, configError("Gap is %d", c.Gap)
	case c.MaxDeliveries < Unlimited:
		return c, configError("MaxDeliveries is %d", c.MaxDeliveries)
	case c.RevokeTimeout < 0 || c.Grace < 0 || c.ProgressTimeout < Unlimited || c.ExpireAfter < Unlimited:
		return c, configError("a time is negative")
	}
	topics := map[string]bool{}
	for _, name := range c.Topics {
		switch {
		case topics[name]:
			return c, configError("topic %s is there twice", name)
		case name == c.DeadLetter && name != "":
			return c, configError("DeadLetter is %s, which the group reads", name)
		}
		topics[name] = true
	}
	var err error
	if c.Backoff, c.MaxDeliveries, err = retries(c.Backoff, c.MaxDeliveries); err != nil {
		return c, err
	}
	if err := c.Settling.window(c.Backoff, c.MaxDeliveries).Check(); err != nil {
		return c, configError("%v", err)
	}
	if len(c.Settling.AckWait) == 0 {
		c.Settling.AckWait = []time.Duration{group.DefaultAckWait}
	}
	if c.Settling.MaxInFlight == 0 {
		c.Settling.MaxInFlight = group.DefaultMaxInFlight
	}
	setDefault(&c.RevokeTimeout, defaultRevokeTimeout)
	setDefault(&c.ProgressTimeout, defaultProgressTimeout)
	setDefault(&c.Grace, defaultGrace)
	setDefault(&c.ExpireAfter, defaultExpireAfter)
	return c, nil
}

// clone returns a copy with lists of its own.
func (c GroupConfig) clone() GroupConfig {
	c.Topics, c.Backoff, c.Settling.AckWait = slices.Clone(c.Topics), slices.Clone(c.Backoff), slices.Clone(c.Settling.AckWait)
	return c
}

// asGiven returns c as somebody could have given it: what has no bound is Unlimited.
func (c GroupConfig) asGiven() GroupConfig {
	if c.MaxDeliveries == 0 {
		c.MaxDeliveries = Unlimited
	}
	for _, d := range []*time.Duration{&c.ProgressTimeout, &c.ExpireAfter} {
		if *d == forEver {
			*d = Unlimited
		}
	}
	return c
}

// setDefault sets a time that is 0; Unlimited stands for the longest time there is.
func setDefault(d *time.Duration, value time.Duration) {
	switch *d {
	case 0:
		*d = value
	case Unlimited:
		*d = forEver
	}
}

// forEver is a time that does not come.
const forEver = time.Duration(1<<63 - 1)

// window returns how the records of one partition are settled.
func (c GroupConfig) window() group.SharedConfig {
	w := c.Settling.window(c.Backoff, c.MaxDeliveries)
	if c.Kind == Assigned {
		w.InOrder = true
		if c.Mode != Manual {
			w.AckWait = []time.Duration{forEver}
		}
	}
	return w
}

func (s Settling) window(backoff []time.Duration, maxDeliveries int) group.SharedConfig {
	return group.SharedConfig{
		MaxInFlight:   s.MaxInFlight,
		AckWait:       s.AckWait,
		Backoff:       backoff,
		MaxDeliveries: maxDeliveries,
	}
}

// MemberConfig configures one member of a group. The zero value works.
type MemberConfig struct {
	// Name tells the member from others of the group. Empty means one of the engine's choice.
	Name string

	// Static keeps the member's partitions for it for GroupConfig.Grace after it has closed, so that it may come back under
	// its name without anything moving. Joining under the name of a static member that is there puts that one out. It needs a
	// Name, and an assigned group.
	Static bool

	// Topics are which of the group's topics the member wants. Empty means all.
	Topics []string

	// MaxConcurrency is how many handlers of the member run at a time. 0 means: in a shared group one; in an assigned group as
	// many as the others leave, all members that say nothing together one less than the engine has workers, so that a group which
	// hangs does not take them all. It does not bound a Dedicated member, and is not for a Consumer.
	MaxConcurrency int

	// Dedicated gives each partition of the member a goroutine of its own, apart from the engine's workers; in a shared group
	// MaxConcurrency of them. It is for handlers that block for long.
	Dedicated bool

	// BatchSize is how many records a BatchHandler gets at the most. 0 means 64, which is also the most in Manual mode and
	// in shared groups.
	BatchSize int

	// ByKey lets the member work on records of one partition at the same time, if they have different keys. See
	// Parallelism.
	ByKey Parallelism

	// NoRejoin says that a member that was put out for lack of progress stays out.
	NoRejoin bool

	// OnAssigned is told of partitions that the member has got, before any of their records is delivered. OnRevoked is told of
	// those that it gives back, when no handler of theirs runs any more; it may still commit and acknowledge (a Consumer by CommitTo:
	// Commit would take in what a Poll beside it has returned). OnLost is told
	// of those that it has lost, for what it had: it can commit nothing there. Each partition that OnAssigned was told of comes
	// to one of the other two, once. They are called one at a time for each member, on a goroutine of their own, and may do
	// what a handler may. In a shared group nobody has a partition and they are not called.
	OnAssigned func([]Assignment)
	OnRevoked  func([]Assignment)
	OnLost     func([]Assignment, error)

	_ struct{}
}

// Assignment is one partition in the hands of one member.
type Assignment struct {
	Topic      string
	Partition  int
	Generation uint64 // of this time that it has the partition: a later one has a greater number
	Position   Offset // where it begins, or ended
}

func (c MemberConfig) withDefaults(g *Group, push bool) (MemberConfig, error) {
	e := g.e
	switch {
	case c.Static && (c.Name == "" || g.cfg.Kind == Shared):
		return c, configError("a Static member needs a Name, and an assigned group")
	case c.MaxConcurrency < 0:
		return c, configError("MaxConcurrency is %d", c.MaxConcurrency)
	case c.BatchSize < 0 || c.BatchSize > 1<<16:
		return c, configError("BatchSize is %d, not 1 to %d", c.BatchSize, 1<<16)
	}
	if c.MaxConcurrency == 0 {
		c.MaxConcurrency = max(1, e.cfg.Workers-1)
		if g.cfg.Kind == Shared {
			c.MaxConcurrency = 1
		}
	}
	if c.BatchSize == 0 {
		c.BatchSize = 64
	}
	if c.ByKey.Handlers != 0 && (!push || g.cfg.Kind == Shared || g.cfg.Mode != AtLeastOnce) {
		return c, configError("ByKey needs a handler, an assigned group, and AtLeastOnce")
	}
	var err error
	if c.ByKey, err = c.ByKey.withDefaults(); err != nil {
		return c, err
	}
	all := map[string]bool{}
	for _, t := range g.cfg.Topics {
		all[t] = true
	}
	for _, t := range c.Topics {
		if !all[t] {
			return c, fmt.Errorf("%w: %q is none of the group's", ErrUnknownTopic, t)
		}
	}
	if c.Topics = slices.Clone(c.Topics); len(c.Topics) == 0 {
		c.Topics = g.cfg.Topics
	}
	return c, nil
}

// Parallelism lets the records of one partition be handled at the same time as far as they have different keys. Those of one
// key come one at a time and in order; records with a nil key have no order. A record that fails holds back its own key
// only. The position is the end of the gap-free prefix of what is processed: what is processed above it is delivered again
// to who goes on from there.
type Parallelism struct {
	// Handlers is how many handlers may run at a time for each partition, as far as MaxConcurrency allows. 0 means one at a
	// time: no parallelism.
	Handlers int

	// MaxInFlight is how many records may be read and not processed, and MaxKeys of how many keys, for each partition. 0 means
	// 1000 and 256; the most is a million.
	MaxInFlight, MaxKeys int

	_ struct{}
}

func (p Parallelism) withDefaults() (Parallelism, error) {
	if p.Handlers < 0 || p.Handlers > maxWorkers || p.MaxInFlight < 0 || p.MaxKeys < 0 {
		return p, configError("ByKey has a bad number: %d, %d, %d", p.Handlers, p.MaxInFlight, p.MaxKeys)
	}
	if p.MaxInFlight > maxInFlight || p.MaxKeys > maxInFlight {
		return p, configError("ByKey has a number above %d: %d, %d", maxInFlight, p.MaxInFlight, p.MaxKeys)
	}
	if p.MaxInFlight == 0 {
		p.MaxInFlight = 1000
	}
	if p.MaxKeys == 0 {
		p.MaxKeys = 256
	}
	return p, nil
}
