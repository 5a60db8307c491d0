package load

import (
	"math"
	"time"
)

// Defaults of a Group.
const (
	defaultDeliveries = 5
	defaultBackoff    = time.Millisecond
	defaultTimeout    = time.Second
	maxMembers        = 10_000
)

// withDefaults returns c with every zero field set, and checks it.
func (c Group) withDefaults(s *Scenario, check func(ok bool, format string, args ...any)) Group {
	if c.Kind == "" {
		check(c == Group{}, "members is set: the scenario has no group, whose kind would say who they are")
		return c
	}
	if c.Mode == "" {
		c.Mode = AtLeastOnce
	}
	if c.Mode == Manual && c.Ack == "" {
		c.Ack = AckEach
	}
	if c.Deliveries == 0 {
		c.Deliveries = defaultDeliveries
	}
	if c.Backoff == 0 {
		c.Backoff = defaultBackoff
	}
	if c.Hang && c.Timeout == 0 && (c.Kind != Broadcast || c.Mode == Manual) {
		c.Timeout = defaultTimeout
	}
	check(c.Kind == Assigned || c.Kind == Shared || c.Kind == Broadcast,
		"kind %q: must be one of %s, %s, %s", c.Kind, Assigned, Shared, Broadcast)
	check(c.Mode == AtLeastOnce || c.Mode == AtMostOnce || c.Mode == Manual,
		"mode %q: must be one of %s, %s, %s", c.Mode, AtLeastOnce, AtMostOnce, Manual)
	check(c.Ack == "" || c.Ack == AckEach || c.Ack == AckBatch, "ack %q: must be one of %s, %s", c.Ack, AckEach, AckBatch)
	check(s.Readers == 0, "readers is %d: a scenario with a group has members instead", s.Readers)
	check(s.Subscribers == 0, "subscribers is %d: a scenario with a group has members instead (of kind %s they are subscribers)",
		s.Subscribers, Broadcast)
	check(c.Members >= 1 && c.Members <= maxMembers, "members is %d: must be 1 to %d", c.Members, maxMembers)
	check(c.Concurrency >= 0 && c.Concurrency <= maxConcurrency, "concurrency is %d: must be 0 to %d", c.Concurrency, maxConcurrency)
	check(c.Handler >= 0 && c.Handler <= maxTime, "handler is %v: must be 0 to %s", c.Handler, maxTimeText)
	check(c.Fail >= 0 && c.Fail <= 0.9, "fail is %v: must be 0 to 0.9", c.Fail)
	check(c.Deliveries >= 1 && c.Deliveries <= maxDeliveries, "deliveries is %d: must be 1 to %d", c.Deliveries, maxDeliveries)
	check(c.Backoff > 0 && c.Backoff <= maxTime, "backoff is %v: must be above 0, at most %s", c.Backoff, maxTimeText)
	check(c.Slow >= 0 && c.Slow <= maxTime, "slow is %v: must be 0 to %s", c.Slow, maxTimeText)
	check(c.Timeout >= 0 && c.Timeout <= maxTime, "timeout is %v: must be 0 to %s", c.Timeout, maxTimeText)
	check(c.Churn == 0 || c.Churn >= time.Millisecond && c.Churn <= maxTime, "churn is %v: must be 0, or 1ms to %s", c.Churn, maxTimeText)
	check(c.Evict >= 0 && c.Evict <= 1, "evict is %v: must be 0 to 1", c.Evict)
	check(c.Backlog >= 0, "backlog is %d: must not be negative", c.Backlog)
	c.combine(s, check)
	if c.Backlog == 0 && s.Rate == 0 && (c.Handler > 0 || c.Fail > 0) {
		c.Backlog = int(min(max(c.capacity(s)/4, c.backlogLeast(s)), 1<<20))
	}
	return c
}

// combine checks what does not go together.
func (c Group) combine(s *Scenario, check func(ok bool, format string, args ...any)) {
	slows := c.Hang || c.Slow > 0
	check(c.Ack == "" || c.Mode == Manual, "ack is %q: only in mode %s are messages acknowledged", c.Ack, Manual)
	check(!c.Poll || c.Kind != Broadcast, "poll: subscribers of kind %s are called; scenarios without a group have readers that pull", Broadcast)
	check(!c.Poll || c.Concurrency <= 1, "concurrency is %d: a member that polls handles one message at a time; must be 0 or 1", c.Concurrency)
	check(!c.Poll || c.Fail == 0 || c.Mode == Manual,
		"fail is %v: what a member has polled it can refuse only in mode %s", c.Fail, Manual)
	check(c.Ack != AckBatch || c.Fail == 0, "fail is %v: a batch is acknowledged as a whole; use ack %s", c.Fail, AckEach)
	check(c.Ack != AckBatch || c.Kind != Shared || c.Poll,
		"ack is %s: members of a %s group are called with messages that are not consecutive; use poll, or ack %s", AckBatch, Shared, AckEach)
	check(c.Churn == 0 || c.Kind != Broadcast, "churn: subscribers of kind %s share nothing that could move; must be 0", Broadcast)
	check(c.Evict == 0 || c.Churn > 0, "evict is %v: nobody leaves without churn; must be 0, or churn above 0", c.Evict)
	check(!slows || c.Churn == 0, "churn and slow do not go together: the slow member would leave; one of them must be 0")
	check(!c.Hang || c.Slow == 0, "slow and hang do not go together")
	check(!slows || c.Members >= 2, "members is %d: somebody must be there besides the slow member, so at least 2", c.Members)
	check(!slows || s.Rate > 0, "slow needs a rate: as fast as possible, producers would go by the slowest")
	check(c.Timeout == 0 || c.Kind != Broadcast || c.Mode == Manual,
		"timeout is %v: nothing is taken away from subscribers, but in mode %s; must be 0", c.Timeout, Manual)
	if can := c.capacity(s); s.Rate > can && s.Partitions >= 1 && c.Members >= 1 {
		check(false, "rate is %v: handlers that take %v, fail %v of the time and wait %v then can do %.0f a second here; must be at most that",
			s.Rate, c.Handler, c.Fail, c.Backoff, can)
	}
}

const (
	maxDeliveries  = 1000
	maxConcurrency = 10_000
)

// capacity returns how many messages a second handlers can do at the most, as far as they sleep or wait.
func (c Group) capacity(s *Scenario) float64 {
	again := 0.0 // how often a message is delivered again
	if c.Mode != AtMostOnce {
		for i, p := 1, c.Fail; i < min(c.Deliveries, maxDeliveries); i++ {
			again += p
			p *= c.Fail
		}
	}
	const late = 500 * time.Microsecond // how long a wait takes more than it should, about
	each := c.Handler.Seconds() * (1 + again)
	lanes := float64(s.Partitions)
	if c.Kind == Shared {
		lanes = float64(c.Members * max(c.Concurrency, 1))
	} else if c.Mode == AtLeastOnce { // what failed waits where it is
		each += again * (c.Backoff + late).Seconds()
	}
	if c.Poll {
		lanes = min(lanes, float64(c.Members))
	}
	if each == 0 {
		return math.Inf(1)
	}
	return lanes / each
}

// backlogLeast is how many messages may be published and not processed at the least: two for each handler that works at a time, so that
// none waits for work, but no more where they take so long that the rest would take long at the end.
func (c Group) backlogLeast(s *Scenario) float64 {
	const least, long = 64, 100 * time.Millisecond
	if c.Handler < long {
		return least
	}
	return max(1, min(least, 2*c.capacity(s)*c.Handler.Seconds()))
}

// GroupScenarios returns the named scenarios with a group.
func GroupScenarios() []Scenario {
	return usual([]Scenario{
		{
			Name: "group", Producers: 3, Partitions: 4, Group: Group{Kind: Assigned, Members: 4},
			About: "a consumer group: each member owns some of the partitions, and each message is processed once",
		},
		{
			Name: "shared", Producers: 1, Partitions: 2, Group: Group{Kind: Shared, Members: 4, Handler: time.Millisecond},
			About: "a shared group of workers: each message goes to one of them, and twice the members do twice the work",
		},
		{
			Name: "churn", Producers: 2, Partitions: 8, Rate: 20_000,
			Group: Group{Kind: Assigned, Members: 4, Churn: 50 * time.Millisecond},
			About: "members join and leave all the time: what moves, how long partitions that stay stand still, and is anything lost",
		},
		{
			Name: "slow-consumer", Producers: 2, Partitions: 8, Rate: 20_000,
			Group: Group{Kind: Assigned, Members: 4, Slow: 5 * time.Millisecond},
			About: "after half of the time one member is slow, or hangs: do the others keep their rate, and is anything lost",
		},
		{
			Name: "redelivery", Producers: 2, Partitions: 8, Rate: 5_000,
			Group: Group{Kind: Assigned, Members: 4, Fail: 0.1, Deliveries: 3},
			About: "a share of the deliveries fails: what fails comes again, what fails too often becomes a dead letter, nothing is lost",
		},
	})
}
