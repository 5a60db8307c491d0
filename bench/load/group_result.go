package load

import (
	"fmt"
	"math"
)

// GroupResult is what a run with a group showed besides the rest of its Result.
type GroupResult struct {
	// The scenario, as it was run.
	Kind        Kind    `json:"kind"`
	Members     int     `json:"members"`
	Mode        Mode    `json:"mode"`
	Ack         string  `json:"ack,omitempty"`
	Poll        bool    `json:"poll"`
	Concurrency int     `json:"concurrency,omitempty"`
	HandlerS    float64 `json:"handler_s"`
	Fail        float64 `json:"fail"`
	Deliveries  int     `json:"deliveries"`
	BackoffS    float64 `json:"backoff_s"`
	SlowS       float64 `json:"slow_s"`
	Hang        bool    `json:"hang"`
	TimeoutS    float64 `json:"timeout_s"`
	ChurnS      float64 `json:"churn_s"`
	Evict       float64 `json:"evict"`

	// DeliveriesPerS is how many deliveries a second there were to all members together, repeated ones included, and MemberPerS
	// to each. Members that come and go stand in each other's places.
	DeliveriesPerS float64   `json:"deliveries_per_s"`
	MemberPerS     []float64 `json:"member_per_s"`

	// Redone counts what is no fault.
	Redone
	// Attempts is how many deliveries the target has called the first, the second and so on of their message.
	Attempts []uint64 `json:"attempts"`
	// Expired is how many messages the target has taken away because they were not settled in time, and Refused how many
	// acknowledgements and outcomes that it has refused.
	Expired uint64 `json:"expired"`
	Refused uint64 `json:"refused"`

	// Joins, Leaves and Evictions are of members that came and went, LostPartitions how many they have lost by force, and
	// Generation how often the group has changed in the whole run.
	Joins          uint64 `json:"joins"`
	Leaves         uint64 `json:"leaves"`
	Evictions      uint64 `json:"evictions"`
	LostPartitions uint64 `json:"lost_partitions"`
	Generation     uint64 `json:"generation"`

	// DoneLatency is from the scheduled time until a message was processed. Nothing if handlers do nothing: then it is e2e.
	DoneLatency Latency `json:"done_latency_ns"`

	// With churn: the time between two deliveries of a partition during which a member came or went and the partition stayed
	// with its owner, and in which it got another one. GapQuiet is the longest one in which nothing happened.
	GapStayed Latency `json:"gap_stayed_ns"`
	GapMoved  Latency `json:"gap_moved_ns"`
	GapQuiet  int64   `json:"gap_quiet_max_ns"`

	// Slow is how the others fared beside a slow member.
	Slow *SlowResult `json:"slow,omitempty"`
}

// SlowResult compares what members other than the slow one got before it was slow and meanwhile, in deliveries a second.
type SlowResult struct {
	MinBefore float64 `json:"others_min_before_per_s"`
	MaxBefore float64 `json:"others_max_before_per_s"`
	MinDuring float64 `json:"others_min_during_per_s"`
	MaxDuring float64 `json:"others_max_during_per_s"`
	// Kept is the least of what each had meanwhile as a share of what it had before.
	Kept       float64 `json:"others_kept"`
	SlowBefore float64 `json:"slow_before_per_s"`
	SlowDuring float64 `json:"slow_during_per_s"`
	// E2E of the others; of a group of kind Assigned without the partitions that the slow one has had meanwhile.
	E2EBefore Latency `json:"others_e2e_before_ns"`
	E2EDuring Latency `json:"others_e2e_during_ns"`
}

// header returns what is known of a result before the run.
func (c *Group) header() *GroupResult {
	return &GroupResult{
		Kind: c.Kind, Members: c.Members, Mode: c.Mode, Ack: c.Ack, Poll: c.Poll, Concurrency: c.Concurrency,
		HandlerS: c.Handler.Seconds(), Fail: c.Fail, Deliveries: c.Deliveries, BackoffS: c.Backoff.Seconds(),
		SlowS: c.Slow.Seconds(), Hang: c.Hang, TimeoutS: c.Timeout.Seconds(), ChurnS: c.Churn.Seconds(), Evict: c.Evict,
	}
}

// result fills in what came of the group. Everybody has stopped.
func (g *groupRun) result(res *Result, last mark) {
	r, x := g.r, res.Group
	x.Joins, x.Leaves, x.Evictions, x.LostPartitions = g.churn.joins, g.churn.leaves, g.churn.evictions, g.lost.Load()
	x.Generation, x.Expired, x.Refused = g.figures.Generation, g.figures.Expired, g.figures.Fenced
	expired := allowance{g.figures.Expired, g.figures.Expired}
	before, during := NewHistogram(), NewHistogram()
	for _, l := range g.ledgers {
		lane := l.close(func(producer int) uint64 { return r.producers[producer].seqs[l.partition] }, &expired, r.isCut)
		res.Unfinished += l.unfinished
		l.rec.finish(r.win.e2e)
		if l.done != nil {
			l.done.finish(g.done)
		}
		if g.slows() {
			l.timing.before.finish(before)
			l.timing.during.finish(during)
		}
		res.Received += lane.Received
		res.Faults.add(lane.Faults)
		res.Lanes = append(res.Lanes, lane)
		x.Redone.add(l.redone)
		for i, n := range l.tries {
			if i == len(x.Attempts) {
				x.Attempts = append(x.Attempts, 0)
			}
			x.Attempts[i] += n
		}
		x.GapQuiet = max(x.GapQuiet, l.timing.quiet)
	}
	x.Fenced += g.fenced.Load()
	res.Uncommitted += g.behind
	x.DoneLatency = g.done.full()
	x.GapStayed, x.GapMoved = g.gaps.latency(g.gaps.stayed), g.gaps.latency(g.gaps.moved)
	if !r.isWarm {
		return
	}
	if took := float64(last.at-r.warm.at) / 1e9; took > 0 {
		for i, n := range last.slots {
			x.MemberPerS = append(x.MemberPerS, float64(n-r.warm.slots[i])/took)
			x.DeliveriesPerS += x.MemberPerS[i]
		}
	}
	g.slowResult(x, before, during)
}

// slowResult compares the two halves.
func (g *groupRun) slowResult(x *GroupResult, before, during *Histogram) {
	if g.middle == nil || g.last == nil {
		return
	}
	first, second := float64(g.middleAt-g.r.warm.at)/1e9, float64(g.lastAt-g.middleAt)/1e9
	if first <= 0 || second <= 0 {
		return
	}
	s := &SlowResult{Kept: math.Inf(1), E2EBefore: before.Latency(), E2EDuring: during.Latency()}
	x.Slow = s
	for i := range g.middle {
		b := float64(g.middle[i]-g.r.warm.slots[i]) / first
		d := float64(g.last[i]-g.middle[i]) / second
		switch {
		case i == 0:
			s.SlowBefore, s.SlowDuring = b, d
			continue
		case i == 1:
			s.MinBefore, s.MinDuring = b, d
		}
		s.MinBefore, s.MaxBefore = min(s.MinBefore, b), max(s.MaxBefore, b)
		s.MinDuring, s.MaxDuring = min(s.MinDuring, d), max(s.MaxDuring, d)
		if b > 0 {
			s.Kept = min(s.Kept, d/b)
		}
	}
	if s.Kept < 0.9 {
		g.r.notes = append(g.r.notes, fmt.Sprintf("one of the others kept only %.0f %% of its rate beside the slow one", 100*s.Kept))
	}
	if math.IsInf(s.Kept, 1) { // they had nothing before: there is nothing to keep
		s.Kept = 1
	}
}
