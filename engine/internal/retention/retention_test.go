package retention_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/engine/internal/retention"
)

const never = time.Duration(math.MaxInt64)

func TestLimits_ZeroBoundsNothing(t *testing.T) {
	var l retention.Limits
	assert.NoError(t, l.Check())
	for _, n := range edges {
		assert.True(t, l.Fits(n, n, n))
		assert.False(t, l.Over(n, n))
		for _, now := range edges {
			assert.False(t, l.Expired(n, now))
			_, ok := l.NextExpiry(n, now)
			assert.False(t, ok)
		}
	}
}

func TestLimits_Check(t *testing.T) {
	for _, c := range []struct {
		limits retention.Limits
		text   string
	}{
		{retention.Limits{MaxBytes: 1, MaxRecords: 1, MaxAge: 1}, ""},
		{retention.Limits{MaxBytes: math.MaxInt64, MaxRecords: math.MaxInt64, MaxAge: never}, ""},
		{retention.Limits{MaxBytes: -1}, "MaxBytes is -1: must not be negative (0 means no bound)"},
		{retention.Limits{MaxRecords: math.MinInt64}, "MaxRecords is -9223372036854775808: must not be negative (0 means no bound)"},
		{retention.Limits{MaxAge: -time.Second}, "MaxAge is -1s: must not be negative (0 means for ever)"},
	} {
		err := c.limits.Check()
		if c.text == "" {
			assert.NoError(t, err, "%+v", c.limits)
		} else {
			assert.EqualError(t, err, c.text)
		}
	}
}

func TestLimits_Fits(t *testing.T) {
	l := retention.Limits{MaxBytes: 100, MaxRecords: 3}
	assert.True(t, l.Fits(0, 0, 100))
	assert.False(t, l.Fits(0, 0, 101), "a record larger than the limit never fits")
	assert.True(t, l.Fits(2, 60, 40))
	assert.False(t, l.Fits(2, 60, 41))
	assert.False(t, l.Fits(3, 0, 0), "an empty record is a record")
	assert.True(t, l.Fits(2, 100, 0))
}

func TestLimits_Over(t *testing.T) {
	l := retention.Limits{MaxBytes: 100, MaxRecords: 3}
	assert.False(t, l.Over(3, 100), "at the limit is within it")
	assert.True(t, l.Over(4, 0))
	assert.True(t, l.Over(0, 101))
}

func TestLimits_Expired(t *testing.T) {
	l := retention.Limits{MaxAge: time.Minute}
	const at = int64(1_000_000)
	assert.False(t, l.Expired(at, at))
	assert.False(t, l.Expired(at, at+int64(time.Minute)-1))
	assert.True(t, l.Expired(at, at+int64(time.Minute)))
	assert.False(t, l.Expired(at, at-int64(time.Hour)), "an append that lies ahead is not old")
}

func TestLimits_NextExpiry(t *testing.T) {
	l := retention.Limits{MaxAge: time.Minute}
	for _, c := range []struct {
		newest, now int64
		want        time.Duration
	}{
		{0, 0, time.Minute},
		{0, 1, time.Minute - 1},
		{0, int64(time.Minute) - 1, 1},
		{0, int64(time.Minute), 0},
		{0, int64(time.Hour), 0},
		{int64(time.Hour), 0, time.Hour + time.Minute},
	} {
		wait, ok := l.NextExpiry(c.newest, c.now)
		assert.True(t, ok)
		assert.Equal(t, c.want, wait, "%+v", c)
	}
}

func TestLimits_Left(t *testing.T) {
	l := retention.Limits{MaxBytes: 100, MaxRecords: 3}
	assert.Equal(t, int64(3), l.RecordsLeft(0))
	assert.Equal(t, int64(0), l.RecordsLeft(3))
	assert.Equal(t, int64(-1), l.RecordsLeft(4))
	assert.Equal(t, int64(40), l.BytesLeft(60))
	assert.Equal(t, int64(100-math.MaxInt64), l.BytesLeft(math.MaxInt64))
	assert.Equal(t, int64(math.MaxInt64), retention.Limits{}.RecordsLeft(math.MaxInt64))
	assert.Equal(t, int64(math.MaxInt64), retention.Limits{}.BytesLeft(0))
}

// edges are the numbers at which arithmetic of 32 and 64 bits goes wrong.
var edges = []int64{
	math.MinInt64, math.MinInt64 + 1, -1 << 32, -1 << 31, -1, 0, 1,
	1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 5 << 30, 1 << 53, 1 << 62, math.MaxInt64 - 1, math.MaxInt64,
}

func large(n int64) *big.Int { return big.NewInt(n) }

// TestBUG091_NothingWraps compares with numbers that have no end, at every edge.
func TestBUG091_NothingWraps(t *testing.T) {
	sum := func(a, b int64) *big.Int { return new(big.Int).Add(large(a), large(b)) }
	for _, limit := range edges {
		if limit <= 0 {
			continue
		}
		bounds := retention.Limits{MaxBytes: limit, MaxRecords: limit}
		age := retention.Limits{MaxAge: time.Duration(limit)}
		for _, a := range edges {
			for _, b := range edges {
				if a >= 0 && b >= 0 {
					fits := sum(a, b).Cmp(large(limit)) <= 0
					assert.Equal(t, fits, retention.Limits{MaxBytes: limit}.Fits(0, a, b), "%d+%d of %d bytes", a, b, limit)
					fits = sum(a, 1).Cmp(large(limit)) <= 0
					assert.Equal(t, fits, retention.Limits{MaxRecords: limit}.Fits(a, b, b), "%d+1 of %d records", a, limit)
					assert.Equal(t, a > limit || b > limit, bounds.Over(a, b), "%d records, %d bytes of %d", a, b, limit)
				}

				expires := sum(a, limit)                        // appended at a, looked at at b
				left := new(big.Int).Sub(expires, large(b))     // how long it still has
				want := min(max(0, clamp(left)), math.MaxInt64) // as a Duration can say it
				assert.Equal(t, left.Sign() <= 0, age.Expired(a, b), "age %d, appended %d, now %d", limit, a, b)
				wait, ok := age.NextExpiry(a, b)
				assert.True(t, ok)
				assert.Equal(t, time.Duration(want), wait, "age %d, appended %d, now %d", limit, a, b)
			}
		}
	}
}

func clamp(n *big.Int) int64 {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

// TestBUG089_LargeLogs: a log of more than 4 GiB or 2^32 records is as bounded as a small one, on 32-bit platforms, too.
func TestBUG089_LargeLogs(t *testing.T) {
	l := retention.Limits{MaxBytes: 5 << 30, MaxRecords: 5 << 32}
	assert.True(t, l.Fits(1, 5<<30-64, 64))
	assert.False(t, l.Fits(1, 5<<30-64, 65))
	assert.False(t, l.Fits(1, 5<<30+1<<32, 1), "not as 1 GiB more, cut to 32 bits")
	assert.True(t, l.Fits(5<<32-1, 0, 0))
	assert.False(t, l.Fits(5<<32, 0, 0))
	assert.True(t, l.Over(0, 5<<30+1))
}

// TestBUG089_WrongBooks: should a caller's counters ever be wrong, a negative one neither blocks for ever nor lets in more
// than the limit.
func TestBUG089_WrongBooks(t *testing.T) {
	l := retention.Limits{MaxBytes: 100, MaxRecords: 3}
	for _, n := range []int64{-1, math.MinInt64} {
		assert.True(t, l.Fits(n, n, 100))
		assert.False(t, l.Fits(n, n, 101))
		assert.False(t, l.Over(n, n))
	}
}

// TestNextExpiry_IsExact: to sleep for as long as it says is enough, and a nanosecond less is not; else a timer would fire
// for nothing, and with a wait that rounds to zero, again and again.
func TestNextExpiry_IsExact(t *testing.T) {
	for _, age := range []time.Duration{1, 2, time.Second, 240 * time.Hour, never} {
		l := retention.Limits{MaxAge: age}
		for _, newest := range []int64{0, 1, 1_700_000_000_000_000_000} {
			for _, now := range []int64{newest, newest + 1, newest + int64(time.Hour)} {
				wait, _ := l.NextExpiry(newest, now)
				if int64(wait) > math.MaxInt64-now {
					continue // the clock itself ends first
				}
				assert.True(t, l.Expired(newest, now+int64(wait)), "age %v, appended %d, now %d", age, newest, now)
				assert.False(t, wait > 0 && l.Expired(newest, now+int64(wait)-1), "age %v, appended %d, now %d", age, newest, now)
			}
		}
	}
}

func TestLimits_DoNotAllocate(t *testing.T) {
	l, n := retention.Limits{MaxBytes: 1 << 30, MaxRecords: 1 << 20, MaxAge: time.Hour}, 0
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if l.Fits(1, 2, 3) && !l.Over(1, 2) && !l.Expired(0, 1) {
			n++
		}
	}))
	assert.Positive(t, n)
}
