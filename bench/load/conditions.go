package load

import (
	"bytes"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// conditions notes what the run went by, besides the scenario.
func (r *Result) conditions() {
	m := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(m)
	if v := m[0].Value; v.Kind() == metrics.KindUint64 {
		r.GCPercent = int64(min(v.Uint64(), math.MaxInt64))
		if v.Uint64() >= math.MaxInt64 {
			r.GCPercent = -1
		}
	}
	if v := m[1].Value; v.Kind() == metrics.KindUint64 && v.Uint64() < math.MaxInt64 {
		r.MemLimit = int64(v.Uint64())
	}
	r.CPU, r.Commit = processor(), commit()
}

// processor returns what the processor is called, where a file says so.
var processor = sync.OnceValue(func() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(text) {
		if name, value, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(name)) == "model name" {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
})

// commit returns which version of its repository the program was built from; "+" at its end means that there were changes.
var commit = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	text, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			text = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	if text == "" {
		return ""
	}
	return text + changed
})
