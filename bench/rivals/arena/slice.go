package arena

import (
	"context"
	"fmt"
	"runtime"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/ratio"
)

// Slice is one measurement.
type Slice struct {
	ratio.Placed
	Messages uint64 `json:"messages"`
	Ns       int64  `json:"ns"`     // from the start until the last consumer had the last message
	CPU      int64  `json:"cpu_ns"` // of the whole process
	Allocs   uint64 `json:"allocs"`
	Bytes    uint64 `json:"bytes"` // allocated
	GCs      uint32 `json:"gcs"`
	GCPause  int64  `json:"gc_pause_ns"`

	// With a rate: how long messages took from when they were due, and by how much the producers were late at worst.
	Latency load.Latency `json:"latency,omitzero"`
	Behind  int64        `json:"behind_ns,omitempty"`
}

// Rate is messages a second.
func (s Slice) Rate() float64 { return div(float64(s.Messages)*1e9, float64(s.Ns)) }

// CPUPerMessage is in nanoseconds.
func (s Slice) CPUPerMessage() float64 { return div(float64(s.CPU), float64(s.Messages)) }

// Cores is how many processors were busy.
func (s Slice) Cores() float64 { return div(float64(s.CPU), float64(s.Ns)) }

// AllocsPerMessage and BytesPerMessage are what was allocated.
func (s Slice) AllocsPerMessage() float64 { return div(float64(s.Allocs), float64(s.Messages)) }
func (s Slice) BytesPerMessage() float64  { return div(float64(s.Bytes), float64(s.Messages)) }

// P50, P90 and P99 are latencies in nanoseconds; 0 without a rate.
func (s Slice) P50() float64 { return float64(s.Latency.P50) }
func (s Slice) P90() float64 { return float64(s.Latency.P90) }
func (s Slice) P99() float64 { return float64(s.Latency.P99) }

func div(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Runner runs slices. [Traffic] is one, for lines; a rival in another language is one by itself (Rival.Start).
type Runner interface {
	// Slice moves n messages, at the rate of its Spec, checks them, and returns what that took; all but Placed, which is for who
	// lets slices alternate. An error is final.
	Slice(ctx context.Context, n uint64) (Slice, error)

	// Rated says at what rate the slices from now on are to be: 0 means as fast as can be. It is called between slices.
	Rated(rate float64)

	// Close ends it, and returns an error also if messages came that should not have.
	Close() error
}

// Open opens a rival for a workload. A workload that it cannot do is an ErrUnsupported.
func Open(r *Rival, s Spec) (Runner, error) {
	if r.Start == nil {
		return NewTraffic(r, s)
	}
	if err := r.Check(s); err != nil {
		return nil, fmt.Errorf("%s: %v: %w", r.Name, s, err)
	}
	return r.Start(s)
}

// Usage is what the process had used up to a moment.
type Usage struct {
	cpu int64
	mem runtime.MemStats
}

// Measure collects what others have left behind, and notes what the process has used so far. It stops the world for some
// microseconds, so it is called when nothing moves.
func Measure() *Usage {
	runtime.GC()
	u := new(Usage)
	u.take()
	return u
}

func (u *Usage) take() {
	runtime.ReadMemStats(&u.mem)
	u.cpu = load.CPUTime()
}

// Into writes what was used since Measure into s.
func (u *Usage) Into(s *Slice) {
	var now Usage
	now.cpu = load.CPUTime() // first: reading the rest is not free
	runtime.ReadMemStats(&now.mem)
	s.CPU = now.cpu - u.cpu
	s.Allocs = now.mem.Mallocs - u.mem.Mallocs
	s.Bytes = now.mem.TotalAlloc - u.mem.TotalAlloc
	s.GCs = now.mem.NumGC - u.mem.NumGC
	s.GCPause = int64(now.mem.PauseTotalNs - u.mem.PauseTotalNs)
}
