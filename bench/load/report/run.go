package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// ErrRead is wrapped by what Read returns.
var ErrRead = errors.New("report: not a result of leatload")

// Run is a result, read for a report.
type Run struct {
	// Name is what the page calls the run.
	Name string
	// Verdict is a word about it for the table of a sweep: whether it met what was asked for. May be empty.
	Verdict string

	all map[string]any // the whole of it, for the conditions

	Schema          int      `json:"schema"`
	Engine          string   `json:"engine"`
	Scenario        string   `json:"scenario"`
	Rate            float64  `json:"rate"`
	DurationS       float64  `json:"duration_s"`
	WarmupS         float64  `json:"warmup_s"`
	Interrupted     bool     `json:"interrupted"`
	Unfinished      uint64   `json:"unfinished"`
	Sent            uint64   `json:"sent"`
	Received        uint64   `json:"received"`
	RateMsgsPerS    *float64 `json:"rate_msgs_per_s"`
	PublishMsgsPerS float64  `json:"publish_msgs_per_s"`
	Unsent          uint64   `json:"unsent"`
	Late            uint64   `json:"late"`
	RateHeld        *bool    `json:"rate_held"`
	CPUNsPerMsg     float64  `json:"cpu_ns_per_msg"`
	AllocsPerMsg    float64  `json:"allocs_per_msg"`
	BytesPerMsg     float64  `json:"alloc_bytes_per_msg"`

	Latency struct {
		Publish latency `json:"publish"`
		Delay   latency `json:"delay"`
		E2E     latency `json:"e2e"`
	} `json:"latency_ns"`
	Group *struct {
		Done latency `json:"done_latency_ns"`
	} `json:"group"`

	Placement struct {
		Before float64 `json:"before_ns"`
		After  float64 `json:"after_ns"`
		Label  string  `json:"label"`
	} `json:"placement"`

	Steps   []step   `json:"steps"`
	Windows []window `json:"windows"`
	Lanes   []struct {
		Consumer   string `json:"consumer"`
		Partition  int    `json:"partition"`
		FirstFault string `json:"first_fault"`
	} `json:"lanes"`
	Notes []string `json:"notes"`
}

// latency is a distribution in nanoseconds.
type latency struct {
	Count uint64  `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	P9999 float64 `json:"p9999"`
	Max   float64 `json:"max"`
	// HDR is the whole of it: an encoded HdrHistogram. Without, the curve goes through the percentiles above.
	HDR string `json:"hdr"`

	h *hdr.Histogram
}

// step is a part of a run in which the schedule has one rate.
type step struct {
	FromS    float64 `json:"from_s"`
	MsgsPerS float64 `json:"msgs_per_s"`
}

// window is a part of a run.
type window struct {
	FromS  float64 `json:"from_s"`
	ToS    float64 `json:"to_s"`
	Warmup bool    `json:"warmup"`

	RateMsgsPerS    float64 `json:"rate_msgs_per_s"`
	PublishMsgsPerS float64 `json:"publish_msgs_per_s"`
	Lag             float64 `json:"lag"`
	E2E             latency `json:"e2e_ns"`
	Publish         latency `json:"publish_ns"`
	Delay           latency `json:"delay_ns"`
	Cores           float64 `json:"cores"`
	GCs             float64 `json:"gcs"`
}

// Read reads one result.
func Read(name string, r io.Reader) (Run, error) {
	run := Run{Name: name}
	data, err := io.ReadAll(r)
	if err == nil {
		err = json.Unmarshal(data, &run)
	}
	if err == nil {
		err = json.Unmarshal(data, &run.all)
	}
	if err != nil {
		return Run{}, fmt.Errorf("%w: %w", ErrRead, err)
	}
	if run.Schema != 1 || run.RateMsgsPerS == nil {
		return Run{}, fmt.Errorf("%w: it has no rate_msgs_per_s, or its schema is not 1 but %d", ErrRead, run.Schema)
	}
	for _, l := range run.latencies() {
		if l.of.HDR == "" {
			continue
		}
		if l.of.h, err = hdr.Decode([]byte(l.of.HDR)); err != nil {
			return Run{}, fmt.Errorf("%w: the histogram of %s: %w", ErrRead, l.name, err)
		}
	}
	run.trim()
	return run, nil
}

// trim leaves out a last window that is only a fraction: what came in a moment is no rate.
func (r *Run) trim() {
	n := len(r.Windows)
	if n < 2 {
		return
	}
	last, before := r.Windows[n-1], r.Windows[n-2]
	if last.ToS-last.FromS < (before.ToS-before.FromS)/2 {
		r.Windows = r.Windows[:n-1]
	}
}

// named is a latency and what it is.
type named struct {
	name, about string
	of          *latency
}

// latencies lists the latencies, the most interesting first.
func (r *Run) latencies() []named {
	list := []named{
		{"e2e", "from the scheduled time of a message (without a rate: from the call to publish) until a reader had it", &r.Latency.E2E},
		{"publish", "how long the call to publish took", &r.Latency.Publish},
		{"delay", "how much later than scheduled the call to publish began", &r.Latency.Delay},
	}
	if r.Group != nil {
		list = append(list, named{"done", "from the scheduled time of a message until it was processed", &r.Group.Done})
	}
	return list
}

// faultNames are the counters that must be 0.
var faultNames = []string{"lost", "duplicated", "reordered", "gap", "corrupt", "overlapped", "miscounted", "uncommitted"}

// faults says what went wrong, or nothing.
func (r *Run) faults() string {
	var list []string
	for _, name := range faultNames {
		if n, _ := r.all[name].(float64); n > 0 {
			list = append(list, fmt.Sprintf("%s %.0f", name, n))
		}
	}
	return strings.Join(list, ", ")
}

// state says how the run ended, in a word for its style and one for people.
func (r *Run) state() (class, text string) {
	switch {
	case r.faults() != "":
		return "bad", "wrong: " + r.faults()
	case r.RateHeld != nil && !*r.RateHeld:
		return "bad", fmt.Sprintf("rate missed: %s late, %s not sent", count(float64(r.Late)), count(float64(r.Unsent)))
	case r.Unfinished > 0 && !r.Interrupted:
		return "bad", fmt.Sprintf("unfinished: %s still to come when the run ended", count(float64(r.Unfinished)))
	case r.Interrupted:
		return "warn", "interrupted"
	}
	return "good", "all messages arrived"
}
