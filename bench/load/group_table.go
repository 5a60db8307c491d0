package load

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// shape says who is there: "4 members (assigned, at-least-once, push)".
func (c Group) shape() string {
	who := "member"
	if c.Kind == Broadcast {
		who = "subscriber"
	}
	parts := []string{string(c.Kind), string(c.Mode)}
	if c.Mode == "" {
		parts[1] = string(AtLeastOnce)
	}
	if c.Ack == AckBatch {
		parts = append(parts, "a batch at once")
	}
	if c.Poll {
		parts = append(parts, "poll")
	} else {
		parts = append(parts, "push")
	}
	for _, x := range []struct {
		on   bool
		text string
	}{
		{c.Concurrency > 1, fmt.Sprintf("%d handlers each", c.Concurrency)},
		{c.Handler > 0, fmt.Sprintf("%v of work", c.Handler)},
		{c.Fail > 0, fmt.Sprintf("%.3g %% fail", c.Fail*100)},
		{c.Churn > 0, fmt.Sprintf("one comes and one goes every %v", c.Churn)},
		{c.Evict > 0, fmt.Sprintf("%.3g %% of them by force", c.Evict*100)},
		{c.Slow > 0, fmt.Sprintf("one is slow: %v", c.Slow)},
		{c.Hang, "one hangs"},
	} {
		if x.on {
			parts = append(parts, x.text)
		}
	}
	return count(c.Members, who) + " (" + strings.Join(parts, ", ") + ")"
}

// group returns the scenario's part again.
func (x *GroupResult) group() Group {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)).Round(time.Microsecond) }
	return Group{
		Kind: x.Kind, Members: x.Members, Mode: x.Mode, Ack: x.Ack, Poll: x.Poll, Concurrency: x.Concurrency,
		Handler: seconds(x.HandlerS), Fail: x.Fail, Deliveries: x.Deliveries, Backoff: seconds(x.BackoffS), Slow: seconds(x.SlowS),
		Hang: x.Hang, Timeout: seconds(x.TimeoutS), Churn: seconds(x.ChurnS), Evict: x.Evict,
	}
}

// write writes what came of the group for people.
func (x *GroupResult) write(p func(format string, args ...any)) {
	if n := len(x.MemberPerS); n > 0 {
		p("members    %s deliveries/s in total, %s to %s to each of %d\n", FormatRate(x.DeliveriesPerS),
			FormatRate(slices.Min(x.MemberPerS)), FormatRate(slices.Max(x.MemberPerS)), n)
	}
	p("delivery   ")
	if len(x.Attempts) == 0 {
		p("attempts unknown")
	}
	for i, n := range x.Attempts {
		switch {
		case i == 0:
			p("%d first attempts", n)
		case i < 8:
			p(", %d %s", n, ordinal(i+1))
		case i == 8:
			p(", ...")
		}
	}
	p("; %d redelivered after a failure, %d dead-lettered,\n           %d repeated after a member had lost them, %d fenced, %d expired\n",
		x.Redelivered, x.Dead, x.Repeated, x.Fenced, x.Expired)
	if x.ChurnS > 0 {
		p("churn      %d joined, %d left, %d put out, %d partitions lost by force; generation %d\n",
			x.Joins, x.Leaves, x.Evictions, x.LostPartitions, x.Generation)
		p("gaps       in delivery, longest: %s of partitions that stayed (%d looked at, p50 %s), %s of those that moved (%d, p50 %s),\n"+
			"           %s while nothing changed\n",
			span1(x.GapStayed), x.GapStayed.Count, FormatDuration(time.Duration(x.GapStayed.P50)),
			span1(x.GapMoved), x.GapMoved.Count, FormatDuration(time.Duration(x.GapMoved.P50)), FormatDuration(time.Duration(x.GapQuiet)))
	}
	if s := x.Slow; s != nil {
		what := "is slow"
		if x.Hang {
			what = "hangs"
		}
		p("others     %s to %s msgs/s each before, %s to %s while one %s: they kept %.0f %% or more\n",
			FormatRate(s.MinBefore), FormatRate(s.MaxBefore), FormatRate(s.MinDuring), FormatRate(s.MaxDuring), what, 100*s.Kept)
		p("           e2e p50 %s, p99 %s before; p50 %s, p99 %s meanwhile%s\n",
			FormatDuration(time.Duration(s.E2EBefore.P50)), FormatDuration(time.Duration(s.E2EBefore.P99)),
			FormatDuration(time.Duration(s.E2EDuring.P50)), FormatDuration(time.Duration(s.E2EDuring.P99)), onlyStayed(x.Kind))
		p("the slow   %s msgs/s before, %s meanwhile; %d partitions were taken from it\n",
			FormatRate(s.SlowBefore), FormatRate(s.SlowDuring), x.LostPartitions)
	}
}

func onlyStayed(k Kind) string {
	if k != Assigned {
		return ""
	}
	return " (without the partitions that the slow one had)"
}

func span1(l Latency) string {
	if l.Count == 0 {
		return "-"
	}
	return FormatDuration(time.Duration(l.Max))
}

func ordinal(n int) string {
	switch n {
	case 2:
		return "second"
	case 3:
		return "third"
	}
	return fmt.Sprintf("%dth", n)
}
