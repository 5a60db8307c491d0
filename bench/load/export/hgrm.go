package export

import (
	"fmt"
	"io"
	"math/bits"
	"strings"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// ticks is how many rows HGRM writes for each halving of the distance to 100 %: as many as HdrHistogram itself.
const ticks = 5

// HGRM writes the distribution of h, with times in units of unit: the plotter wants to be told which, and calls milliseconds its
// default. The last row, 100 %, has no fourth column, since 1/(1-1) is no number: the plotter passes over it.
func HGRM(w io.Writer, h *hdr.Histogram, unit time.Duration) error {
	if unit <= 0 {
		unit = time.Millisecond
	}
	scale := float64(unit)
	var b strings.Builder
	fmt.Fprintf(&b, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")
	if h.TotalCount() > 0 {
		for _, r := range h.CumulativeDistributionWithTicks(ticks) {
			p := r.Quantile / 100
			fmt.Fprintf(&b, "%12.3f %2.12f %10d", float64(r.ValueAt)/scale, p, r.Count)
			if p < 1 {
				fmt.Fprintf(&b, " %14.2f", 1/(1-p))
			}
			b.WriteByte('\n')
		}
	}
	buckets, subBuckets := geometry(h)
	mean, deviation, most := 0.0, 0.0, 0.0
	if h.TotalCount() > 0 {
		mean, deviation, most = h.Mean()/scale, h.StdDev()/scale, float64(h.Max())/scale
	}
	fmt.Fprintf(&b, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", mean, deviation)
	fmt.Fprintf(&b, "#[Max     = %12.3f, Total count    = %12d]\n", most, h.TotalCount())
	fmt.Fprintf(&b, "#[Buckets = %12d, SubBuckets     = %12d]\n", buckets, subBuckets)
	_, err := io.WriteString(w, b.String())
	return err
}

// geometry returns how many buckets h has, and how many parts each has, as HdrHistogram counts them: the parts are the power of two
// at or above twice ten to the number of digits, and each further bucket covers twice as much as the one before.
func geometry(h *hdr.Histogram) (buckets, subBuckets int) {
	digits := 1
	for range h.SignificantFigures() {
		digits *= 10
	}
	subBuckets = 1 << bits.Len(uint(2*digits-1))
	reach := uint64(subBuckets) << (bits.Len64(uint64(max(h.LowestTrackableValue(), 1))) - 1)
	for buckets = 1; reach <= uint64(h.HighestTrackableValue()); buckets++ {
		reach <<= 1
	}
	return buckets, subBuckets
}
