package check

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// ConsumerKind is what kind of consumer one is.
type ConsumerKind uint8

// Kinds of consumers.
const (
	Broadcast ConsumerKind = iota // sees every record: a reader or a subscription
	Assigned                      // a group whose members share out the partitions
	Shared                        // a group whose members share out the records
)

// Mode is what makes a record count as processed.
type Mode uint8

// Modes.
const (
	AtLeastOnce Mode = iota // its handler returned without an error; of what is polled or Pulled: that it was polled
	AtMostOnce              // its handler was going to be called
	Manual                  // OpAck, OpAckThrough or OpReject of it was accepted
	ByCommit                // OpCommit of an offset above it was accepted
)

// ConsumerConfig is what a consumer is and may do. The zero value is a subscription or a reader of its own.
type ConsumerConfig struct {
	Kind ConsumerKind
	Mode Mode

	// ByKey says that records of different keys, and those without a key, may be handled at the same time, and in any order.
	// The keys are those of the payloads.
	ByKey bool

	// Handlers is how many handlers of one owner run at the same time at most, with ByKey. 0 means that it is not known.
	Handlers int

	// MaxDeliveries is after how many failed deliveries a record counts as given up. 0 means that only OpDropped says so.
	MaxDeliveries int

	// AckWait is how long a Manual consumer, or a shared group, may hold a record before it may be delivered again, less
	// what may pass between the acquisition, which the log does not see, and the call of the handler: on a busy machine
	// that has no bound, so a test whose holds are to expire says 1, and one that is to find a record with two holders
	// makes sure that none expires, and says 0, which means for ever.
	AckWait time.Duration

	// Held says that records may be held by their owner for some time after they were given out, as by those who poll, and
	// that a gap begins at the first that is not settled: it may tell of some that had been given out.
	Held bool

	// Impatient says that an owner may lose a partition while it is asked to give it back: because it takes too long, or is
	// put out. Its revoked callback may have been on its way when that happened, and is called all the same.
	Impatient bool

	// Protected says that retention drops nothing that the consumer has not processed.
	Protected bool
}

// ConsumerInfo is a consumer of a history.
type ConsumerInfo struct {
	Name   string
	Config ConsumerConfig
}

// PartitionInfo is a partition of a history.
type PartitionInfo struct {
	Name string

	// Copies says that its records may be copies of those of other partitions, as in a dead-letter topic. Nothing is
	// expected of what is in it but that it was sent somewhere.
	Copies bool

	// First is the offset of the first record that it ever had.
	First int64
}

// Recorder collects the history of one run. All its methods may be called from any goroutine.
type Recorder struct {
	seed  uint64
	clock func() int64

	// batches is the number of the last batch. Batch adds to it, whoever calls; it publishes nothing.
	batches atomic.Uint32

	mu         sync.Mutex
	producers  uint64
	logs       []*Log
	partitions []PartitionInfo
	consumers  []ConsumerInfo
	members    []string
}

// NewRecorder returns a Recorder on the monotonic clock. The seed is what the run can be repeated by, and is only printed.
func NewRecorder(seed uint64) *Recorder {
	start := time.Now()
	return NewRecorderWithClock(seed, func() int64 { return int64(time.Since(start)) })
}

// NewRecorderWithClock returns a Recorder on another clock. It must not go back, for any goroutine.
func NewRecorderWithClock(seed uint64, clock func() int64) *Recorder {
	return &Recorder{seed: seed, clock: clock}
}

// Ticks returns a logical clock: each call returns a higher number, so no two events have the same time. It finds more than a
// real one, and hides data races, since all goroutines meet at it. AckWait makes no sense with it.
func Ticks() func() int64 {
	var now atomic.Int64
	return func() int64 { return now.Add(1) }
}

// Seed returns the seed.
func (r *Recorder) Seed() uint64 { return r.seed }

// Producer returns a new producer, with a number of its own from 1 on.
func (r *Recorder) Producer() *Producer {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.producers++
	return &Producer{number: r.producers}
}

// Partition makes a partition known, whose first offset is 0. Each call makes another one.
func (r *Recorder) Partition(name string) Partition {
	return r.addPartition(PartitionInfo{Name: name})
}

// PartitionFrom makes a partition known whose first offset is another one.
func (r *Recorder) PartitionFrom(name string, first int64) Partition {
	return r.addPartition(PartitionInfo{Name: name, First: first})
}

// CopyPartition makes a partition known that holds copies of records of others, as that of a dead-letter topic.
func (r *Recorder) CopyPartition(name string) Partition {
	return r.addPartition(PartitionInfo{Name: name, Copies: true})
}

func (r *Recorder) addPartition(p PartitionInfo) Partition {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partitions = append(r.partitions, p)
	return Partition(len(r.partitions) - 1)
}

// Consumer makes a consumer known. Each call makes another one.
func (r *Recorder) Consumer(name string, cfg ConsumerConfig) Consumer {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.consumers = append(r.consumers, ConsumerInfo{name, cfg})
	return Consumer(len(r.consumers))
}

// Member makes a member known. Each call makes another one: who joins again is somebody else.
func (r *Recorder) Member(name string) Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members = append(r.members, name)
	return Member(len(r.members))
}

// Log returns a log for one goroutine at a time. What it begins may be ended by any goroutine.
func (r *Recorder) Log(name string) *Log { return r.addLog(name, 1) }

// sharedShards is how many goroutines write to a shared log before they get into each other's way.
const sharedShards = 8

// SharedLog returns a log for any number of goroutines, such as those that run handlers. It takes a lock for a few
// instructions, and mostly one that nobody else has.
func (r *Recorder) SharedLog(name string) *Log { return r.addLog(name, sharedShards) }

func (r *Recorder) addLog(name string, shards int) *Log {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &Log{rec: r, id: int32(len(r.logs)), name: name, shards: make([]shard, shards)}
	r.logs = append(r.logs, l)
	return l
}

// History returns what was recorded. No operation may begin meanwhile, and all that began must have happened before; one may
// end meanwhile, which it then does or has not done, such as a handler that hangs.
func (r *Recorder) History() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &History{
		Seed:       r.seed,
		Partitions: append([]PartitionInfo(nil), r.partitions...),
		Consumers:  append([]ConsumerInfo(nil), r.consumers...),
		Members:    append([]string(nil), r.members...),
	}
	n := 0
	for _, l := range r.logs {
		h.Logs = append(h.Logs, l.name)
		n += l.len()
	}
	h.Ops = make([]Op, 0, n)
	for _, l := range r.logs {
		h.Ops = l.appendTo(h.Ops)
	}
	h.Sort()
	return h
}

// String names the recorder in logs of tests.
func (r *Recorder) String() string { return fmt.Sprintf("recorder of seed %d", r.seed) }
