package load

import (
	"slices"

	"github.com/leatlog/leat/bench/load/export"
	"github.com/leatlog/leat/bench/load/slo"
)

// Figures returns the names of the figures that a run of s measures, for package slo: whatever is asked of another one, a run either
// always meets it or never.
func (s Scenario) Figures() []string {
	latencies, others := slo.Names()
	group, read := s.Group.Kind != "", s.Consumers() > 0
	return slices.DeleteFunc(slices.Concat(latencies, others), func(name string) bool {
		switch name {
		case "delay", "late", "unsent":
			return s.Rate == 0
		case "done", "overlapped", "miscounted", "uncommitted":
			return !group
		case "e2e", "lag", "duplicated", "reordered", "gap", "corrupt", "unfinished":
			return !read
		case "lost", "faults":
			return !read && s.Sync == "" // files are read at the end
		}
		return false
	})
}

// Figure looks up a figure of the result, for package slo:
//
//	checks, met := objectives.Check(res.Figure)
func (r Result) Figure(m slo.Metric) (value float64, ok bool) {
	if m.Stat != "" {
		return r.latency(m)
	}
	lag := uint64(0)
	for i := range r.Windows {
		if !r.Windows[i].Warmup {
			lag = max(lag, r.Windows[i].Lag)
		}
	}
	f := &r.Faults
	counts := map[string]uint64{
		"lost": f.Lost, "duplicated": f.Duplicated, "reordered": f.Reordered, "gap": f.Gap, "corrupt": f.Corrupt,
		"overlapped": f.Overlapped, "miscounted": f.Miscounted, "uncommitted": f.Uncommitted,
		"faults": f.Lost + f.Duplicated + f.Reordered + f.Gap + f.Corrupt + f.Overlapped + f.Miscounted + f.Uncommitted,
		"unsent": r.Unsent, "late": r.Late, "unfinished": r.Unfinished, "lag": lag,
	}
	if n, ok := counts[m.Name]; ok {
		return float64(n), m.Name != "lag" || len(r.Windows) > 0
	}
	v, ok := map[string]float64{
		"rate": r.RateMsgsPerS, "published": r.PublishMsgsPerS, "allocs": r.AllocsPerMsg, "bytes": r.BytesPerMsg, "cores": r.Cores,
		"cpu": r.CPUNsPerMsg,
	}[m.Name]
	return v, ok && r.DurationS > 0
}

// latency looks up a figure of a latency.
func (r *Result) latency(m slo.Metric) (float64, bool) {
	l := r.Latency.E2E
	switch m.Name {
	case "publish":
		l = r.Latency.Publish
	case "delay":
		l = r.Latency.Delay
	case "done":
		if r.Group == nil {
			return 0, false
		}
		if r.Group.DoneLatency.Count > 0 { // handlers do something: else it is e2e
			l = r.Group.DoneLatency
		}
	}
	if m.Stat == "count" {
		return float64(l.Count), true
	}
	if l.Count == 0 {
		return 0, false
	}
	switch m.Stat {
	case "mean":
		return l.Mean, true
	case "max":
		return float64(l.Max), true
	}
	h, err := export.Decode(l.HDR)
	if err != nil {
		return 0, false
	}
	return float64(min(h.ValueAtQuantile(m.Percentile), l.Max)), true
}
