package load

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// WriteText writes the result for people.
func (r Result) WriteText(w io.Writer) error {
	var b strings.Builder
	p := printer(func(format string, args ...any) { fmt.Fprintf(&b, format, args...) })

	p("engine     %s, scenario %s: %s\n", r.Engine, orDash(r.Scenario), r.shape().Shape())
	p("load       %s messages, %s%s%s%s%s, seed %d\n", r.sizes(), r.load(), r.keys(), opt("publish ", r.Publish), opt("wait ", r.Wait), opt("sync ", r.Sync), r.Seed)
	r.again(p)
	p("machine    %s %s, GOMAXPROCS %d of %d CPUs, clock %s, placement %s",
		r.Go, r.Platform, r.GOMAXPROCS, r.CPUs, r.Clock, r.Placement.Label)
	if r.PlacementRTT > 0 {
		p(" (core to core and back: %d ns before, %d ns after)", r.Placement.Before, r.Placement.After)
	}
	p("\n           ")
	r.collector(p)
	p("\nmeasured   %.3f s after %.3g s of warm-up", r.DurationS, r.WarmupS)
	if r.Interrupted {
		p(", INTERRUPTED")
	}
	p("\nrate       %s msgs/s", FormatRate(r.RateMsgsPerS))
	switch n := r.Readers + r.Subscribers; {
	case r.Group != nil:
		p(" processed")
	case n > 0:
		p(" to each of %d", n)
	}
	p(", published %s msgs/s, %.1f MB/s", FormatRate(r.PublishMsgsPerS), r.RateMsgsPerS*r.meanSize()/1e6)
	p("\ncost       %.1f ns of CPU, %.3f allocs, %.1f B allocated per message (harness included)\n", r.CPUNsPerMsg, r.AllocsPerMsg, r.BytesPerMsg)
	p("           %.3g processors busy, %s (%s stopped), heap %.3g to %.3g MiB, producers blocked for %s in all\n", r.Cores, count(int(r.GCs), "collection"),
		FormatDuration(time.Duration(r.GCPauseNs)), float64(r.HeapStart)/(1<<20), float64(r.HeapEnd)/(1<<20), FormatDuration(time.Duration(r.BlockedNs)))
	p("counters   sent %d, received %d, lost %d, duplicated %d, reordered %d, gap %d, corrupt %d",
		r.Sent, r.Received, r.Lost, r.Duplicated, r.Reordered, r.Gap, r.Corrupt)
	if r.Group != nil {
		p(",\n           overlapped %d, miscounted %d, uncommitted %d\n", r.Overlapped, r.Miscounted, r.Uncommitted)
		r.Group.write(p)
	} else {
		p("\n")
	}
	r.special(p)
	p("\n")

	p("%-10s %9s %9s %9s %9s %9s %9s %12s\n", "latency", "p50", "p90", "p99", "p99.9", "p99.99", "max", "samples")
	type row struct {
		name string
		l    Latency
	}
	rows := []row{{"publish", r.Latency.Publish}, {"delay", r.Latency.Delay}, {"e2e", r.Latency.E2E}}
	if r.Group != nil && r.Group.DoneLatency.Count > 0 {
		rows = append(rows, row{"done", r.Group.DoneLatency})
	}
	if r.Disk != nil {
		rows = append(rows, row{"disk sync", *r.Disk})
	}
	for _, row := range rows {
		if row.l.Count == 0 {
			p("%-10s %9s %9s %9s %9s %9s %9s %12d\n", row.name, "-", "-", "-", "-", "-", "-", 0)
			continue
		}
		p("%-10s", row.name)
		for _, v := range []int64{row.l.P50, row.l.P90, row.l.P99, row.l.P999, row.l.P9999, row.l.Max} {
			p(" %9s", FormatDuration(time.Duration(v)))
		}
		p(" %12d\n", row.l.Count)
	}
	if r.Rate == 0 {
		p("           publish is the call, e2e from the call to the reader; 1 message in %d is measured, and none has a delay,\n"+
			"           since nothing is scheduled: these latencies mostly show how much is buffered\n", r.SampleEvery)
	} else {
		p("           publish is the call, delay how much later than scheduled it began, e2e from the schedule to the reader\n")
	}
	if r.Group != nil && r.Group.DoneLatency.Count > 0 {
		p("           (at its first delivery), done from there until it was processed\n")
	}
	if r.Disk != nil {
		p("           disk sync is a write of a message and a sync of the file, in a bare loop before the run\n")
	}
	r.floor(p)
	for _, n := range r.Notes {
		p("note       %s\n", n)
	}
	if !r.RateHeld {
		p("\nRATE MISSED: of %d scheduled messages %d were sent late and %d not at all (asked for %s msgs/s, published %s)\n",
			r.Scheduled, r.Late, r.Unsent, FormatRate(r.Rate), FormatRate(r.PublishMsgsPerS))
	}
	if r.Unfinished > 0 {
		p("\nUNFINISHED: %s when the run ended\n", r.unfinished())
	}
	if r.Faults.Any() {
		p("\nWRONG: %s\n", r.wrong())
		shown := 0
		for _, l := range r.Lanes {
			if l.FirstFault == "" {
				continue
			}
			if shown++; shown > 8 {
				p("  ...\n")
				break
			}
			p("  %s, partition %d: %s (%v)\n", l.Consumer, l.Partition, l.FirstFault, l.Faults)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// wrong says in general what is wrong.
func (r Result) wrong() string {
	if r.Group != nil {
		return "the group did not do with every message what its mode says"
	}
	return "the target lost, duplicated, reordered or damaged messages"
}

// Shape says who is there: "3 producers -> 2 partitions -> 1 reader and 1 subscriber".
func (s Scenario) Shape() string {
	var to []string
	if s.Readers > 0 {
		to = append(to, count(s.Readers, "reader"))
	}
	if s.Subscribers > 0 {
		to = append(to, count(s.Subscribers, "subscriber"))
	}
	if s.Group.Kind != "" {
		to = append(to, s.Group.shape())
	}
	if len(to) == 0 {
		to = []string{"nobody"}
	}
	through := ""
	if s.Stages > 1 {
		through = fmt.Sprintf(" in each of %d stages", s.Stages)
	}
	if s.Replays > 0 {
		to = append(to, count(s.Replays, "reader")+" that read all again and again")
	}
	return count(s.Producers, "producer") + " -> " + count(s.Partitions, "partition") + through + " -> " + strings.Join(to, " and ")
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func opt(label, v string) string {
	if v == "" {
		return ""
	}
	return ", " + label + v
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// String returns the window as one line.
func (w Window) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%4.0f s  %9s msgs/s  lag %-9d", w.Elapsed.Seconds(), FormatRate(w.Rate), w.Lag)
	if w.Samples == 0 {
		b.WriteString("  e2e -")
	} else {
		fmt.Fprintf(&b, "  e2e p50 %s, p99 %s, max %s", FormatDuration(w.P50), FormatDuration(w.P99), FormatDuration(w.Max))
	}
	if w.Delay > 0 {
		fmt.Fprintf(&b, "  sent up to %s late", FormatDuration(w.Delay))
	}
	if w.Warmup {
		b.WriteString("  (warm-up)")
	}
	return strings.TrimRight(b.String(), " ")
}

// FormatRate writes a number of things a second with three digits: 12.3 M, 456 k.
func FormatRate(v float64) string {
	switch {
	case v >= 1e9:
		return fmt.Sprintf("%.3g G", v/1e9)
	case v >= 999_500:
		return threeDigits(v/1e6) + " M"
	case v >= 1e4:
		return threeDigits(v/1e3) + " k"
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

// FormatDuration writes a duration with three digits: 312ns, 1.24us, 3.40ms.
func FormatDuration(d time.Duration) string {
	v := float64(d)
	switch {
	case d < 0:
		return "-" + FormatDuration(-d)
	case d < time.Microsecond:
		return fmt.Sprintf("%dns", int64(d))
	case v < 999.5e3:
		return threeDigits(v/1e3) + "us"
	case v < 999.5e6:
		return threeDigits(v/1e6) + "ms"
	default:
		return threeDigits(v/1e9) + "s"
	}
}

func threeDigits(v float64) string {
	switch {
	case v < 9.995:
		return fmt.Sprintf("%.2f", v)
	case v < 99.95:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}
