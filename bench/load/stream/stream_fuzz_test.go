package stream_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load/stream"
)

// FuzzParse checks that what a parser takes can be printed, read again, and drawn from within its bounds.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"constant", "poisson", "burst:10ms/90ms", "ramp:0.000001-1:10:5s", "ramp:1e-6-1e-2:10:5s", "poisson+burst:1us/1h", "64", "uniform:16-1024", "lognormal:64:1.2:4096",
		"bimodal:64:4096:0.1", "none", "uniform:1000", "zipf:0.99:1000", "hot:0.9:10:1000",
	} {
		f.Add(text, uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		if strings.HasPrefix(text, "file:") {
			return
		}
		p := stream.Part{Seed: seed, Producer: 1, Of: 2}
		if a, err := stream.ParseArrival(text); err == nil {
			again, err := stream.ParseArrival(a.String())
			require.NoError(t, err)
			assert.Equal(t, a, again)
			times, last := a.Times(p, 1e6), int64(0)
			for range 100 {
				next := times.Next()
				require.GreaterOrEqual(t, next, last)
				last = next
			}
		}
		if s, err := stream.ParseSizes(text, 8); err == nil {
			again, err := stream.ParseSizes(s.String(), 8)
			require.NoError(t, err)
			assert.Equal(t, s.String(), again.String())
			assert.True(t, float64(s.Least()) <= s.Mean()*1.000001 && s.Mean() <= float64(s.Most())*1.000001, "mean %v of %v", s.Mean(), s)
			x := s.Stream(p)
			for range 100 {
				v := x.Next()
				require.True(t, s.Least() <= v && v <= s.Most(), "%d", v)
			}
		}
		if k, err := stream.ParseKeys(text); err == nil {
			again, err := stream.ParseKeys(k.String())
			require.NoError(t, err)
			assert.Equal(t, k, again)
			x := k.Stream(p)
			for range 100 {
				v := x.Next()
				require.True(t, k.None() && v == -1 || v >= 0 && v < k.N(), "%d", v)
			}
		}
	})
}
