package export_test

import (
	"bufio"
	"encoding/csv"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load/export"
)

func histogram(t testing.TB, values ...int64) *hdr.Histogram {
	t.Helper()
	h := hdr.New(1, 1<<40, 3)
	for _, v := range values {
		require.NoError(t, h.RecordValue(v))
	}
	return h
}

// point is what the public plotter makes of a line: the value at 1/(1-percentile).
type point struct{ x, y float64 }

// plotted reads lines as the public plotter does: trimmed and split at blanks, with four columns, not a comment, and numbers in
// the first and the last.
func plotted(text string) (points []point) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		cells := strings.Fields(line)
		if strings.Contains(line, "\t") || len(cells) != 4 || line[0] == '#' {
			continue
		}
		y, err1 := strconv.ParseFloat(cells[0], 64)
		x, err2 := strconv.ParseFloat(cells[3], 64)
		if errors.Join(err1, err2) == nil {
			points = append(points, point{x, y})
		}
	}
	return points
}

func TestHGRM_Golden(t *testing.T) {
	h := histogram(t)
	for i := range int64(100) {
		require.NoError(t, h.RecordValue((i+1)*10_000))
	}
	var b strings.Builder
	require.NoError(t, export.HGRM(&b, h, time.Microsecond))
	assert.Equal(t, `       Value     Percentile TotalCount 1/(1-Percentile)

      10.007 0.000000000000          1           1.00
     100.031 0.100000000000         10           1.11
     200.063 0.200000000000         20           1.25
     300.031 0.300000000000         30           1.43
     400.127 0.400000000000         40           1.67
     500.223 0.500000000000         50           2.00
     550.399 0.550000000000         55           2.22
     600.063 0.600000000000         60           2.50
     650.239 0.650000000000         65           2.86
     700.415 0.700000000000         70           3.33
     750.079 0.750000000000         75           4.00
     780.287 0.775000000000         78           4.44
     800.255 0.800000000000         80           5.00
     830.463 0.825000000000         83           5.71
     850.431 0.850000000000         85           6.67
     880.127 0.875000000000         88           8.00
     890.367 0.887500000000         89           8.89
     900.095 0.900000000000         90          10.00
     920.063 0.912500000000         92          11.43
     930.303 0.925000000000         93          13.33
     940.031 0.937500000000         94          16.00
     950.271 0.943750000000         95          17.78
     950.271 0.950000000000         95          20.00
     960.511 0.956250000000         96          22.86
     970.239 0.962500000000         97          26.67
     970.239 0.968750000000         97          32.00
     980.479 0.971875000000         98          35.56
     980.479 0.975000000000         98          40.00
     980.479 0.978125000000         98          45.71
     990.207 0.981250000000         99          53.33
     990.207 0.984375000000         99          64.00
     990.207 0.985937500000         99          71.11
     990.207 0.987500000000         99          80.00
     990.207 0.989062500000         99          91.43
    1000.447 0.990625000000        100         106.67
    1000.447 1.000000000000        100
#[Mean    =      505.011, StdDeviation   =      288.666]
#[Max     =     1000.447, Total count    =          100]
#[Buckets =           31, SubBuckets     =         2048]
`, b.String())
	points := plotted(b.String())
	assert.Len(t, points, 35)
	assert.Equal(t, point{1, 10.007}, points[0])
	assert.Equal(t, point{106.67, 1000.447}, points[34])
}

func TestHGRM_Empty(t *testing.T) {
	var b strings.Builder
	require.NoError(t, export.HGRM(&b, histogram(t), 0))
	assert.Equal(t, `       Value     Percentile TotalCount 1/(1-Percentile)

#[Mean    =        0.000, StdDeviation   =        0.000]
#[Max     =        0.000, Total count    =            0]
#[Buckets =           31, SubBuckets     =         2048]
`, b.String())
}

// TestHGRM_IsTheDistribution compares each row with a sorted list of all values.
func TestHGRM_IsTheDistribution(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var values []float64
	h := histogram(t)
	for range 100_000 {
		v := int64(1000 * math.Exp(2*r.NormFloat64()))
		values = append(values, float64(v))
		require.NoError(t, h.RecordValue(v))
	}
	var b strings.Builder
	require.NoError(t, export.HGRM(&b, h, time.Nanosecond))
	points := plotted(b.String())
	assert.Greater(t, len(points), 60)
	for i, p := range points {
		share := 1 - 1/p.x
		below, atMost := 0.0, 0.0
		for _, v := range values {
			if v <= p.y*1.001 {
				atMost++
			}
			if v < p.y*0.999 {
				below++
			}
		}
		n := float64(len(values))
		// 1/(1-p) has two decimals.
		slack := 0.005/(p.x*p.x) + 1/n
		assert.LessOrEqual(t, below/n, share+slack, "row %d: %v", i, p)
		assert.GreaterOrEqual(t, atMost/n, share-slack, "row %d: %v", i, p)
		assert.True(t, i == 0 || p.x > points[i-1].x && p.y >= points[i-1].y)
	}
}

func TestEncode(t *testing.T) {
	h := histogram(t, 0, 1, 500, 500, 1<<40)
	text, err := export.Encode(h)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(text, "HISTF"), "as every compressed histogram of version 2 begins")
	back, err := export.Decode(text)
	require.NoError(t, err)
	assert.True(t, h.Equals(back))
	for _, bad := range []string{"", "x", "HISTFAAAA", text[:len(text)/2]} {
		_, err := export.Decode(bad)
		assert.ErrorIs(t, err, export.ErrHistogram, bad)
	}
}

func TestLog(t *testing.T) {
	var b strings.Builder
	start := time.UnixMilli(1_700_000_000_250)
	l, err := export.NewLog(&b, start, "leatload, scenario mixed", "two\nlines")
	require.NoError(t, err)
	first, second := histogram(t, 100, 200, 3_000_000), histogram(t, 7)
	require.NoError(t, l.Interval("e2e", 0, time.Second, first))
	require.NoError(t, l.Interval("e2e", time.Second, 1900*time.Millisecond, second))
	require.NoError(t, l.Interval("", time.Second, 2*time.Second, histogram(t)))

	lines := strings.Split(b.String(), "\n")
	assert.Equal(t, []string{
		"#[leatload, scenario mixed]",
		"#[two lines]",
		"#[Histogram log format version 1.3]",
		"#[StartTime: 1700000000.250 (seconds since epoch), 2023-11-14T22:13:20Z]",
		`"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"`,
	}, lines[:5])
	assert.Regexp(t, `^Tag=e2e,0.000,1.000,3.000,HISTF[A-Za-z0-9+/=]+$`, lines[5])
	assert.Regexp(t, `^Tag=e2e,1.000,0.900,0.000,HISTF`, lines[6])
	assert.Regexp(t, `^1.000,1.000,0.000,HISTF`, lines[7])

	r := hdr.NewHistogramLogReader(strings.NewReader(b.String()))
	h, err := r.NextIntervalHistogram()
	require.NoError(t, err)
	assert.True(t, first.Equals(h))
	assert.Equal(t, "e2e", h.Tag())
	assert.Equal(t, start.UnixMilli(), h.StartTimeMs())
	assert.Equal(t, start.Add(time.Second).UnixMilli(), h.EndTimeMs())
	h, err = r.NextIntervalHistogram()
	require.NoError(t, err)
	assert.True(t, second.Equals(h))
	assert.Equal(t, start.Add(1900*time.Millisecond).UnixMilli(), h.EndTimeMs())
	h, err = r.NextIntervalHistogram()
	require.NoError(t, err)
	assert.Zero(t, h.TotalCount())

	for _, tag := range []string{"a,b", "a b", "a\nb"} {
		assert.Error(t, l.Interval(tag, 0, 1, first))
	}
}

func TestCSV(t *testing.T) {
	windows := []export.Window{
		{ToS: 1, Warmup: true, Sent: 10, PublishMsgsPerS: 10.25},
		{
			FromS: 1, ToS: 1.5, Sent: 3, PublishMsgsPerS: 6, RateMsgsPerS: 1e7, Lag: 4,
			E2E: export.Summary{Count: 1, P50: 2, P90: 3, P99: 4, P999: 5, Max: 6}, Publish: export.Summary{Count: 1, P50: 7, P99: 8, Max: 9},
			CPUNsPerMsg: 100.1239, Cores: 1.5, GCs: 2, GCPauseNs: 30_000, BlockedNs: 5, Dropped: 1, HeapBytes: 77,
		},
	}
	var b strings.Builder
	require.NoError(t, export.CSV(&b, windows))
	assert.Equal(t, strings.Join([]string{
		"from_s,to_s,warmup,sent,publish_msgs_per_s,rate_msgs_per_s,lag,e2e_count,e2e_p50_ns,e2e_p90_ns,e2e_p99_ns,e2e_p999_ns," +
			"e2e_max_ns,publish_count,publish_p50_ns,publish_p99_ns,publish_max_ns,delay_count,delay_p50_ns,delay_p99_ns,delay_max_ns," +
			"cpu_ns_per_msg,cores,gcs,gc_pause_ns,blocked_ns,dropped,heap_bytes",
		"0,1,1,10,10.25,0,0,0,,,,,,0,,,,0,,,,0,0,0,0,0,0,0",
		"1,1.5,0,3,6,10000000,4,1,2,3,4,5,6,1,7,8,9,0,,,,100.124,1.5,2,30000,5,1,77",
		"",
	}, "\n"), b.String())
	rows, err := csv.NewReader(bufio.NewReader(strings.NewReader(b.String()))).ReadAll()
	require.NoError(t, err)
	assert.Len(t, rows, 3)
	b.Reset()
	require.NoError(t, export.CSV(&b, nil))
	assert.Equal(t, 1, strings.Count(b.String(), "\n"))
}

// full refuses everything.
type full struct{}

var errFull = errors.New("disk full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriters_TellErrors(t *testing.T) {
	h := histogram(t, 1)
	assert.ErrorIs(t, export.HGRM(full{}, h, 0), errFull)
	l, err := export.NewLog(full{}, time.Now())
	assert.ErrorIs(t, err, errFull)
	assert.ErrorIs(t, l.Interval("", 0, 1, h), errFull)
	assert.ErrorIs(t, export.CSV(full{}, nil), errFull)
}
