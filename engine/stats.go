package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/leatlog/leat/engine/internal/delivery"
)

// Stats is a snapshot of an engine. It is a copy: nobody changes it, and changing it changes nothing. Counters of a lane are
// as of the end of its last turn (a millisecond or 16 calls of the handler ago, whichever is longer); positions and offsets
// are exact.
type Stats struct {
	MemoryUsed int64 // bytes of segments, also of those that are still in files only
	MemoryKept int64 // bytes kept for new segments
	Workers    int
	Running    int // workers that run a lane
	Queued     int // lanes that wait for a worker
	Topics     []TopicStats
}

// TopicStats is a snapshot of a topic.
type TopicStats struct {
	Name          string
	ID            TopicID
	Partitions    []PartitionStats
	Subscriptions []SubscriptionStats
}

// PartitionStats is a snapshot of a partition; First <= Next.
type PartitionStats struct {
	Partition   int
	First, Next Offset // it holds [First, Next); Next is how many records were ever published
	Bytes       int64  // what they take, index entries included
	Segments    int
	Reclaimed   int64  // records dropped by retention or TruncateBefore
	AsyncFailed int64  // accepted by TryPublish or PublishAsync without a callback, and failed
	InHandover  int    // slots of the hand-over in use
	Callbacks   int    // callbacks of PublishAsync that have not run
	Blocked     int    // publishers that wait
	Full        bool   // the appender waits for room
	HeldBy      string // a subscription or reader whose position keeps it from making room
	Exclusive   bool   // an Appender is open
	Durable     Offset // everything below survives a power cut; 0 in memory
	ReadOnly    error  // why it takes no records, or nil: see ErrReadOnly
}

// SubscriptionStats is a snapshot of a subscription; also of one that has ended, until its last handler has returned.
type SubscriptionStats struct {
	ID    string
	Lanes []LaneStats // by partition
}

// LaneStats is what a subscription has done in one partition: Position is the next record to process, Lag how many records
// wait, LagTime how old the first of them is (or some more if it is in files only), and Running says that a handler is being called, with RunningFor for how long
// the present turn of deliveries has gone on. Position is never beyond the partition's Next; it is below First if records
// were dropped and the subscription has not got to that gap yet, and these do not count in Lag.
type LaneStats = delivery.Stats

// Stats returns a snapshot. It is cheap enough to be called every second.
func (e *Engine) Stats() Stats {
	s := Stats{
		Workers: e.work.Workers(),
		Running: e.work.Running(),
		Queued:  e.work.Queued(),
	}
	s.MemoryUsed, s.MemoryKept = e.pool.Held()
	for _, t := range e.all() {
		s.Topics = append(s.Topics, t.Stats())
	}
	return s
}

// Describe returns the snapshot of one topic.
func (e *Engine) Describe(topic string) (TopicStats, error) {
	t, err := e.Topic(topic)
	if err != nil {
		return TopicStats{}, err
	}
	return t.Stats(), nil
}

// Stats returns a snapshot of the topic.
func (t *Topic) Stats() TopicStats {
	s := TopicStats{Name: t.name, ID: t.id}
	for _, sub := range t.subscriptions() { // first, so that no position is beyond an end
		s.Subscriptions = append(s.Subscriptions, sub.Stats())
	}
	for _, p := range t.made.load() { // all, so that each lane above has its partition
		s.Partitions = append(s.Partitions, p.Stats())
	}
	slices.SortFunc(s.Subscriptions, func(a, b SubscriptionStats) int { return strings.Compare(a.ID, b.ID) })
	return s
}

// Stats returns a snapshot of the partition.
func (p *Partition) Stats() PartitionStats { return PartitionStats(p.p.Stats()) }

// Stats returns a snapshot of the subscription.
func (s *Subscription) Stats() SubscriptionStats {
	r := SubscriptionStats{ID: s.id}
	now := s.t.e.clock.Now()
	for _, l := range s.lanes.load() {
		r.Lanes = append(r.Lanes, l.Stats(now))
	}
	return r
}

// Age returns how long ago the oldest record of the partition was appended, or some time before it if it is still in the files only;
// 0 if there is none.
func (p *Partition) Age() time.Duration {
	t, ok := p.p.Log().TimeOf(uint64(p.First()))
	if !ok {
		return 0
	}
	return time.Duration(max(0, p.t.e.clock.Now()-t))
}
