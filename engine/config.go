package engine

import (
	"context"
	"log/slog"
	"math/bits"
	"runtime"
	"time"

	"github.com/leatlog/leat/cursor"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/vfs"
)

// Config configures an Engine. The zero value works.
type Config struct {
	// Workers is how many goroutines run handlers. 0 means GOMAXPROCS, but at least 4, since a handler may block. A handler
	// that does not return keeps its worker. Callbacks of PublishAsync have two goroutines of their own.
	Workers int

	// MaxMemory bounds the bytes of all segments together, memory kept for reuse included; it is at least 4 KiB, the
	// smallest segment, and each partition that holds records needs that much. Records of durable topics that have not been read
	// from the files yet count like others. 0 means no bound beyond those of the topics.
	// What happens at the bound is each topic's OnFull: nothing takes memory from the topics that have it. A segment that is dropped while a reader still stands in it is left
	// to the collector and counts no longer, and the slots of the hand-over (TopicConfig.HandoverSlots) do not count.
	MaxMemory int64

	// CloseTimeout is how long Close waits for handlers and callbacks. 0 means 10 s, a negative one for ever.
	CloseTimeout time.Duration

	// Dir is the directory of the durable topics. It is made if it is not there, and belongs to one engine at a time. Open
	// brings back the durable topics and the groups that are in it. Empty means that all topics are in memory.
	Dir string

	// ReadOnly opens Dir for looking: nothing in it is changed, nor locked, publishes fail with ErrReadOnly, and so does
	// whatever else would change something. It shows what there was at Open; records in files that its owner has removed since then
	// may not be readable any more: a *LoadError that matches fs.ErrNotExist.
	ReadOnly bool

	// Salvage says what to do about a partition of which records are damaged that had been durable. Normally its topic is refused
	// with ErrCorrupt, and nothing is changed. With Salvage what is sound is copied into a new directory beside the damaged one,
	// which stays as it is, the topic is opened from there, and the Logger is told of each range that is lost. To find it Open reads all
	// that there is. In memory the partition begins behind the last such range.
	//
	// So it is with positions that are damaged, without which a topic or group is refused too: a copy of the file is kept, and the Logger
	// is told. The group begins with the oldest record, so it gets again what it has had; ResetOffsets moves it. The topic's named
	// subscriptions are as if they had never been: they begin where their Start says.
	Salvage bool

	// Partitioners are those of restored topics that have neither ByKey, RoundRobin nor Explicit, by the topic's name.
	Partitioners map[string]Partitioner

	// PositionsEvery is how often the positions of groups and named subscriptions of durable topics are written if they have
	// moved; they are also at Close and by CommitSync. After a crash what was processed since is delivered again, also under
	// AtMostOnce. 0 means 1 s.
	PositionsEvery time.Duration

	fs   vfs.FS // for tests; nil means the operating system's
	warm int64  // for tests: storage.Loading.Warm

	// Hooks are told of what happens.
	Hooks Hooks

	// Logger gets a line for what an operator would want to know. Nil means none.
	Logger *slog.Logger

	_ struct{} // keyed literals only: fields may be added
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Workers < 0 || c.Workers > maxWorkers:
		return c, configError("Workers is %d, not 1 to %d", c.Workers, maxWorkers)
	case c.MaxMemory < 0:
		return c, configError("MaxMemory is %d", c.MaxMemory)
	case c.Dir == "" && (c.ReadOnly || c.Salvage):
		return c, configError("ReadOnly and Salvage need Dir")
	case c.PositionsEvery < 0:
		return c, configError("PositionsEvery is %v", c.PositionsEvery)
	}
	if c.Workers == 0 {
		c.Workers = max(4, runtime.GOMAXPROCS(0))
	}
	if c.CloseTimeout == 0 {
		c.CloseTimeout = 10 * time.Second
	}
	if c.PositionsEvery == 0 {
		c.PositionsEvery = time.Second
	}
	if c.fs == nil {
		c.fs = vfs.OS{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// OnFull says what a topic does with a publish that finds a partition at a limit of its Retention.
type OnFull = partition.OnFull

const (
	// Block makes a publish wait until the slowest gating subscription or reader has read on far enough. It loses nothing
	// of what they have not read; nothing is kept for others. Room comes by whole segments, and a subscription says how far
	// it is after a millisecond or 16 calls of its handler, whichever is longer. The default.
	Block = partition.Block

	// Reject makes a publish fail with ErrFull where Block would make it wait.
	Reject = partition.Reject

	// DropOldest drops the oldest segment, read or not. Publishers never wait; a reader that lags behind gets a gap notice.
	// A publish fails with ErrFull only if other topics have used up the engine's MaxMemory.
	DropOldest = partition.DropOldest
)

// Wait says how a reader that has caught up waits for more.
type Wait = cursor.Wait

const (
	// WaitPark looks again a few times and then sleeps. Idle readers cost nothing. The default.
	WaitPark = cursor.WaitPark

	// WaitYield never sleeps, but lets other goroutines run between two looks.
	WaitYield = cursor.WaitYield

	// WaitSpin never sleeps and keeps a processor to itself as far as it can.
	WaitSpin = cursor.WaitSpin
)

// Unlimited is for limits whose zero value means a default.
const Unlimited = -1

// Retention bounds what each partition of a topic keeps. Whichever limit is reached first counts. It works in whole
// segments, the one being written included, and acts on idle topics as well.
type Retention struct {
	// MaxBytes bounds the bytes of keys, values and headers plus 16 for each record (and 8 for a timestamp of its own, 4
	// for headers). 0 means 64 MiB, Unlimited no bound.
	MaxBytes int64

	// MaxRecords bounds the number of records. 0 means no bound.
	MaxRecords int64

	// MaxAge drops records that were appended longer ago; up to a quarter later, since it waits for the last record of a
	// segment. It goes by the time of the append on a clock that is never set, whatever timestamp a record carries. 0
	// means no bound. Under Block and Reject a record that a gating subscription has not read stays until it has.
	MaxAge time.Duration

	_ struct{}
}

// TopicConfig configures a topic. The zero value works.
type TopicConfig struct {
	// Partitions is how many partitions the topic has. 0 means 1. SetPartitions adds some to a topic that is in use.
	Partitions int

	// Retention bounds what each partition keeps.
	Retention Retention

	// OnFull says what happens at such a bound.
	OnFull OnFull

	// MaxRecordBytes bounds key, value and headers of one record together. 0 means 1 MiB, or what the other limits allow if
	// that is less. The most is 1 GiB - 64.
	MaxRecordBytes int

	// SegmentBytes is the size of a segment, in which retention works. 0 means an eighth of MaxBytes, between 4 KiB and
	// 1 MiB. A partition starts with smaller ones. A larger record gets a segment of its own.
	SegmentBytes int

	// SegmentRecords is the most records of a segment. 0 means an eighth of MaxRecords, or no bound without MaxRecords.
	SegmentRecords int

	// HandoverSlots is how many records may be on their way to the appender of a partition; each takes 128 bytes, and one
	// for each 80 bytes of a record. It is rounded up to a power of two. 0 means 512.
	HandoverSlots int

	// Partitioner chooses the partition of a record. Nil means ByKey.
	Partitioner Partitioner

	// Durable keeps the records in files, in the engine's Dir, so that they survive the end of the process. Nil means that they
	// are in memory only.
	Durable *Durable

	first uint64 // offset of the first record; for tests

	_ struct{}
}

const (
	defaultMaxBytes    = 64 << 20
	defaultRecordBytes = 1 << 20
	defaultSlots       = 512
	maxRecordBytes     = 1<<30 - 64
	maxPartitions      = 1 << 16
	maxWorkers         = 1 << 16
	maxInFlight        = 1_000_000
	maxSlots           = 1 << 20
	leastMemory        = 4 << 10                 // the smallest segment
	perRecord          = segment.EntryBytes + 12 // index entry, timestamp, headers' length
)

// withDefaults returns c with every zero field set, or what is wrong with it. memory is the engine's MaxMemory.
func (c TopicConfig) withDefaults(memory int64) (TopicConfig, error) {
	r := &c.Retention
	switch {
	case c.Partitions < 0 || c.Partitions > maxPartitions:
		return c, configError("Partitions is %d, not 1 to %d", c.Partitions, maxPartitions)
	case r.MaxBytes < Unlimited || r.MaxRecords < Unlimited || r.MaxAge < Unlimited:
		return c, configError("Retention has a negative limit")
	case c.OnFull > DropOldest:
		return c, configError("OnFull is %d", c.OnFull)
	case c.MaxRecordBytes < 0 || c.MaxRecordBytes > maxRecordBytes:
		return c, configError("MaxRecordBytes is %d, not 1 to %d", c.MaxRecordBytes, maxRecordBytes)
	case c.SegmentBytes < 0 || c.SegmentBytes > 1<<30:
		return c, configError("SegmentBytes is %d, not 1 to 1 GiB", c.SegmentBytes)
	case c.SegmentRecords < 0:
		return c, configError("SegmentRecords is %d", c.SegmentRecords)
	case c.HandoverSlots < 0 || c.HandoverSlots > maxSlots:
		return c, configError("HandoverSlots is %d, not 2 to %d", c.HandoverSlots, maxSlots)
	}
	if c.Partitions == 0 {
		c.Partitions = 1
	}
	if c.Partitioner == nil {
		c.Partitioner = ByKey()
	}
	if r.MaxBytes == 0 {
		r.MaxBytes = defaultMaxBytes
	}
	if c.HandoverSlots == 0 {
		c.HandoverSlots = defaultSlots
	}
	c.HandoverSlots = 1 << bits.Len(uint(max(c.HandoverSlots, 2)-1))

	room := int64(maxRecordBytes)
	if r.MaxBytes > 0 {
		room = min(room, r.MaxBytes-perRecord)
	}
	if memory > 0 {
		room = min(room, 1<<(bits.Len64(uint64(max(memory, leastMemory)))-1)-perRecord) // blocks come in powers of two
	}
	if room < 0 {
		return c, configError("MaxBytes or MaxMemory leaves no room for an empty record, which takes %d", perRecord)
	}
	if int64(c.MaxRecordBytes) > room {
		return c, configError("a record of MaxRecordBytes (%d) does not fit the other limits (%d)", c.MaxRecordBytes, room)
	}
	if c.MaxRecordBytes == 0 {
		c.MaxRecordBytes = int(min(defaultRecordBytes, room))
	}
	if c.SegmentBytes == 0 {
		c.SegmentBytes = 1 << 20
		if r.MaxBytes > 0 {
			c.SegmentBytes = int(min(max(r.MaxBytes/8, 4<<10), 1<<20))
		}
	}
	if r.MaxRecords > 0 {
		if c.SegmentRecords == 0 {
			c.SegmentRecords = int(min(max(r.MaxRecords/8, 1), 1<<30))
		}
		if int64(c.SegmentRecords) > r.MaxRecords {
			return c, configError("SegmentRecords (%d) is above MaxRecords (%d)", c.SegmentRecords, r.MaxRecords)
		}
	}
	var err error
	c.Durable, err = c.Durable.withDefaults(&c)
	return c, err
}

// limits returns the retention as the partitions take it.
func (c TopicConfig) limits() retention.Limits {
	return retention.Limits{
		MaxBytes:   max(c.Retention.MaxBytes, 0),
		MaxRecords: max(c.Retention.MaxRecords, 0),
		MaxAge:     max(c.Retention.MaxAge, 0),
	}
}

// ReaderConfig configures a Reader. The zero value works.
type ReaderConfig struct {
	// Name is shown in Stats for a reader that is gating or has a MaxLag. It need not be unique.
	Name string

	// Start is where to begin. The zero value means Latest.
	Start Start

	// Gating makes publishers wait for this reader under Block, and fail under Reject.
	Gating bool

	// MaxLag ends the reader with ErrEvicted when it lags behind by more records than this. 0 means never.
	MaxLag int64

	// Gap says what to do about records that were dropped before they were read.
	Gap GapPolicy

	// Wait says how to wait for more.
	Wait Wait

	_ struct{}
}

func (c ReaderConfig) check() error {
	switch {
	case c.MaxLag < 0:
		return configError("MaxLag is %d", c.MaxLag)
	case c.Gap > FailOnGap:
		return configError("Gap is %d", c.Gap)
	case !c.Wait.Valid():
		return configError("Wait is %d", c.Wait)
	}
	return nil
}

// Hooks are functions that are told of what happens. Each may be nil. They are called under no lock, on the goroutine where it
// happened (at Close, on one of the engine's); they must be quick and may call the engine. A hook that panics is recovered and logged.
type Hooks struct {
	// Gap is told that records were dropped before a subscription got to them.
	Gap func(topic, subscription string, gap GapError)

	// HandlerFailed is told of each failed delivery: an error, a *PanicError, or ErrGoexit. Of a batch it gets the first
	// record. It runs before the record is delivered again, and with the handler's ctx.
	HandlerFailed func(ctx context.Context, subscription string, m *Message, err error)

	// Dropped is told that a record was given up after MaxDeliveries, for each record of a batch. It runs before the next
	// record is delivered, and with the handler's ctx: it may publish the record elsewhere, also while draining.
	Dropped func(ctx context.Context, subscription string, m *Message, err error)

	// SubscriptionEnded is told why a subscription ended, once, when no delivery of it begins any more.
	SubscriptionEnded func(topic, subscription string, cause error)

	// MemberEnded is told why a member of a group ended, once, when none of its handlers and callbacks runs any more.
	// MemberPutOut is told that one was put out for lack of progress, and will join again.
	MemberEnded  func(group, member string, cause error)
	MemberPutOut func(group, member string)

	// FilesFailed is told that a partition has become read-only, because an operation on one of its files failed: see
	// ErrReadOnly.
	FilesFailed func(topic string, partition int, err error)

	// FilesSlow is told that a partition has been waiting for its files for a second or more, once each time. How soon it is noticed
	// is up to PositionsEvery.
	FilesSlow func(topic string, partition int, d time.Duration)

	// Truncated is told, once, that a group or a named subscription was cut back at Open: see TruncatedError.
	Truncated func(topic, consumer string, err *TruncatedError)

	// CallbackPanicked is told of a panic in a callback of PublishAsync.
	CallbackPanicked func(topic string, value any, stack []byte)

	_ struct{}
}
