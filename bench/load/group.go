package load

import (
	"errors"
	"time"
)

// Kind says how the members of a group scenario share the messages.
type Kind string

const (
	// Assigned shares out the partitions: each message of a partition goes to the member that owns it, in order.
	Assigned Kind = "assigned"
	// Shared shares out the messages: each goes to one member, in no order.
	Shared Kind = "shared"
	// Broadcast shares nothing: each member is a subscriber of its own and sees every message, in order.
	Broadcast Kind = "broadcast"
)

// Mode says when a message counts as processed, and so what a group may do with it.
type Mode string

const (
	// AtLeastOnce counts it when its handler has succeeded. It may come again if its handler failed, or if the member that had
	// it has lost it.
	AtLeastOnce Mode = "at-least-once"
	// AtMostOnce counts it before it is delivered. It never comes again.
	AtMostOnce Mode = "at-most-once"
	// Manual counts it when it is acknowledged. It may come again until an acknowledgement has succeeded, and never after.
	Manual Mode = "manual"
)

// The ways to acknowledge in Manual mode.
const (
	AckEach  = "each"  // one by one
	AckBatch = "batch" // all of a batch at once: a cumulative acknowledgement, or a commit of what a poll has returned
)

// Group is the receiving side of a scenario whose consumers are members of a consumer group. The zero value is none: then
// Scenario.Readers and Subscribers say who receives.
type Group struct {
	// Kind says how the members share. Empty means that there is no group, and everything else must be zero.
	Kind Kind
	// Members is how many there are, 1 to 10,000.
	Members int
	// Mode says when a message counts as processed. Empty means AtLeastOnce.
	Mode Mode
	// Ack is how a member acknowledges in Manual mode. Empty means AckEach.
	Ack string
	// Poll makes members ask for messages instead of being called with them.
	Poll bool
	// Concurrency is how many handlers of one member may run at a time. 0 means the target's own choice.
	Concurrency int

	// Handler is how long a handler takes for each message. It computes for times below 200 us and sleeps for longer ones.
	Handler time.Duration
	// Fail is which share of all deliveries fails, 0 to 0.9. Which ones is decided by the seed.
	Fail float64
	// Deliveries is how often a message is delivered until it goes to the dead-letter topic. 0 means 5.
	Deliveries int
	// Backoff is how long the target waits before it delivers a failed message again. 0 means 1 ms.
	Backoff time.Duration

	// Slow is how long the first member takes for each message in the second half of the measured time. Hang makes it take
	// no end instead, until that is over.
	Slow time.Duration
	Hang bool
	// Timeout is after how long without progress the target takes away what a member has. 0 means the target's own choice, or,
	// with Hang, a second.
	Timeout time.Duration

	// Churn is after how long, again and again, a member joins and another one leaves. 0 means never.
	Churn time.Duration
	// Evict is which share of those that leave is put out by force, 0 to 1.
	Evict float64

	// Backlog is how many messages may be published and not processed when producers publish as fast as they can. 0 means no
	// bound but the target's, or, if handlers take time or fail, what they can do in a quarter of a second.
	Backlog int
}

// ErrNoGroups is wrapped by what Run returns if a scenario needs a target that has consumer groups.
var ErrNoGroups = errors.New("has no consumer groups")

// ErrHandler is what a handler returns for a delivery that is to fail.
var ErrHandler = errors.New("load: this delivery is to fail")

// GroupTarget is a Target that has consumer groups.
type GroupTarget interface {
	Target

	// OpenGroup makes an instance for one run of a scenario with a Group. Nothing is published before all members have joined.
	OpenGroup(s Scenario) (GroupInstance, error)
}

// GroupInstance is one run's instance of a GroupTarget. The harness calls Join for each member, then Dead, then Producer for
// each producer, and goes on calling Join, Positions and Figures while the producers publish. Close comes last.
type GroupInstance interface {
	// Producer returns the handle of producer i. One goroutine uses it.
	Producer(i int) (Producer, error)

	// Join lets a member in, under a name that no other has, whose messages go to sink from now on.
	Join(name string, sink Sink) (Seat, error)

	// Dead makes the target call deliver for each message that has come to the dead-letter topic, with how often it was
	// delivered, from any goroutine. The partition is the one that the message was published to. The member is that of a Broadcast, and 0 in a group.
	Dead(deliver func(member, partition int, payload []byte, attempts int)) error

	// Positions returns for a partition how far all is processed, and how many messages there are. The member is that of a
	// Broadcast, and 0 in a group.
	Positions(member, partition int) (position, end int64, err error)

	// Figures returns the target's own counts.
	Figures() Figures

	// Close ends the instance. Afterwards no method of a Sink is called any more.
	Close() error
}

// Figures is what a target says about its group.
type Figures struct {
	Generation uint64 // how often the group has changed
	Expired    uint64 // messages that were taken away because they were not settled in time
	Fenced     uint64 // acknowledgements and outcomes that were refused because they came too late
}

// Seat is a member's place in a group.
type Seat interface {
	// Leave lets the member go in good order: what its handlers do still counts. Evict puts it out by force. Both return at
	// once; Gone is closed when no method of its sink is called any more.
	Leave()
	Evict() error
	Gone() <-chan struct{}
}

// Delivery is one message on its way to a member. The payload is lent for the call.
type Delivery struct {
	Partition int
	Payload   []byte
	Attempt   int // what the target says how often the message was delivered, 1 the first time; 0 if it does not say
}

// Settler settles one delivery in Manual mode.
type Settler interface {
	Ack() error
	Nack(delay time.Duration) error // a negative delay is the target's own
}

// Sink is what a target delivers a member's messages to. Its methods may be called from any goroutine.
type Sink interface {
	// Deliver is the handler: it takes one message and returns nil if it was processed. How is nil unless the mode is Manual,
	// and then settles the message, whatever is returned.
	Deliver(d Delivery, how Settler) error

	// Batch takes several messages that are acknowledged at once by calling ack, in Manual mode with AckBatch.
	Batch(ds []Delivery, ack func() error)

	// Lost is told of partitions that were taken away from the member by force; in a group of kind Shared it need not be.
	Lost(partitions []int)
}
