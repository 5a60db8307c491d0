package engine

import "time"

// Mode says when a subscription counts a record as processed.
type Mode uint8

const (
	// AtLeastOnce counts a record when its handler has returned nil; a record whose handler failed is delivered again. The
	// default.
	AtLeastOnce Mode = iota

	// AtMostOnce counts a record before its handler is called; whatever comes of it, it is not delivered again.
	AtMostOnce

	// Manual counts a record when it is acknowledged: by Message.Ack, or by Token.Ack after the handler has returned. A
	// record that is not settled in time (Settling.AckWait), or whose handler failed, is delivered again. Records that come
	// for the first time come in order; those that come again come when it is their time, before new ones.
	Manual
)

// GapPolicy says what a reader does about records that were dropped before it got to them.
type GapPolicy uint8

const (
	// SkipGap goes on at the oldest record there is, after a notice that says what is missing. The default.
	SkipGap GapPolicy = iota

	// FailOnGap stops with an *OffsetError.
	FailOnGap
)

// SubscribeConfig configures a subscription. The zero value works.
type SubscribeConfig struct {
	// ID names the subscription; it must be the topic's only one of that name. The positions of a named subscription are
	// remembered when it ends, for one that comes later under the name. Empty means a name of the engine's choice, and
	// nothing to be remembered.
	ID string

	// Start is where to begin. The zero value means where the last subscription of this ID ended, and Latest if there was
	// none.
	Start Start

	// Mode says when a record counts as processed.
	Mode Mode

	// Backoff is how long to wait after the first, second, ... failure of a record until it is delivered again; the last
	// value repeats. Later records of the partition wait behind it. Empty means 10 ms, 100 ms, 1 s, 10 s. The least is 1 ms.
	Backoff []time.Duration

	// MaxDeliveries is how often a record is delivered, the first time included, before it is given up and counted as
	// dropped. 0 means 10, Unlimited no bound.
	MaxDeliveries int

	// DeadLetter is the topic that gets the records that are given up, with headers that say where they come from and why
	// (see HeaderTopic). A record is given up only when it is there: as long as it cannot be published it stays due. Empty
	// means that records that are given up are counted and told to Hooks.Dropped. It must exist, and be another topic.
	DeadLetter string

	// DeadLetterRejected says that records which were rejected in Manual mode go there as well.
	DeadLetterRejected bool

	// Settling says how records are held in Manual mode.
	Settling Settling

	// ByKey lets records of one partition be worked on at the same time, if they have different keys. It is for AtLeastOnce:
	// what is processed above the position comes again to who goes on from there. It is not for a BatchHandler.
	ByKey Parallelism

	// NonGating says that publishers do not wait for this subscription: what it has not read may be dropped.
	NonGating bool

	// MaxLag ends the subscription with ErrEvicted when it lags behind by more records than this in any partition. 0 means
	// never.
	MaxLag int64

	// Gap says what to do about records that were dropped before they were delivered.
	Gap GapPolicy

	// OnGap is told of each gap before the next record is delivered, on the same goroutine. May be nil.
	OnGap func(GapError)

	// MaxConcurrency is how many partitions are worked on at a time. 0 means one less than there are workers, so that a
	// subscription that hangs does not take them all.
	MaxConcurrency int

	// Dedicated gives each partition of the subscription a goroutine of its own, apart from the engine's workers. It is for
	// handlers that block for long.
	Dedicated bool

	// BatchSize is how many records a BatchHandler gets at the most. 0 means 64.
	BatchSize int

	_ struct{}
}

func (c SubscribeConfig) withDefaults(workers int) (SubscribeConfig, error) {
	switch {
	case c.Mode > Manual:
		return c, configError("Mode is %d", c.Mode)
	case c.Gap > FailOnGap:
		return c, configError("Gap is %d", c.Gap)
	case c.MaxLag < 0:
		return c, configError("MaxLag is %d", c.MaxLag)
	case c.MaxConcurrency < 0:
		return c, configError("MaxConcurrency is %d", c.MaxConcurrency)
	case c.BatchSize < 0 || c.BatchSize > 1<<16:
		return c, configError("BatchSize is %d, not 1 to %d", c.BatchSize, 1<<16)
	}
	if c.ByKey.Handlers != 0 && c.Mode != AtLeastOnce {
		return c, configError("ByKey needs AtLeastOnce")
	}
	var err error
	if c.Backoff, c.MaxDeliveries, err = retries(c.Backoff, c.MaxDeliveries); err != nil {
		return c, err
	}
	if c.ByKey, err = c.ByKey.withDefaults(); err != nil {
		return c, err
	}
	if err := c.Settling.window(c.Backoff, c.MaxDeliveries).Check(); err != nil {
		return c, configError("%v", err)
	}
	if c.MaxConcurrency == 0 {
		c.MaxConcurrency = max(1, workers-1)
	}
	if c.BatchSize == 0 {
		c.BatchSize = 64
	}
	return c, nil
}

// retries returns how often and after how long what has failed is tried again, with the defaults filled in.
func retries(backoff []time.Duration, most int) ([]time.Duration, int, error) {
	list := []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second}
	if len(backoff) > 0 {
		list = list[:0]
		for _, d := range backoff {
			if d < 0 {
				return nil, 0, configError("Backoff has %v", d)
			}
			list = append(list, max(d, time.Millisecond))
		}
	}
	switch {
	case most < Unlimited:
		return nil, 0, configError("MaxDeliveries is %d", most)
	case most == 0:
		most = 10
	case most == Unlimited:
		most = 0
	}
	return list, most, nil
}
