package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrRead is wrapped by what Read returns.
var ErrRead = errors.New("compare: not a result of leatload")

// schemas are the versions of the JSON form that are understood. Fields that are not known are left alone.
var schemas = []int{1}

// Run is what is compared of a result.
type Run struct {
	all map[string]any // the whole of it, for the conditions

	Schema          int      `json:"schema"`
	Engine          string   `json:"engine"`
	Scenario        string   `json:"scenario"`
	Rate            float64  `json:"rate"`
	DurationS       float64  `json:"duration_s"`
	RateMsgsPerS    *float64 `json:"rate_msgs_per_s"`
	PublishMsgsPerS float64  `json:"publish_msgs_per_s"`
	RateHeld        *bool    `json:"rate_held"`
	Interrupted     bool     `json:"interrupted"`
	Unfinished      uint64   `json:"unfinished"`
	CPUNsPerMsg     float64  `json:"cpu_ns_per_msg"`
	AllocsPerMsg    float64  `json:"allocs_per_msg"`
	BytesPerMsg     float64  `json:"alloc_bytes_per_msg"`

	Latency struct {
		Publish summary `json:"publish"`
		Delay   summary `json:"delay"`
		E2E     summary `json:"e2e"`
	} `json:"latency_ns"`

	Placement struct {
		Label string `json:"label"`
	} `json:"placement"`

	Windows []window `json:"windows"`
}

// summary is a latency, in nanoseconds.
type summary struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// window is a part of a run.
type window struct {
	FromS  float64 `json:"from_s"`
	ToS    float64 `json:"to_s"`
	Warmup bool    `json:"warmup"`

	RateMsgsPerS    float64 `json:"rate_msgs_per_s"`
	PublishMsgsPerS float64 `json:"publish_msgs_per_s"`
	CPUNsPerMsg     float64 `json:"cpu_ns_per_msg"`
	E2E             summary `json:"e2e_ns"`
	Publish         summary `json:"publish_ns"`
	Delay           summary `json:"delay_ns"`
}

// Read reads one result.
func Read(r io.Reader) (Run, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return Run{}, fmt.Errorf("%w: %w", ErrRead, err)
	}
	var run Run
	if err := json.Unmarshal(data, &run); err != nil {
		return Run{}, fmt.Errorf("%w: %w", ErrRead, err)
	}
	if err := json.Unmarshal(data, &run.all); err != nil {
		return Run{}, fmt.Errorf("%w: %w", ErrRead, err)
	}
	switch {
	case run.Schema == 0 || run.RateMsgsPerS == nil:
		return Run{}, fmt.Errorf("%w: it has no schema or no rate_msgs_per_s", ErrRead)
	case !slices.Contains(schemas, run.Schema):
		return Run{}, fmt.Errorf("%w: schema %d is not known, only %v", ErrRead, run.Schema, schemas)
	}
	run.Windows = measured(run.Windows)
	return run, nil
}

// measured returns the windows that count: without the warm-up, and without a last one that is only a fraction.
func measured(all []window) []window {
	var longest float64
	for _, w := range all {
		longest = max(longest, w.ToS-w.FromS)
	}
	return slices.DeleteFunc(all, func(w window) bool { return w.Warmup || w.ToS-w.FromS < longest/2 })
}

// faults are the counters of a run that must be 0.
var faultNames = []string{"lost", "duplicated", "reordered", "gap", "corrupt", "overlapped", "miscounted", "uncommitted"}

// faults says what went wrong in the run, or nothing.
func (r Run) faults() string {
	text := ""
	for _, name := range faultNames {
		if n, _ := r.all[name].(float64); n > 0 {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%s %.0f", name, n)
		}
	}
	return text
}

// held reports whether the run held its rate.
func (r Run) held() bool { return r.RateHeld == nil || *r.RateHeld }

// nothing reports whether the run measured nothing: it ended during the warm-up, or no message was due.
func (r Run) nothing() bool {
	return *r.RateMsgsPerS == 0 && r.PublishMsgsPerS == 0 && (r.DurationS == 0 || r.held() && r.finished())
}

// finished reports whether the run got through what was sent: otherwise its latencies leave out the longest.
func (r Run) finished() bool { return r.Unfinished == 0 || r.Interrupted }

// What two runs must have in common to be comparable, and what may differ but should be known.
var (
	loadFields = []string{
		"producers", "partitions", "readers", "subscribers", "size", "sizes", "rate", "arrival", "keys", "stages", "replays", "stop_s", "group.kind", "group.members",
		"group.mode", "group.fail", "group.handler_s", "group.deliveries", "group.slow_s", "group.hang", "group.churn_s",
	}
	otherFields = []string{
		"engine", "scenario", "publish", "wait", "sync", "go", "platform", "cpu", "gomaxprocs", "cpus", "clock", "gc_percent", "mem_limit", "pinned",
		"commit", "seed", "sample_every",
	}
)

// field returns a field by its path, or nil.
func (r Run) field(path string) any {
	at := r.all
	for {
		i := slices.Index([]byte(path), '.')
		if i < 0 {
			return at[path]
		}
		at, _ = at[path[:i]].(map[string]any)
		path = path[i+1:]
	}
}

// differences lists the fields in which two runs differ.
func differences(a, b Run, fields []string) (list []string) {
	for _, f := range fields {
		if x, y := show(a.field(f)), show(b.field(f)); x != y {
			list = append(list, fmt.Sprintf("%s %s and %s", f, x, y))
		}
	}
	return list
}

func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case float64:
		return fmt.Sprintf("%.15g", v)
	case string:
		if v == "" {
			return "-"
		}
		return v
	}
	return fmt.Sprint(v)
}
