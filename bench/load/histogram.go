package load

import (
	"math"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/leatlog/leat/bench/load/export"
)

const (
	// highest is the longest time that a Histogram tells apart: about 18 minutes. Longer ones are counted there.
	highest = 1 << 40
	digits  = 3
)

// Histogram counts times in nanoseconds, to three digits, in constant memory (about 0.25 MiB). A value out of its range is
// counted at the range's end and counted as clamped, never dropped; Max is exact.
//
// One goroutine at a time uses it.
type Histogram struct {
	h       *hdr.Histogram
	max     int64
	clamped uint64
}

// NewHistogram returns an empty histogram.
func NewHistogram() *Histogram { return &Histogram{h: hdr.New(1, highest, digits), max: math.MinInt64} }

// Record counts one value.
func (h *Histogram) Record(v int64) {
	h.max = max(h.max, v)
	if uint64(v) > highest {
		h.clamped++
		v = min(max(v, 0), highest)
	}
	// The value is in range, so that the only error left is a total beyond 2^63.
	_ = h.h.RecordValue(v)
}

// RecordN counts a value n times.
func (h *Histogram) RecordN(v, n int64) {
	if n <= 0 {
		return
	}
	h.max = max(h.max, v)
	if uint64(v) > highest {
		h.clamped += uint64(n)
		v = min(max(v, 0), highest)
	}
	_ = h.h.RecordValues(v, n)
}

// Merge adds what o has counted.
func (h *Histogram) Merge(o *Histogram) {
	if o.h.TotalCount() == 0 {
		return
	}
	h.h.Merge(o.h)
	h.max = max(h.max, o.max)
	h.clamped += o.clamped
}

// Reset forgets everything.
func (h *Histogram) Reset() {
	h.h.Reset()
	h.max, h.clamped = math.MinInt64, 0
}

// Count returns how many values were counted, clamped ones included.
func (h *Histogram) Count() uint64 { return uint64(h.h.TotalCount()) }

// Clamped returns how many of them were out of range.
func (h *Histogram) Clamped() uint64 { return h.clamped }

// Max returns the largest value, exactly, also if it was out of range. 0 if there is none.
func (h *Histogram) Max() int64 {
	if h.Count() == 0 {
		return 0
	}
	return h.max
}

// Mean returns the mean, to the histogram's precision.
func (h *Histogram) Mean() float64 { return h.h.Mean() }

// Percentile returns the value that p percent of all values do not exceed. 0 if there is none.
func (h *Histogram) Percentile(p float64) int64 {
	if h.Count() == 0 {
		return 0
	}
	return min(h.h.ValueAtQuantile(p), h.max)
}

// HDR returns what counts, for other forms of it: see package export. It is the same histogram, not a copy.
func (h *Histogram) HDR() *hdr.Histogram { return h.h }

// Latency summarises a Histogram, in nanoseconds.
type Latency struct {
	Count   uint64  `json:"count"`
	Clamped uint64  `json:"clamped"`
	Mean    float64 `json:"mean"`
	P50     int64   `json:"p50"`
	P90     int64   `json:"p90"`
	P99     int64   `json:"p99"`
	P999    int64   `json:"p999"`
	P9999   int64   `json:"p9999"`
	Max     int64   `json:"max"`
	// HDR is the whole distribution, as package export encodes it, for those that say so.
	HDR string `json:"hdr,omitempty"`
}

// Latency returns the summary.
func (h *Histogram) Latency() Latency {
	return Latency{
		Count:   h.Count(),
		Clamped: h.Clamped(),
		Mean:    h.Mean(),
		P50:     h.Percentile(50),
		P90:     h.Percentile(90),
		P99:     h.Percentile(99),
		P999:    h.Percentile(99.9),
		P9999:   h.Percentile(99.99),
		Max:     h.Max(),
	}
}

// summary returns what a window keeps.
func (h *Histogram) summary() export.Summary {
	return export.Summary{
		Count: h.Count(), P50: h.Percentile(50), P90: h.Percentile(90), P99: h.Percentile(99), P999: h.Percentile(99.9), Max: h.Max(),
	}
}

// full is Latency with the whole distribution.
func (h *Histogram) full() (l Latency) {
	l = h.Latency()
	if l.Count == 0 {
		return l
	}
	if text, err := export.Encode(h.h); err == nil { // it writes to memory
		l.HDR = text
	}
	return l
}
