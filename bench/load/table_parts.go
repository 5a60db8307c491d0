package load

import (
	"fmt"
	"strings"
	"time"

	"github.com/leatlog/leat/bench/load/stream"
)

type printer func(format string, args ...any)

// again prints the scenario as the flags that make it, so that it can be run again.
func (r Result) again(p printer) {
	if r.Config == nil {
		return
	}
	line := "again     "
	for _, x := range r.settings() {
		word := " -" + x.Name + "=" + x.Value
		if len(line)+len(word) > 130 {
			p("%s\n", line)
			line = "          "
		}
		line += word
	}
	p("%s\n", line)
}

// settings returns Config in the order of Settings.
func (r Result) settings() (list []Setting) {
	s := r.shape()
	s.Name, s.Publish, s.Wait, s.Sync = "-", "-", "-", "-" // so that they have a place
	for _, x := range s.Settings() {
		if v, ok := r.Config[x.Name]; ok {
			list = append(list, Setting{x.Name, v})
		}
	}
	return list
}

func (r Result) shape() Scenario {
	s := Scenario{
		Producers: r.Producers, Partitions: r.Partitions, Readers: r.Readers, Subscribers: r.Subscribers, Stages: r.Stages, Replays: r.Replays,
	}
	if r.Group != nil {
		s.Group = r.Group.group()
	}
	return s
}

func (r Result) sizes() string {
	if r.varies() {
		return fmt.Sprintf("%s bytes (mean %.0f)", r.Sizes, r.meanSize())
	}
	return fmt.Sprintf("%d-byte", r.Size)
}

// varies reports whether not all messages have one size.
func (r Result) varies() bool { return r.Sizes != "" && r.Sizes != fmt.Sprint(r.Size) }

func (r Result) meanSize() float64 {
	if r.SizeMean > 0 {
		return r.SizeMean
	}
	return float64(r.Size)
}

func (r Result) load() string {
	if r.Rate == 0 {
		return "as fast as possible"
	}
	text := FormatRate(r.Rate) + " msgs/s on schedule"
	if r.Arrival != "" && r.Arrival != (stream.Arrival{}).String() {
		text += " (" + r.Arrival + ")"
	}
	return text
}

func (r Result) keys() string {
	if r.Keys == (stream.Keys{}).String() {
		return ""
	}
	return opt("keys ", r.Keys)
}

// collector prints what the garbage collector went by, and where the program came from.
func (r Result) collector(p printer) {
	gc := fmt.Sprint(r.GCPercent)
	if r.GCPercent < 0 {
		gc = "off"
	}
	parts := []string{"GOGC " + gc}
	if r.MemLimit > 0 {
		parts = append(parts, fmt.Sprintf("memory limit %.3g MiB", float64(r.MemLimit)/(1<<20)))
	}
	if r.Pinned != "" {
		parts = append(parts, "pinned to processors "+r.Pinned)
	}
	if r.CPU != "" {
		parts = append(parts, r.CPU)
	}
	if r.Commit != "" {
		parts = append(parts, "commit "+r.Commit)
	}
	p("%s", strings.Join(parts, ", "))
}

// special prints what only some scenarios have.
func (r Result) special(p printer) {
	if b := r.Backlog; b != nil {
		p("backlog    readers stood still for %.3g s and then had %d messages to catch up with", b.StoppedS, b.Messages)
		if b.CatchUpS > 0 {
			p(": that took %.3g s, at %s msgs/s", b.CatchUpS, FormatRate(b.MsgsPerS))
		} else {
			p(": they did not, until the end")
		}
		p("\n")
	}
	if x := r.Replay; x != nil {
		p("replay     %s went through a partition %d times: %d messages, %s msgs/s in total\n",
			count(x.Readers, "more reader"), x.Passes, x.Messages, FormatRate(x.MsgsPerS))
	}
}

// floor prints what the generator does by itself.
func (r Result) floor(p printer) {
	f := r.Floor
	if f == nil {
		return
	}
	p("floor      the generator alone, with a target that does nothing: %s msgs/s, %.1f ns of CPU per message;\n"+
		"           publish p50 %s, p99 %s; e2e p50 %s, p99 %s",
		FormatRate(f.RateMsgsPerS), f.CPUNsPerMsg, quantile(f.Publish, f.Publish.P50), quantile(f.Publish, f.Publish.P99),
		quantile(f.E2E, f.E2E.P50), quantile(f.E2E, f.E2E.P99))
	if r.Rate > 0 {
		p("; delay p99 %s", quantile(f.Delay, f.Delay.P99))
	}
	p("\n")
	if !f.RateHeld {
		p("           and even so the rate was not held: the machine has other things to do, or cannot\n")
	}
}

func quantile(l Latency, v int64) string {
	if l.Count == 0 {
		return "-"
	}
	return FormatDuration(time.Duration(v))
}
