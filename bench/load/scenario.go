package load

import (
	"errors"
	"fmt"
	"slices"
	"time"
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

	// Size is the size of a message in bytes. 0 means 64; at least MinSize.
	Size int
	// Rate is how many messages a second all producers together are to send, evenly spaced. 0 means as fast as they can.
	Rate float64
	// Publish is how to publish, where the target has several ways ("async", "sync", "batch", "appender"). Empty means the
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

	// Live, if not nil, is called once a second with how things stand. It must be quick. It may be called during warm-up.
	Live func(Window)

	clock *Clock // set by tests
}

// Window is one second of a run, for the impatient.
type Window struct {
	Elapsed  time.Duration // since the run began
	Warmup   bool          // the warm-up was not over at the start of the window
	Sent     uint64        // messages published so far
	Rate     float64       // messages published a second, in this window
	Lag      uint64        // messages that the slowest reader or subscriber has still to get
	Delay    time.Duration // the largest publish delay measured in this window
	Samples  uint64        // how many end-to-end latencies were measured in this window
	P50, P99 time.Duration // of them
	Max      time.Duration // the largest of them
}

// MinSize is the smallest message: a time, a number, a checksum.
const MinSize = 24

const (
	defaultSize        = 64
	defaultSampleEvery = 61
	defaultPatience    = 5 * time.Second
	maxProducers       = 1 << 16
	maxSize            = 1 << 30
)

// withDefaults returns s with every zero field set, or what is wrong with s.
func (s Scenario) withDefaults() (Scenario, error) {
	if s.Size == 0 {
		s.Size = defaultSize
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
	check(s.Producers >= 1 && s.Producers <= maxProducers, "producers is %d: must be 1 to %d", s.Producers, maxProducers)
	check(s.Partitions >= 1, "partitions is %d: must be at least 1", s.Partitions)
	check(s.Readers >= 0, "readers is %d: must not be negative", s.Readers)
	check(s.Subscribers >= 0, "subscribers is %d: must not be negative", s.Subscribers)
	check(s.Size >= MinSize && s.Size <= maxSize, "size is %d: must be %d to %d", s.Size, MinSize, maxSize)
	check(s.Rate >= 0 && s.Rate <= 1e12, "rate is %v: must be 0 (as fast as possible) to 1e12", s.Rate)
	check(s.Sync == "" || s.Group.Kind == "", "sync is %q: a scenario with a group is in memory", s.Sync)
	check(s.Sync != "" || s.Dir == "", "dir is %q: it needs sync", s.Dir)
	check(s.Duration > 0, "duration is %v: must be above 0", s.Duration)
	check(s.Rate == 0 || s.Rate*s.Duration.Seconds() >= 1 || s.Duration <= 0,
		"rate is %v: that is not one message in the %v that are measured", s.Rate, s.Duration)
	check(s.Warmup >= 0, "warmup is %v: must not be negative", s.Warmup)
	check(s.Messages >= 0, "messages is %d: must not be negative", s.Messages)
	check(s.SampleEvery >= 1, "sample every is %d: must be at least 1", s.SampleEvery)
	check(s.Patience > 0, "patience is %v: must be above 0", s.Patience)
	return s, bad
}

// Validate returns what is wrong with s, naming the field, or nil. A target may still refuse it: see Check.
func (s Scenario) Validate() error {
	_, err := s.withDefaults()
	return err
}

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

// Scenarios returns the named scenarios without a group, the default first. See GroupScenarios for the others.
func Scenarios() []Scenario {
	all := []Scenario{
		{
			Name: "mixed", Producers: 3, Partitions: 2, Readers: 1, Subscribers: 1,
			About: "the main job: producers share partitions, a pull reader and a push subscriber each see everything",
		},
		{
			Name: "unicast", Producers: 1, Partitions: 1, Readers: 1,
			About: "one producer, one partition, one reader: the plain hand-over",
		},
		{
			Name: "fan-in", Producers: 3, Partitions: 1, Readers: 1,
			About: "producers compete for one partition",
		},
		{
			Name: "fan-out", Producers: 1, Partitions: 1, Readers: 3,
			About: "one stream, seen in full by each of three readers",
		},
		{
			Name: "partitions", Producers: 4, Partitions: 4, Readers: 1,
			About: "four lanes side by side: what partitioning gains on this machine",
		},
		{
			Name: "push", Producers: 3, Partitions: 2, Subscribers: 2,
			About: "no reader pulls: the target calls two subscribers",
		},
	}
	return usual(all)
}

// usual fills in what all named scenarios have in common.
func usual(all []Scenario) []Scenario {
	for i := range all {
		all[i].Size = defaultSize
		all[i].Warmup = time.Second
		all[i].Duration = 9 * time.Second
		all[i].Seed = 1
	}
	return all
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
