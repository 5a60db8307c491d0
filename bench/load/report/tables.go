package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// summary is the table at the top.
func summary(runs []Run) table {
	t := table{Caption: "The main figures", Head: names(runs)}
	add := func(name string, cell func(*Run) string) {
		r := row{Name: name}
		used := false
		for i := range runs {
			text := cell(&runs[i])
			used = used || text != ""
			r.Cells = append(r.Cells, orDash(text))
		}
		if used {
			t.Rows = append(t.Rows, r)
		}
	}
	positive := func(v float64, label func(float64) string) string {
		if v <= 0 {
			return ""
		}
		return label(v)
	}
	add("rate", func(r *Run) string { return rate(*r.RateMsgsPerS) })
	add("rate asked for", func(r *Run) string { return positive(r.Rate, rate) })
	add("published", func(r *Run) string { return positive(r.PublishMsgsPerS, rate) })
	for i, l := range runs[0].latencies() {
		for _, p := range []float64{0.5, 0.9, 0.99, 0.999} {
			if l.name != "e2e" && p != 0.5 && p != 0.99 {
				continue
			}
			add(l.name+" p"+strings.TrimSuffix(percentile(p), "%"), func(r *Run) string {
				if all := r.latencies(); i < len(all) {
					if v, ok := all[i].of.at(p); ok {
						return duration(v)
					}
				}
				return ""
			})
		}
		add(l.name+" most", func(r *Run) string {
			if all := r.latencies(); i < len(all) {
				return positive(all[i].of.Max, duration)
			}
			return ""
		})
	}
	add("CPU per message", func(r *Run) string { return positive(r.CPUNsPerMsg, duration) })
	add("allocations per message", func(r *Run) string { return fmt.Sprintf("%.3f", r.AllocsPerMsg) })
	add("bytes allocated per message", func(r *Run) string { return fmt.Sprintf("%.1f", r.BytesPerMsg) })
	add("processors busy", func(r *Run) string { return positive(r.number("cores"), digits) })
	add("collections", func(r *Run) string { return r.field("gcs") })
	add("producers blocked, all together", func(r *Run) string { return positive(r.number("blocked_ns"), duration) })
	add("heap at the end", func(r *Run) string { return positive(r.number("heap_end_bytes"), memory) })
	add("the generator alone: e2e p50", func(r *Run) string { return positive(r.number("floor.e2e_ns.p50"), duration) })
	add("the generator alone: e2e p99", func(r *Run) string { return positive(r.number("floor.e2e_ns.p99"), duration) })
	add("the disk alone: a write and a sync p50", func(r *Run) string { return positive(r.number("disk_sync_ns.p50"), duration) })
	add("messages sent", func(r *Run) string { return count(float64(r.Sent)) })
	add("deliveries", func(r *Run) string { return count(float64(r.Received)) })
	return t
}

// condition is a row of the table of conditions: what it is called, and the fields it comes from.
type condition struct {
	name   string
	fields []string
}

// conditions in their order. Whatever else a result has at its top level or about its group is shown after them, by the name it has.
var conditions = []struct {
	caption string
	rows    []condition
}{
	{"The load", []condition{
		{"engine", []string{"engine"}}, {"scenario", []string{"scenario"}}, {"producers", []string{"producers"}}, {"partitions", []string{"partitions"}},
		{"readers", []string{"readers"}}, {"subscribers", []string{"subscribers"}}, {"message size", []string{"sizes", "size"}},
		{"stages", []string{"stages"}}, {"replays", []string{"replays"}}, {"readers stopped, s", []string{"stop_s"}},
		{"rate asked for", []string{"rate"}}, {"arrival", []string{"arrival"}}, {"keys", []string{"keys"}}, {"publish", []string{"publish"}}, {"wait", []string{"wait"}},
		{"sync", []string{"sync"}},
		{"seed", []string{"seed"}}, {"warm-up, s", []string{"warmup_s"}}, {"measured, s", []string{"duration_s"}},
	}},
	{"The machine", []condition{
		{"CPU", []string{"cpu"}}, {"platform", []string{"platform"}}, {"CPUs", []string{"cpus"}}, {"GOMAXPROCS", []string{"gomaxprocs"}}, {"Go", []string{"go"}},
		{"GC percent", []string{"gc_percent"}}, {"memory limit", []string{"mem_limit"}}, {"pinned", []string{"pinned"}}, {"clock", []string{"clock"}},
		{"placement", []string{"placement.label"}}, {"core to core and back before, ns", []string{"placement.before_ns"}},
		{"core to core and back after, ns", []string{"placement.after_ns"}}, {"commit", []string{"commit"}},
	}},
}

// measured are the rows that are never the same, so that it says nothing if they differ.
var measured = []string{
	"measured, s", "core to core and back before, ns", "core to core and back after, ns",
	"dead lettered", "deliveries per s", "evictions", "expired", "fenced", "gap quiet max ns", "generation", "joins", "leaves", "lost partitions",
	"redelivered", "refused", "repeated",
}

// Fields that are no conditions: they are shown elsewhere, or say nothing by themselves.
var figures = []string{
	"schema", "sent", "received", "rate_msgs_per_s", "publish_msgs_per_s", "rate_held", "interrupted", "cpu_ns_per_msg", "allocs_per_msg",
	"alloc_bytes_per_msg", "placement_rtt_ns", "scheduled", "late", "unsent", "unfinished", "cores", "gcs", "gc_pause_ns", "blocked_ns", "heap_start_bytes",
	"heap_end_bytes", "size_mean", "clamped",
}

// conditionTables lists the conditions of all runs.
func conditionTables(runs []Run) (tables []table) {
	shown := slices.Concat(figures, faultNames)
	for _, group := range conditions {
		t := table{Caption: group.caption, Head: names(runs)}
		for _, c := range group.rows {
			shown = append(shown, c.fields...)
			t.add(runs, c.name, func(r *Run) string {
				for _, f := range c.fields {
					if v := r.field(f); v != "" {
						return v
					}
				}
				return ""
			})
		}
		tables = append(tables, t)
	}
	for _, g := range []struct{ caption, path string }{{"The group", "group"}, {"More", ""}} {
		t := table{Caption: g.caption, Head: names(runs)}
		for _, f := range scalars(runs, g.path) {
			if !slices.Contains(shown, f) {
				t.add(runs, strings.ReplaceAll(strings.TrimPrefix(f, g.path+"."), "_", " "), func(r *Run) string { return r.field(f) })
			}
		}
		if t.Rows != nil {
			tables = append(tables, t)
		}
	}
	return tables
}

// add adds a row if any run has something in it.
func (t *table) add(runs []Run, name string, cell func(*Run) string) {
	r := row{Name: name}
	used := false
	for i := range runs {
		text := cell(&runs[i])
		used = used || text != ""
		r.Cells = append(r.Cells, orDash(text))
		r.Differs = r.Differs || r.Cells[i] != r.Cells[0] && !slices.Contains(measured, name)
	}
	if used {
		t.Rows = append(t.Rows, r)
	}
}

// scalars lists the paths of all fields below path, of any run, that are text, numbers or yes and no.
func scalars(runs []Run, path string) (list []string) {
	for i := range runs {
		at := runs[i].all
		prefix := ""
		if path != "" {
			at, _ = at[path].(map[string]any)
			prefix = path + "."
		}
		for name, v := range at {
			switch v.(type) {
			case string, float64, bool:
				list = append(list, prefix+name)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// value returns a field, or nil.
func (r *Run) value(path string) any {
	at := r.all
	for {
		first, rest, more := strings.Cut(path, ".")
		if !more {
			return at[path]
		}
		at, _ = at[first].(map[string]any)
		path = rest
	}
}

// number returns a field that is a number, or 0.
func (r *Run) number(path string) float64 {
	v, _ := r.value(path).(float64)
	return v
}

// field returns a field as text, or nothing.
func (r *Run) field(path string) string {
	switch v := r.value(path).(type) {
	case string:
		return v
	case bool:
		return map[bool]string{false: "no", true: "yes"}[v]
	case float64:
		if path == "rate" {
			return rate(v)
		}
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return fmt.Sprintf("%d", int64(v))
		}
		return fmt.Sprintf("%.6g", v)
	}
	return ""
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
