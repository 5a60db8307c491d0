package engine

import (
	"errors"
	"fmt"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/group"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/storage"
)

// What can go wrong. Each says when it comes and whether trying again helps. Test with errors.Is: an error may carry more.
//
// Every error of a publish is definite, which means that the record will never appear, unless errors.Is(err,
// ErrIndefinite).
var (
	// ErrClosed is returned after Close by every call that publishes, reads, subscribes, creates or looks up. It is final.
	ErrClosed = partition.ErrClosed

	// ErrDraining is returned after Drain by publishes, but not by those of handlers and callbacks, and by CreateTopic and
	// SetPartitions. It is final.
	ErrDraining = partition.ErrDraining

	// ErrTopicDeleted is returned by calls on a topic, and on what belongs to it, after DeleteTopic. It is final for that
	// topic, even if another is created under its name.
	ErrTopicDeleted = partition.ErrDeleted

	// ErrUnknownTopic is returned for a name that no topic has. It helps to create the topic.
	ErrUnknownTopic = errors.New("leat: unknown topic")

	// ErrTopicExists is returned by CreateTopic for a name that is taken.
	ErrTopicExists = errors.New("leat: topic exists")

	// ErrName is returned for the name of a topic, subscription, group or member that breaks the rules: 1 to 249 of a-z, A-Z, 0-9, dot, dash
	// and underscore, and neither "." nor "..".
	ErrName = errors.New("leat: bad name")

	// ErrConfig is returned for a configuration that makes no sense; the text says which field and why.
	ErrConfig = errors.New("leat: bad configuration")

	// ErrUnknownPartition is returned for a partition that the topic does not have, also when a Partitioner chose it.
	ErrUnknownPartition = errors.New("leat: unknown partition")

	// ErrShrink is returned by SetPartitions for fewer partitions than there are: what they hold could not go anywhere.
	ErrShrink = errors.New("leat: a topic cannot have fewer partitions than before")

	// ErrPartitioner is returned by a publish whose Partitioner panicked.
	ErrPartitioner = errors.New("leat: partitioner panicked")

	// ErrTooLarge is returned by a publish whose record or batch could never fit; the error is a *TooLargeError. A batch must
	// fit MaxBytes and MaxRecords as a whole, and where memory is bounded the largest power of two within MaxMemory.
	ErrTooLarge = partition.ErrTooLarge

	// ErrFull is returned by a publish that finds the log full under Reject, or memory used up under DropOldest, and by
	// TryPublish when it would have to wait. It helps to try again later.
	ErrFull = partition.ErrFull

	// ErrSelfBlock is returned by a publish from inside a handler that would wait for room that only this handler's own
	// return can make, if it was given the handler's context; by Flush from inside a callback; and by Drain from inside a
	// handler, callback or hook.
	ErrSelfBlock = partition.ErrSelfBlock

	// ErrWorkersBlocked is returned by a publish from inside a handler, if it was given the handler's context, that would
	// wait for room while every other worker waits like that as well: nobody would be left to run the handlers that make
	// room. It helps to try again later, which is what happens if the handler returns it: the record is delivered again, and
	// that does not count towards MaxDeliveries. A handler of a Dedicated subscription never gets it.
	ErrWorkersBlocked = partition.ErrWorkersBlocked

	// ErrExclusive is returned by a publish, and by a second Appender, while the partition has an Appender.
	ErrExclusive = partition.ErrExclusive

	// ErrReserved is returned by an Appender's Append, Publish, AppendBatch and Reserve while its Reservation is out: end that with Commit
	// or Discard.
	ErrReserved = partition.ErrReserved

	// ErrReservation is returned by Reserve for a size that makes no sense, and by the Commit of a Reservation that is over, or in which
	// there was no room for one of its records. It is a mistake of the caller's, and nothing of the Reservation will appear.
	ErrReservation = partition.ErrReservation

	// ErrExhausted is returned by a publish to a partition that has used up its offsets (2^63-1 of them). It is final.
	ErrExhausted = partition.ErrExhausted

	// ErrIndefinite marks the error of a publish that may yet turn out to be in the log: the files of a durable topic failed
	// while the record was being written, or its ctx ended meanwhile. If the record is needed it has to be published again, and
	// may then be there twice. In a memory topic there is none.
	ErrIndefinite = storage.ErrIndefinite

	// ErrReadOnly is returned by publishes to a partition of a durable topic after an operation on one of its files has failed;
	// the cause is wrapped as well. What was being published then is also ErrIndefinite. Readers and subscriptions go on.
	// Nothing is tried again behind the user's back, since nobody knows what a disk holds that has failed: Topic.Resume, or
	// Close and Open, look at what is there and go on, once the cause has gone. It is also returned by all that would change
	// something in an engine that was opened with Config.ReadOnly.
	ErrReadOnly = storage.ErrReadOnly

	// ErrNoSpace says, together with ErrReadOnly, that the cause is a full disk. Nothing that was acknowledged is lost. Resume
	// helps once there is space.
	ErrNoSpace = storage.ErrNoSpace

	// ErrCorrupt says that files in Config.Dir are damaged that had been safe, or missing. Topic and Group return it for one that
	// could not be opened, with the file, the place in it and the offsets, as a *disk.CorruptError where it is about records. What
	// reads records matches it, with a *LoadError, if they are found to be damaged only then: Open does not read them all.
	// Nothing has been changed. It helps to bring the files back from a copy; see Config.Salvage otherwise.
	ErrCorrupt = storage.ErrCorrupt

	// ErrLocked is returned by Open for a Dir that another engine has, in this process or another.
	ErrLocked = storage.ErrLocked

	// ErrForgotten is returned by Resume if the files have lost records that were visible and not durable yet, and that memory
	// does not have any more either. Close and Open go on without them.
	ErrForgotten = storage.ErrForgotten

	// ErrTruncated says that a group's position was beyond what its topic held at Open, and was cut back; the error is a
	// *TruncatedError.
	ErrTruncated = errors.New("leat: position was beyond the end of the log")

	// ErrReaderClosed is returned by calls of a Reader after its Close.
	ErrReaderClosed = partition.ErrReadClosed

	// ErrReaderBusy is returned when two goroutines use one Reader at once.
	ErrReaderBusy = partition.ErrReaderBusy

	// ErrEvicted is what ends a subscription or reader that lagged by more than its MaxLag.
	ErrEvicted = partition.ErrEvicted

	// ErrSubscriptionExists is returned by Subscribe for an ID that a subscription of this topic has.
	ErrSubscriptionExists = errors.New("leat: subscription exists")

	// ErrUnknownSubscription is returned for an ID that no subscription of this topic has, or has had.
	ErrUnknownSubscription = errors.New("leat: unknown subscription")

	// ErrSubscriptionClosed is what ends a subscription that was closed by its Close.
	ErrSubscriptionClosed = errors.New("leat: subscription closed")

	// ErrNoToken is returned by Ack and its like for a message that is not settled by hand: the mode is not Manual.
	ErrNoToken = delivery.ErrNoToken

	// ErrNotOwner is returned by AckThrough in a shared group, where the records below are other members' as well.
	ErrNotOwner = delivery.ErrNotOwner

	// ErrRejected is wrapped by the error of a handler that never wants to see the record again, where records are settled one
	// by one; and by what hooks and dead letters are told of records that were rejected.
	ErrRejected = delivery.ErrRejected

	// ErrGoexit is the failure of a handler that called runtime.Goexit.
	ErrGoexit = delivery.ErrGoexit
)

// What can go wrong with consumer groups.
var (
	// ErrUnknownGroup is returned for a name that no group has.
	ErrUnknownGroup = errors.New("leat: unknown group")

	// ErrGroupExists is returned by CreateGroup for a name that is taken.
	ErrGroupExists = errors.New("leat: group exists")

	// ErrGroupActive is returned by DeleteGroup, and by ResetOffsets without Force, while the group has members.
	ErrGroupActive = errors.New("leat: group has members")

	// ErrGroupDeleted is returned by calls on a group after DeleteGroup or its expiry. It is final.
	ErrGroupDeleted = errors.New("leat: group deleted")

	// ErrMemberExists is returned by Join for a name that a member of the group has.
	ErrMemberExists = group.ErrMemberExists

	// ErrUnknownMember is returned for a name that no member has.
	ErrUnknownMember = errors.New("leat: unknown member")

	// ErrMemberClosed is what ends a member that was closed by its Close.
	ErrMemberClosed = errors.New("leat: member closed")

	// ErrFenced is wrapped by the error of a commit or an acknowledgement that comes from who has no right to it any more:
	// the partition or the record is somebody else's by now, or settled, or the position was set. Trying again does not help.
	ErrFenced = group.ErrFenced

	// ErrReplaced is what ends a static member when another one joins under its name, and ErrRemoved what ends one that was
	// put out by Group.Evict.
	ErrReplaced = errors.New("leat: replaced by a member of the same name")
	ErrRemoved  = errors.New("leat: member removed")

	// ErrNoProgress is what ends a member with NoRejoin that was put out for lack of progress.
	ErrNoProgress = errors.New("leat: member made no progress")

	// ErrNotAssigned is returned for a partition that the member does not own.
	ErrNotAssigned = errors.New("leat: partition is not the member's")

	// ErrConsumerBusy is returned when two goroutines poll one Consumer at once.
	ErrConsumerBusy = errors.New("leat: consumer is being polled")
)

type (
	// TooLargeError says how large a record or batch was, and what the limit is.
	TooLargeError = partition.TooLargeError

	// LoadError says that records of a durable topic, which Open had left in the files, could not be read when somebody wanted
	// them. It says which, and wraps why: ErrCorrupt, with a *disk.CorruptError that says file and place, or an error of the file
	// system. To try again helps if what caused it has gone: the records are still there, and nobody's position has moved.
	LoadError = storage.LoadError

	// OffsetError reports an offset outside of what a partition holds.
	OffsetError = partition.OffsetError

	// PanicError is the failure of a handler that panicked.
	PanicError = delivery.PanicError
)

// GapError tells a reader, once, that the records from From up to but not including To were dropped before it got to them.
// The reader goes on at To.
type GapError struct {
	Partition int
	From, To  Offset
}

func (e *GapError) Error() string {
	return fmt.Sprintf("leat: partition %d: %d records from offset %d on were dropped before they were read", e.Partition, e.To-e.From, e.From)
}

// Lost returns how many records are missing.
func (e *GapError) Lost() int64 { return e.To - e.From }

// TruncatedError says that a position was beyond what a durable topic held at Open, and was cut back to the end. A position that
// was written is never beyond what was durable, so the disk has lost what it said was safe, or older files were brought back. The
// records from Next to Committed that the consumer had processed are gone, and others will get their offsets. It matches
// ErrTruncated.
//
// Hooks.Truncated is told, and the first Join or Consumer of a group with FailOnGap returns it, once.
type TruncatedError struct {
	Topic           string
	Partition       int
	Committed, Next Offset
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("leat: topic %s, partition %d: position %d was beyond the end of the log, which is %d", e.Topic, e.Partition,
		e.Committed, e.Next)
}

// Is makes errors.Is(err, ErrTruncated) true.
func (e *TruncatedError) Is(target error) bool { return target == ErrTruncated }

// BatchError is returned by Topic.PublishBatch when some of the records failed.
type BatchError struct {
	// Errs has an entry for each record of the batch: nil, or why it will never appear.
	Errs []error
}

func (e *BatchError) Error() string {
	failed := 0
	var first error
	for _, err := range e.Errs {
		if err != nil {
			failed++
			if first == nil {
				first = err
			}
		}
	}
	return fmt.Sprintf("leat: %d of %d records of the batch failed, the first with: %v", failed, len(e.Errs), first)
}

// Unwrap returns the errors of the records that failed.
func (e *BatchError) Unwrap() []error {
	var errs []error
	for _, err := range e.Errs {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// LostError says why a member has lost a partition. It wraps ErrFenced.
type LostError struct{ Cause string }

func (e *LostError) Error() string { return "leat: partition lost: " + e.Cause }

// Unwrap returns ErrFenced.
func (e *LostError) Unwrap() error { return ErrFenced }

// HungError is returned by Close when handlers, callbacks or hooks have not returned in time. The engine is closed but for
// them; their goroutines end when they return.
type HungError struct {
	// Handlers names what still runs: topic/subscription/partition and for how long, topic/callback/partition, or
	// topic/files/partition for a disk that does not answer.
	Handlers []string

	// Cause is why Close does not wait any longer: context.DeadlineExceeded after CloseTimeout.
	Cause error
}

func (e *HungError) Error() string {
	return fmt.Sprintf("leat: closed, but handlers have not returned: %v: %v", e.Handlers, e.Cause)
}

// Unwrap returns the cause.
func (e *HungError) Unwrap() error { return e.Cause }

func configError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
}
