package check

import "fmt"

// Anomaly is a kind of contradiction between what was promised and what was seen.
type Anomaly uint8

// The anomalies. None is ever allowed where nothing else is said.
const (
	_ Anomaly = iota

	InconsistentOffset   // two values at one offset
	Duplicate            // one value at two offsets, or in two partitions
	Invented             // a value was read that nobody sent
	AbortedRead          // a value was read whose send had failed
	FutureRead           // a value was read before its send was called
	LostWrite            // a value that was acknowledged and retained was not read by who read on, or not at the end
	OffsetGap            // an offset without a value
	SendOrder            // a send returned before another was called and has the higher offset
	NonmonotonicSend     // the offsets of one producer's sends to a partition fall
	TornBatch            // the offsets of a batch are not consecutive in its order, or only a part of it appeared
	StaleRead            // a read was empty at a position below a record acknowledged before the read was called
	IntPoll              // the offsets of one answer do not rise by one
	PollSkip             // what came next was not what follows, without a seek, a reported gap or a new owner
	Retention            // the low mark fell, passed a protected consumer, or was not what a gap said
	TwoOwners            // two owners of a partition, or two holders of a record of a shared group, at one instant
	GenerationRegression // a later owner's generation is not above the earlier one's
	ResumeOffset         // an owner began elsewhere than where the group stood
	ZombieCommit         // what a former owner or holder said was accepted
	CommitRegression     // the committed offset fell without a seek
	CommitAhead          // the committed offset is above all that was processed
	UnprocessedBelow     // a record below the committed offset was not processed
	HandlerOverlap       // two handlers at once where there may be one, and no fence between
	OverDelivery         // more deliveries of a record than there are reasons for
	LateHandler          // a handler began after its owner had given the partition back, had left, or after Close
	TornValue            // the bytes of a record were not whole, or not those that were sent
	MutatedView          // the bytes of a record changed while a handler looked at them
	Crash                // after a crash: durable records lost, other records at their offsets, failed ones readable, commits beyond the log
	PublishAfterClose    // a send called after Close had returned was accepted, or appeared
	StatsDrift           // a counter of the engine's is not what the history says
	numAnomalies
)

var anomalyNames = [numAnomalies]string{
	"none", "inconsistent-offset", "duplicate", "invented", "aborted-read", "future-read", "lost-write", "offset-gap",
	"send-order", "nonmonotonic-send", "torn-batch", "stale-read", "int-poll", "poll-skip", "retention", "two-owners",
	"generation-regression", "resume-offset", "zombie-commit", "commit-regression", "commit-ahead", "unprocessed-below-commit",
	"handler-overlap", "over-delivery", "late-handler", "torn-value", "mutated-view", "crash", "publish-after-close",
	"stats-drift",
}

// String returns the number and the name, such as "A-6 lost-write".
func (a Anomaly) String() string {
	if int(a) < len(anomalyNames) {
		return fmt.Sprintf("A-%d %s", uint8(a), anomalyNames[a])
	}
	return fmt.Sprintf("A-%d", uint8(a))
}

// Anomalies returns all of them, in the order of their numbers.
func Anomalies() []Anomaly {
	all := make([]Anomaly, 0, numAnomalies-1)
	for a := InconsistentOffset; a < numAnomalies; a++ {
		all = append(all, a)
	}
	return all
}

// Counter is one of the engine's counters, as A-29 compares them.
type Counter uint8

// The counters. Those of a partition are of AnyConsumer, those of a consumer may be of one partition or of all.
const (
	_           Counter = iota
	Appended            // records of the partition
	Reclaimed           // records of the partition dropped by retention
	Delivered           // records given to handlers, each time it happened
	Redelivered         // of these, those with an attempt above the first
	Failed              // records whose handler failed, each time it happened
	Dropped             // records given up
	Acked               // acknowledgements that were accepted, cumulative ones not counted
	Fenced              // ownerships that were lost
	numCounters
)

// AnyConsumer stands for no consumer.
const AnyConsumer Consumer = 0

var counterNames = [numCounters]string{
	"none", "appended", "reclaimed", "delivered", "redelivered", "failed", "dropped", "acked", "fenced",
}

// String returns the counter's name.
func (c Counter) String() string { return counterNames[c%numCounters] }
