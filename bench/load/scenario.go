package load

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/leatlog/leat/bench/load/stream"
)

// ErrScenario is wrapped by what Run returns if a scenario makes no sense. The text names the field.
var ErrScenario = errors.New("load: scenario")

// Scenario says what load to make. The zero value is not useful: start from one of [Scenarios], or set at least Producers,
// Partitions and Duration.
type Scenario struct {
	// Name is what results call the scenario.
	Name string
	// About says in a sentence what the scenario shows.
	About string

	// Producers is how many goroutines publish. At least 1, at most 65,536.
	Producers int
	// Partitions is how many partitions they publish to, in turn. At least 1.
	Partitions int
	// Readers is how many pull readers see every message, each with a goroutine for each partition.
	Readers int
	// Subscribers is how many push subscribers see every message.
	Subscribers int

	// Group is who receives instead of Readers and Subscribers, if its Kind is not empty: the members of a consumer group. It
	// needs a GroupTarget.
	Group Group

	// Size is the size of a message in bytes. 0 means 64; at least MinSize. With Sizes it is the largest one, and need not be set.
	Size int
	// Sizes says how large messages are, if not all have one size. The zero value means Size.
	Sizes stream.Sizes
	// Rate is how many messages a second all producers together are to send. 0 means as fast as they can.
	Rate float64
	// Arrival says how they are spread in time. The zero value means evenly. Anything else needs a Rate.
	Arrival stream.Arrival
	// Keys says which key each message has, and so to which partition it goes: to the one that the hash of the key says, of those
	// that its producer has. The zero value means none: then producers publish to their partitions in turn. A target gets to see
	// keys if its producers are KeyProducers.
	Keys stream.Keys
	// Stages is how many topics, or queues, a message goes through, one after the other; readers are at the last one. 0 means 1.
	// A target may know only 1.
	Stages int
	// Replays is how many more readers read all that is kept, from the beginning, again and again. The target's instances must be
	// Replayers.
	Replays int
	// Stop is for how long all readers and subscribers stand still, from the start of the measured time on. Then they catch up.
	Stop time.Duration
	// Publish is how to publish, where the target has several ways ("async", "sync", "batch", "appender", "reserve"). Empty means the
	// target's own choice.
	Publish string
	// Wait is how to wait, where the target has several ways ("park", "yield", "spin"). Empty means the target's own choice.
	Wait string

	// Sync says, unless it is empty, that the target keeps the messages in files, and when a message must be safe there: "always"
	// before it counts as published, "never", or a time that may pass until then, such as "10ms". It needs a DurableTarget, and is
	// not for groups.
	Sync string
	// Dir is the directory for these files. Empty means one for this run, in the place for temporary files.
	Dir string

	// Warmup is how long to run before measuring.
	Warmup time.Duration
	// Duration is how long to measure. Must be above 0.
	Duration time.Duration
	// Messages ends the run when so many have been sent, warm-up included. 0 means no limit.
	Messages int64
	// Seed decides the bytes of the messages and at which partition each producer starts. Same seed, same stream.
	Seed uint64

	// SampleEvery is how many messages share one measured message when Rate is 0. 0 means 61: a prime, so that measuring does
	// not always meet the same place in a target's batches. 1 measures every message.
	SampleEvery int
	// Patience is how long to wait without any progress before messages are given up as lost, or a producer as stuck. 0 means
	// 5 s.
	Patience time.Duration
	// NoPlacement leaves out the placement probes before and after the run, which take some milliseconds each.
	NoPlacement bool
	// NoFloor leaves out the run before the run that measures the generator by itself: a tenth of the time, but at most 300 ms.
	NoFloor bool

	// Window is how long the windows of the result are. 0 means a quarter of a second, less for runs of less than 5 s, and more for
	// long ones, so that there are about 1200 at the most. Below 0 means that there are none, unless Live or Intervals is set.
	Window time.Duration

	// Live, if not nil, is called once a second with how things stand. It must be quick. It may be called during warm-up.
	Live func(Window)
	// Intervals, if not nil, is called at the end of each window with what was measured in it, warm-up included. The times count
	// from the start of the run. It must be quick, and must not keep the histograms.
	Intervals func(from, to time.Duration, e2e, publish, delay *Histogram)

	clock *Clock // set by tests
}

// MinSize is the smallest message: a time, a number, a checksum.
const MinSize = 24

const (
	defaultSize        = 64
	defaultSampleEvery = 61
	defaultPatience    = 5 * time.Second
	maxProducers       = 1 << 16
	maxSize            = stream.SizeMost
	maxPartitions      = 1 << 16
	maxReaders         = 10_000 // of each kind; each has a goroutine, and counters for each partition
	maxStages          = 16
	maxMessages        = 1e15
	maxBuffers         = 4 << 30              // bytes, of all producers together
	maxLanes           = 1 << 18              // readers of all partitions together, each with a goroutine and a window of messages
	maxCounters        = 1 << 24              // of producers, in all lanes together; some tens of bytes each
	maxTime            = 365 * 24 * time.Hour // of everything that takes time: a sum of some is a time still
)

// maxTimeText is maxTime as flags take it.
const maxTimeText = "8760h"

// withDefaults returns s with every zero field set, or what is wrong with s.
func (s Scenario) withDefaults() (Scenario, error) {
	if s.Size == 0 {
		s.Size = defaultSize
	}
	if s.Stages == 0 {
		s.Stages = 1
	}
	var sizesErr error
	if s.Sizes.Most() == 0 {
		s.Sizes, sizesErr = stream.ParseSizes(strconv.Itoa(s.Size), min(MinSize, s.Size))
	}
	if sizesErr == nil {
		s.Size = s.Sizes.Most()
	}
	if s.SampleEvery == 0 {
		s.SampleEvery = defaultSampleEvery
	}
	if s.Patience == 0 {
		s.Patience = defaultPatience
	}
	var bad error
	check := func(ok bool, format string, args ...any) {
		if !ok && bad == nil {
			bad = fmt.Errorf("%w: %s", ErrScenario, fmt.Sprintf(format, args...))
		}
	}
	s.Group = s.Group.withDefaults(&s, check)
	s.combine(check)
	check(s.Producers >= 1 && s.Producers <= maxProducers, "producers is %d: must be 1 to %d", s.Producers, maxProducers)
	check(s.Partitions >= 1 && s.Partitions <= maxPartitions, "partitions is %d: must be 1 to %d", s.Partitions, maxPartitions)
	check(s.Readers >= 0 && s.Readers <= maxReaders, "readers is %d: must be 0 to %d", s.Readers, maxReaders)
	check(s.Subscribers >= 0 && s.Subscribers <= maxReaders, "subscribers is %d: must be 0 to %d", s.Subscribers, maxReaders)
	least := s.Size
	if sizesErr == nil {
		least = s.Sizes.Least()
	}
	s.fits(check)
	check(least >= MinSize && s.Size <= maxSize, "size is %d: must be %d to %d", least, MinSize, maxSize)
	check(s.Rate >= 0 && s.Rate <= 1e12, "rate is %v: must be 0 (as fast as possible) to 1e12", s.Rate)
	check(s.Sync == "" || s.Group.Kind == "", "sync is %q: a scenario with a group is in memory", s.Sync)
	check(s.Sync != "" || s.Dir == "", "dir is %q: only with sync are there files; must be empty, or sync be always, never or a time such as 10ms", s.Dir)
	check(s.Duration > 0 && s.Duration <= maxTime, "duration is %v: must be above 0, at most %s", s.Duration, maxTimeText)
	check(s.Rate == 0 || s.Rate*s.Duration.Seconds() >= 1 || s.Duration <= 0,
		"rate is %v: that is not one message in the %v that are measured; must be at least %.6g, or duration longer", s.Rate, s.Duration, 1/s.Duration.Seconds())
	check(s.Warmup >= 0 && s.Warmup <= maxTime, "warmup is %v: must be 0 to %s", s.Warmup, maxTimeText)
	check(s.Messages >= 0 && s.Messages <= maxMessages, "messages is %d: must be 0 (no limit) to 1e15", s.Messages)
	check(s.SampleEvery >= 1, "sample every is %d: must be at least 1", s.SampleEvery)
	check(s.Patience > 0 && s.Patience <= maxTime, "patience is %v: must be above 0, at most %s", s.Patience, maxTimeText)
	return s, bad
}

// fits checks that what grows with several numbers at once has room in memory: no machine has it for the most of all of them. It leaves
// alone what is out of its own bounds.
func (s *Scenario) fits(check func(ok bool, format string, args ...any)) {
	producers, partitions, consumers, members := int64(s.Producers), int64(s.Partitions), int64(s.Consumers()+s.Replays), int64(s.Group.Members)
	if min(producers, partitions, consumers+1) < 1 || max(producers, partitions, consumers, members) > 1<<17 || s.Size > maxSize {
		return
	}
	check(producers*int64(s.Size) <= maxBuffers,
		"producers is %d: with buffers of %d bytes it must be 1 to %d", producers, s.Size, maxBuffers/int64(max(s.Size, 1)))
	check(partitions*consumers <= maxLanes, "partitions is %d: with %s of each of them it must be 1 to %d", partitions,
		count(int(consumers), "consumer"), maxLanes/max(consumers, 1))
	check(producers*(1+consumers) <= maxCounters, "producers is %d: with %s it must be 1 to %d", producers, count(int(consumers), "consumer"),
		maxCounters/(1+consumers))
	check(producers*partitions*(1+consumers) <= maxCounters,
		"partitions is %d: with %s, which are counted one by one in each of them and by %s, it must be 1 to %d", partitions,
		count(s.Producers, "producer"), count(int(consumers), "consumer"), maxCounters/(producers*(1+consumers)))
	check(s.Group.Kind == "" || members*partitions <= maxCounters,
		"members is %d: with %s it must be 1 to %d", members, count(s.Partitions, "partition"), maxCounters/partitions)
}

// combine checks what does not go together.
func (s *Scenario) combine(check func(ok bool, format string, args ...any)) {
	check(s.Arrival.String() == "constant" || s.Rate > 0,
		"arrival is %s: needs a rate; without one, producers publish as fast as they can", s.Arrival)
	check(s.Stages >= 1 && s.Stages <= maxStages, "stages is %d: must be 1 to %d", s.Stages, maxStages)
	check(s.Stages == 1 || s.Group.Kind == "", "stages is %d: a scenario with a group has one", s.Stages)
	check(s.Replays >= 0 && s.Replays <= maxReaders, "replays is %d: must be 0 to %d", s.Replays, maxReaders)
	check(s.Replays == 0 || s.Group.Kind == "", "replays is %d: a scenario with a group has none", s.Replays)
	check(s.Stop >= 0 && s.Stop <= maxTime, "stop is %v: must be 0 to %s", s.Stop, maxTimeText)
	check(s.Stop == 0 || s.Group.Kind == "", "stop is %v: a scenario with a group has slow", s.Stop)
	check(s.Stop == 0 || s.Readers+s.Subscribers > 0, "stop is %v: there are no readers to stop; must be 0", s.Stop)
	check(s.Stop < s.Duration || s.Stop == 0, "stop is %v: must be less than the %v that are measured", s.Stop, s.Duration)
}

// Validate returns what is wrong with s, naming the field, or nil. A target may still refuse it: see Check.
func (s Scenario) Validate() error {
	_, err := s.withDefaults()
	return err
}

// ErrUnsupported is to be wrapped by what a target returns for a scenario that it cannot run. The text names the field, and what is
// allowed.
var ErrUnsupported = errors.New("target: unsupported scenario")

// Checker is a Target that can say beforehand whether it can run a scenario.
type Checker interface {
	Target
	// Check returns what Open, or OpenGroup, would refuse s for, or nil.
	Check(s Scenario) error
}

// Check returns what is wrong with s, or what t would refuse it for, as far as t can say that beforehand, or nil.
func Check(t Target, s Scenario) error {
	s, err := s.withDefaults()
	if err != nil {
		return err
	}
	if _, ok := t.(GroupTarget); s.Group.Kind != "" && !ok {
		return fmt.Errorf("%w: %s %w", ErrTarget, t.Name(), ErrNoGroups)
	}
	if err := keepsFiles(t, &s); err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	if c, ok := t.(Checker); ok {
		if err := c.Check(s); err != nil {
			return fmt.Errorf("%w: %w", ErrTarget, err)
		}
	}
	return nil
}

// Consumers returns how many times each message is to be delivered, or, with a group, processed.
func (s Scenario) Consumers() int {
	switch s.Group.Kind {
	case "":
		return s.Readers + s.Subscribers
	case Broadcast:
		return s.Group.Members
	}
	return 1
}

// ScenarioNamed returns the named scenario of any kind.
func ScenarioNamed(name string) (Scenario, bool) {
	all := slices.Concat(Scenarios(), DurableScenarios(), GroupScenarios())
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return Scenario{}, false
	}
	return all[i], true
}
