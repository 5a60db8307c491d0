package stream_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load/stream"
)

func sizes(t testing.TB, text string) stream.Sizes {
	t.Helper()
	s, err := stream.ParseSizes(text, 24)
	require.NoError(t, err)
	return s
}

func keys(t testing.TB, text string) stream.Keys {
	t.Helper()
	k, err := stream.ParseKeys(text)
	require.NoError(t, err)
	assert.Equal(t, text, k.String())
	return k
}

func file(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// fits compares counts with exact probabilities: Pearson's chi-square, rare ones put together, at about 4.5 standard deviations.
func fits(t *testing.T, counts []int, p []float64) {
	t.Helper()
	total := 0
	for _, n := range counts {
		total += n
	}
	var chi, restP float64
	var restN, cells int
	for i, n := range counts {
		if want := p[i] * float64(total); want >= 10 {
			chi += (float64(n) - want) * (float64(n) - want) / want
			cells++
		} else {
			restP, restN = restP+p[i], restN+n
		}
	}
	if want := restP * float64(total); want >= 10 {
		chi += (float64(restN) - want) * (float64(restN) - want) / want
		cells++
	} else {
		assert.Less(t, restN, 40, "what should hardly come comes")
	}
	free := float64(max(cells-1, 1))
	assert.Less(t, chi, free+4.5*math.Sqrt(2*free)+10, "%d cells", cells)
}

func TestKeys_ZipfHasExactProbabilities(t *testing.T) {
	for _, s := range []float64{1e-6, 0.1, 0.5, 0.99, 0.999999999, 1, 1.000000001, 1.2, 2, 3.5, 20, 100} {
		for _, n := range []int{1, 2, 3, 10, 1000} {
			k, err := stream.ParseKeys(fmt.Sprintf("zipf:%v:%d", s, n))
			require.NoError(t, err)
			x := k.Stream(stream.Part{Seed: uint64(n)})
			counts := make([]int, n)
			for range 100_000 {
				counts[x.Next()]++
			}
			p, sum := make([]float64, n), 0.0
			for i := range p {
				p[i] = math.Pow(float64(i+1), -s)
				sum += p[i]
			}
			for i := range p {
				p[i] /= sum
			}
			t.Run(fmt.Sprint(s, " ", n), func(t *testing.T) { fits(t, counts, p) })
		}
	}
}

func TestKeys_ZipfOfMany(t *testing.T) {
	const n = 1 << 30
	x := keys(t, fmt.Sprintf("zipf:0.5:%d", n)).Stream(stream.Part{Seed: 1})
	below, draws := 0, 100_000
	for range draws {
		v := x.Next()
		require.True(t, v >= 0 && v < n)
		if v < n/4 {
			below++
		}
	}
	assert.InDelta(t, 0.5, float64(below)/float64(draws), 0.01, "the sum of 1/sqrt up to a quarter is half of all")
}

func TestKeys_UniformAndHot(t *testing.T) {
	for text, p := range map[string]func(i int) float64{
		"uniform:1":    func(int) float64 { return 1 },
		"uniform:100":  func(int) float64 { return 0.01 },
		"hot:0.9:2:10": func(i int) float64 { return map[bool]float64{true: 0.45, false: 0.0125}[i < 2] },
		"hot:0:1:2":    func(i int) float64 { return float64(i) },
		"hot:1:1:2":    func(i int) float64 { return float64(1 - i) },
	} {
		k := keys(t, text)
		x, counts, exact := k.Stream(stream.Part{Seed: 5}), make([]int, k.N()), make([]float64, k.N())
		for range 100_000 {
			counts[x.Next()]++
		}
		for i := range exact {
			exact[i] = p(i)
		}
		t.Run(text, func(t *testing.T) { fits(t, counts, exact) })
		assert.Equal(t, "a key0", string(k.Append([]byte("a "), 0)))
	}
}

func TestKeys_NoneAndFile(t *testing.T) {
	k := keys(t, "none")
	assert.True(t, k.None())
	assert.Equal(t, -1, k.Stream(stream.Part{}).Next())
	assert.Empty(t, k.Append(nil, -1))
	assert.Equal(t, stream.Keys{}, k)

	k = keys(t, "file:"+file(t, "a\nb b\n\na\n"))
	assert.Equal(t, 3, k.N())
	var got []string
	x := k.Stream(stream.Part{Producer: 1, Of: 2})
	for range 4 {
		got = append(got, string(k.Append(nil, x.Next())))
	}
	assert.Equal(t, []string{"b b", "a", "a", "b b"}, got)
}

func TestSizes_Fixed(t *testing.T) {
	s := sizes(t, "64")
	assert.Equal(t, "64", s.String())
	assert.Equal(t, 64, s.Stream(stream.Part{}).Next())
	assert.Equal(t, []int{64, 64, 64}, []int{s.Least(), s.Most(), int(s.Mean())})
}

func TestSizes_UniformAndBimodal(t *testing.T) {
	s := sizes(t, "uniform:100-109")
	assert.Equal(t, "uniform:100-109", s.String())
	counts, even, x := make([]int, 10), slices.Repeat([]float64{0.1}, 10), s.Stream(stream.Part{Seed: 3})
	for range 100_000 {
		counts[x.Next()-100]++
	}
	fits(t, counts, even)
	assert.Equal(t, 104.5, s.Mean())

	s = sizes(t, "bimodal:64:4096:0.1")
	assert.Equal(t, "bimodal:64:4096:0.1", s.String())
	counts, x = make([]int, 2), s.Stream(stream.Part{Seed: 3})
	for range 100_000 {
		counts[map[int]int{64: 0, 4096: 1}[x.Next()]]++
	}
	fits(t, counts, []float64{0.9, 0.1})
	assert.InDelta(t, 467.2, s.Mean(), 1e-9)
}

func TestSizes_LogNormal(t *testing.T) {
	for _, text := range []string{"lognormal:1000:0.5", "lognormal:64:1.2", "lognormal:64:1.2:4096", "lognormal:64:0", "lognormal:64:10"} {
		s := sizes(t, text)
		again := sizes(t, s.String())
		assert.Equal(t, s.String(), again.String())
		x := s.Stream(stream.Part{Seed: 1})
		const n = 100_000
		var sum, square float64
		var list []int
		for range n {
			v := x.Next()
			if v < s.Least() || v > s.Most() {
				require.Fail(t, "out of range", "%s: %d", text, v)
			}
			sum += float64(v)
			square += float64(v) * float64(v)
			list = append(list, v)
		}
		slices.Sort(list)
		mean := sum / n
		deviation := math.Sqrt(max(square/n-mean*mean, 0) / n)
		assert.InDelta(t, s.Mean(), mean, 5*deviation+0.5, text)
		median := map[string]float64{"lognormal:1000:0.5": 1000}[text]
		if median == 0 {
			median = 64
		}
		if text != "lognormal:64:10" {
			assert.InEpsilon(t, median, list[n/2], 0.03, text)
		}
		if text == "lognormal:1000:0.5" {
			assert.InEpsilon(t, 1000*math.Exp(0.5), list[n/10000*8413], 0.03, "one sigma above")
		}
	}
}

func TestSizes_File(t *testing.T) {
	path := file(t, "64\n100 \n\n30\n")
	s := sizes(t, "file:"+path)
	assert.Equal(t, "file:"+path, s.String())
	assert.Equal(t, []int{30, 100}, []int{s.Least(), s.Most()})
	assert.InDelta(t, 194.0/3, s.Mean(), 1e-9)
	x, y := s.Stream(stream.Part{Of: 2}), s.Stream(stream.Part{Producer: 1, Of: 2})
	assert.Equal(t, []int{64, 100, 30, 64}, []int{x.Next(), x.Next(), x.Next(), x.Next()})
	assert.Equal(t, 100, y.Next())

	for content, wrong := range map[string]string{
		"":           "is empty",
		"\n\n":       "is empty",
		"64\nlarge":  `line 2: size is "large"`,
		"64\n\n12\n": `line 3: size is "12": must be a whole number from 24`,
	} {
		_, err := stream.ParseSizes("file:"+file(t, content), 24)
		require.ErrorIs(t, err, stream.ErrForm)
		assert.ErrorContains(t, err, wrong)
	}
	_, err := stream.ParseSizes("file:"+filepath.Join(t.TempDir(), "none"), 24)
	assert.ErrorContains(t, err, "no such file")
}

func TestSizesAndKeys_Refuse(t *testing.T) {
	for _, text := range []string{
		"", "x", "-1", "23", "64:1", "1e3", "uniform", "uniform:64", "uniform:20-64", "uniform:64-63", "uniform:1-2-3", "lognormal:64",
		"lognormal:0:1", "lognormal:64:-1", "lognormal:64:11", "lognormal:64:1:63", "bimodal:64:100", "bimodal:64:100:1.1",
		"bimodal:100:64:0.5", "2000000000", "file:",
	} {
		_, err := stream.ParseSizes(text, 24)
		require.ErrorIs(t, err, stream.ErrForm, text)
		assert.ErrorContains(t, err, "must be one of a number (64), uniform:LEAST-MOST")
		assert.NotContains(t, err.Error(), "%!")
	}
	for _, text := range []string{
		"", "x", "none:1", "uniform", "uniform:0", "uniform:1:2", "zipf", "zipf:1", "zipf:0:10", "zipf:-1:10", "zipf:nan:10", "zipf:1:0",
		"zipf:101:10", "hot:0.5:1", "hot:2:1:10", "hot:0.5:0:10", "hot:0.5:10:10", "hot:0.5:1:1", "file:",
	} {
		_, err := stream.ParseKeys(text)
		require.ErrorIs(t, err, stream.ErrForm, text)
		assert.ErrorContains(t, err, "must be one of none, uniform:N")
		assert.NotContains(t, err.Error(), "%!")
	}
}

// TestFiles_InOurWords: no error about a file is that of a package.
func TestFiles_InOurWords(t *testing.T) {
	long := file(t, "64\n"+strings.Repeat("1", 1<<16))
	for path, want := range map[string]string{"": "PATH is empty", long: long + ", line 2: more than 64 KiB: must be a line for each"} {
		_, err1 := stream.ParseSizes("file:"+path, 24)
		_, err2 := stream.ParseKeys("file:" + path)
		for _, err := range []error{err1, err2} {
			assert.ErrorContains(t, err, `"file:`+path+`": `+want+"; must be one of")
		}
	}
}

func TestDraws_SameSeedSameStream(t *testing.T) {
	p := stream.Part{Seed: 2, Producer: 1, Of: 2}
	for _, text := range []string{"uniform:24-100000", "lognormal:64:2", "bimodal:24:25:0.5"} {
		s := sizes(t, text)
		x, y, z := s.Stream(p), s.Stream(p), s.Stream(stream.Part{Seed: 2, Of: 2})
		differ := false
		for range 100 {
			v := x.Next()
			require.Equal(t, v, y.Next())
			differ = differ || v != z.Next()
		}
		assert.True(t, differ)
	}
	k := keys(t, "zipf:0.99:1000")
	x, y := k.Stream(p), k.Stream(p)
	for range 100 {
		require.Equal(t, x.Next(), y.Next())
	}
}

func TestNext_AllocatesNothing(t *testing.T) {
	check := func(name string, f func()) { assert.Zero(t, testing.AllocsPerRun(1000, f), name) }
	for _, text := range []string{"constant", "poisson", "burst:1ms/1ms", "poisson+ramp:1-2:10:1us"} {
		x := arrival(t, text).Times(stream.Part{}, 1e6)
		check(text, func() { x.Next() })
		check(text, func() { x.Before(x.Peek() + 1) })
	}
	for _, text := range []string{"64", "uniform:64-128", "lognormal:64:1", "bimodal:64:128:0.5", "file:" + file(t, "64\n")} {
		x := sizes(t, text).Stream(stream.Part{})
		check(text, func() { x.Next() })
	}
	for _, text := range []string{"none", "uniform:10", "zipf:0.99:1000", "hot:0.5:1:10", "file:" + file(t, "a\n")} {
		k := keys(t, text)
		x, buffer := k.Stream(stream.Part{}), make([]byte, 0, 64)
		check(text, func() { buffer = k.Append(buffer[:0], x.Next()) })
	}
}
