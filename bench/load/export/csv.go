package export

import (
	"io"
	"strconv"
	"strings"
)

// Summary is the latencies of a window, in nanoseconds.
type Summary struct {
	Count uint64 `json:"count"`
	P50   int64  `json:"p50"`
	P90   int64  `json:"p90"`
	P99   int64  `json:"p99"`
	P999  int64  `json:"p999"`
	Max   int64  `json:"max"`
}

// Window is a part of a run: the form in which results carry them, and what packages compare and report read.
type Window struct {
	// FromS and ToS are seconds since the start of the run.
	FromS float64 `json:"from_s"`
	ToS   float64 `json:"to_s"`
	// Warmup says that the window is not measured, or not all of it.
	Warmup bool `json:"warmup"`
	// Sent is how many messages were published in the window, PublishMsgsPerS how many a second, and RateMsgsPerS how many a second
	// went all the way.
	Sent            uint64  `json:"sent"`
	PublishMsgsPerS float64 `json:"publish_msgs_per_s"`
	RateMsgsPerS    float64 `json:"rate_msgs_per_s"`
	// Lag is how many messages the slowest reader had still to get when the window ended.
	Lag uint64 `json:"lag"`

	E2E     Summary `json:"e2e_ns"`
	Publish Summary `json:"publish_ns"`
	Delay   Summary `json:"delay_ns"`

	// CPUNsPerMsg is for each message published, and Cores is how many processors were busy with the process.
	CPUNsPerMsg float64 `json:"cpu_ns_per_msg"`
	Cores       float64 `json:"cores"`
	// GCs is how many garbage collections ended in the window, and GCPauseNs how long they stopped the world.
	GCs       uint64 `json:"gcs"`
	GCPauseNs int64  `json:"gc_pause_ns"`
	// BlockedNs is for how long producers were not let in, all added up. Dropped is how many messages consumers had jumped over by the
	// end of the window, and not had since.
	BlockedNs int64  `json:"blocked_ns"`
	Dropped   uint64 `json:"dropped"`
	// HeapBytes is the size of all objects on the heap when the window ended, dead ones included that were not swept yet.
	HeapBytes uint64 `json:"heap_bytes"`
}

// columns of the CSV form, and how to write them. New ones go to the end.
var columns = []struct {
	name string
	cell func(w *Window) string
}{
	{"from_s", func(w *Window) string { return decimal(w.FromS) }},
	{"to_s", func(w *Window) string { return decimal(w.ToS) }},
	{"warmup", func(w *Window) string { return map[bool]string{false: "0", true: "1"}[w.Warmup] }},
	{"sent", func(w *Window) string { return whole(w.Sent) }},
	{"publish_msgs_per_s", func(w *Window) string { return decimal(w.PublishMsgsPerS) }},
	{"rate_msgs_per_s", func(w *Window) string { return decimal(w.RateMsgsPerS) }},
	{"lag", func(w *Window) string { return whole(w.Lag) }},
	{"e2e_count", func(w *Window) string { return whole(w.E2E.Count) }},
	{"e2e_p50_ns", func(w *Window) string { return w.E2E.cell(w.E2E.P50) }},
	{"e2e_p90_ns", func(w *Window) string { return w.E2E.cell(w.E2E.P90) }},
	{"e2e_p99_ns", func(w *Window) string { return w.E2E.cell(w.E2E.P99) }},
	{"e2e_p999_ns", func(w *Window) string { return w.E2E.cell(w.E2E.P999) }},
	{"e2e_max_ns", func(w *Window) string { return w.E2E.cell(w.E2E.Max) }},
	{"publish_count", func(w *Window) string { return whole(w.Publish.Count) }},
	{"publish_p50_ns", func(w *Window) string { return w.Publish.cell(w.Publish.P50) }},
	{"publish_p99_ns", func(w *Window) string { return w.Publish.cell(w.Publish.P99) }},
	{"publish_max_ns", func(w *Window) string { return w.Publish.cell(w.Publish.Max) }},
	{"delay_count", func(w *Window) string { return whole(w.Delay.Count) }},
	{"delay_p50_ns", func(w *Window) string { return w.Delay.cell(w.Delay.P50) }},
	{"delay_p99_ns", func(w *Window) string { return w.Delay.cell(w.Delay.P99) }},
	{"delay_max_ns", func(w *Window) string { return w.Delay.cell(w.Delay.Max) }},
	{"cpu_ns_per_msg", func(w *Window) string { return decimal(w.CPUNsPerMsg) }},
	{"cores", func(w *Window) string { return decimal(w.Cores) }},
	{"gcs", func(w *Window) string { return whole(w.GCs) }},
	{"gc_pause_ns", func(w *Window) string { return strconv.FormatInt(w.GCPauseNs, 10) }},
	{"blocked_ns", func(w *Window) string { return strconv.FormatInt(w.BlockedNs, 10) }},
	{"dropped", func(w *Window) string { return whole(w.Dropped) }},
	{"heap_bytes", func(w *Window) string { return whole(w.HeapBytes) }},
}

// cell is empty if there is nothing, which is not the same as 0.
func (s *Summary) cell(v int64) string {
	if s.Count == 0 {
		return ""
	}
	return strconv.FormatInt(v, 10)
}

func whole(v uint64) string { return strconv.FormatUint(v, 10) }

func decimal(v float64) string {
	s := strconv.FormatFloat(v, 'f', 3, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// CSV writes windows as comma-separated values, with a head.
func CSV(w io.Writer, windows []Window) error {
	var b strings.Builder
	for i, c := range columns {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(c.name)
	}
	b.WriteByte('\n')
	for i := range windows {
		for j, c := range columns {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteString(c.cell(&windows[i]))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
