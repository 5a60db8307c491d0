package retention_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine/internal/retention"
)

// record is what a log keeps of one: its size, when it was appended and what its producer claims the time to be.
type record struct{ bytes, append, claimed int64 }

// log is the smallest log that retention can work on: segments of records, the last of them active.
type log struct{ segments [][]record }

func (l *log) add(r record, perSegment int) {
	if n := len(l.segments); n == 0 || len(l.segments[n-1]) >= perSegment {
		l.segments = append(l.segments, nil)
	}
	last := len(l.segments) - 1
	l.segments[last] = append(l.segments[last], r)
}

func (l *log) retained() (records, bytes int64) {
	for _, s := range l.segments {
		for _, r := range s {
			records++
			bytes += r.bytes
		}
	}
	return records, bytes
}

func (l *log) newestAppend(segment int) int64 {
	s := l.segments[segment]
	return s[len(s)-1].append
}

// enforce is the loop of the package comment.
func (l *log) enforce(limits retention.Limits, now int64) (dropped int) {
	for len(l.segments) > 0 {
		records, bytes := l.retained()
		if !limits.Expired(l.newestAppend(0), now) && !limits.Over(records, bytes) {
			break
		}
		l.segments = l.segments[1:]
		dropped++
	}
	return dropped
}

// wanted says how many of the oldest segments have to go, by looking at the whole list for the fewest that leave what is
// allowed: records that are too old only in segments that also have one that is not, and no more than the limits.
func (l *log) wanted(limits retention.Limits, now int64) int {
	for drop := 0; ; drop++ {
		rest := log{l.segments[drop:]}
		records, bytes := rest.retained()
		allowed := (limits.MaxRecords == 0 || records <= limits.MaxRecords) && (limits.MaxBytes == 0 || bytes <= limits.MaxBytes)
		if limits.MaxAge > 0 && len(rest.segments) > 0 {
			allFresh := false
			for _, r := range rest.segments[0] {
				allFresh = allFresh || now-r.append < int64(limits.MaxAge)
			}
			allowed = allowed && allFresh
		}
		if allowed {
			return drop
		}
	}
}

// TestLimits_Model appends at random, lets time pass, lowers and raises the limits, and compares each decision.
func TestLimits_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			l          log
			limits     retention.Limits
			now        = rapid.Int64Range(-1<<40, 1<<61).Draw(t, "start")
			perSegment = rapid.IntRange(1, 5).Draw(t, "records a segment")
		)
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				r := record{
					bytes:   rapid.Int64Range(0, 40).Draw(t, "bytes"),
					append:  now,
					claimed: rapid.Int64().Draw(t, "claimed time"),
				}
				records, bytes := l.retained()
				fits := limits.Fits(records, bytes, r.bytes)
				l.add(r, perSegment)
				// It fits if nothing has to go after it.
				records, bytes = l.retained()
				require.Equal(t, fits, !limits.Over(records, bytes))
			},
			"time passes": func(t *rapid.T) { now += rapid.Int64Range(0, 50).Draw(t, "by") },
			"limits change": func(t *rapid.T) {
				limits = retention.Limits{
					MaxBytes:   rapid.Int64Range(0, 200).Draw(t, "bytes"),
					MaxRecords: rapid.Int64Range(0, 20).Draw(t, "records"),
					MaxAge:     time.Duration(rapid.Int64Range(0, 100).Draw(t, "age")),
				}
			},
			"": func(t *rapid.T) {
				want := l.wanted(limits, now)
				require.Equal(t, want, l.enforce(limits, now), "%+v at %d: %v", limits, now, l.segments)
				if len(l.segments) == 0 {
					return
				}
				wait, ok := limits.NextExpiry(l.newestAppend(0), now)
				require.Equal(t, limits.MaxAge > 0, ok)
				if ok {
					require.Positive(t, wait, "what has expired is gone")
				}
			},
		})
	})
}

// TestBUG032_ClaimedTimeIsIgnored: the producer of the first segment claims to live ten years ahead, that of the second one
// counts down, and all go a minute after they came.
func TestBUG032_ClaimedTimeIsIgnored(t *testing.T) {
	limits := retention.Limits{MaxAge: time.Minute}
	const start = int64(1_700_000_000_000_000_000)
	var l log
	for i := range int64(4) {
		claimed := start + int64(10*365*24*time.Hour)
		if i >= 2 {
			claimed = start - i*int64(time.Hour)
		}
		l.add(record{bytes: 1, append: start + i*int64(time.Second), claimed: claimed}, 2)
	}
	at := func(after time.Duration) int64 { return start + int64(after) }

	assert.Zero(t, l.enforce(limits, at(time.Minute)), "its newest record came a second later")
	assert.Equal(t, 1, l.enforce(limits, at(time.Minute+time.Second)))
	assert.Zero(t, l.enforce(limits, at(time.Minute+2*time.Second)))
	assert.Equal(t, 1, l.enforce(limits, at(time.Minute+3*time.Second)))
	assert.Empty(t, l.segments)
}

// TestBUG033_ActiveSegmentExpires: a topic to which nothing more is published is empty in the end, though its last segment never
// was full.
func TestBUG033_ActiveSegmentExpires(t *testing.T) {
	limits := retention.Limits{MaxAge: time.Minute}
	var l log
	l.add(record{bytes: 1, append: 0}, 1000)
	wait, ok := limits.NextExpiry(l.newestAppend(0), 0)
	assert.True(t, ok)
	assert.Equal(t, 1, l.enforce(limits, int64(wait)))
	assert.Empty(t, l.segments)
}

// TestBUG033_TrickleExpires: one record a second into segments that never fill. The active segment always has a fresh record;
// since the caller ends it when it spans a quarter of MaxAge, the old ones go all the same, and none goes too early.
func TestBUG033_TrickleExpires(t *testing.T) {
	limits := retention.Limits{MaxAge: time.Minute}
	const quarter = int64(time.Minute / 4)
	var l log
	for now := int64(0); now < int64(time.Hour); now += int64(time.Second) {
		perSegment := 1 << 20
		if n := len(l.segments); n > 0 && now-l.segments[n-1][0].append >= quarter {
			perSegment = 1 // the next record starts a segment
		}
		l.add(record{bytes: 64, append: now}, perSegment)
		l.enforce(limits, now)

		oldest := now - l.segments[0][0].append
		require.LessOrEqual(t, oldest, int64(time.Minute)+quarter, "at %v", time.Duration(now))
		require.GreaterOrEqual(t, oldest, min(now, int64(time.Minute-time.Second)), "dropped too early, at %v", time.Duration(now))
	}
}

// TestBUG034_LoweredLimitsBiteAtOnce: what is there already has to obey limits that were lowered later.
func TestBUG034_LoweredLimitsBiteAtOnce(t *testing.T) {
	var l log
	for range 10_000 {
		l.add(record{bytes: 64}, 100)
	}
	assert.Zero(t, l.enforce(retention.Limits{MaxRecords: 10_000, MaxBytes: 640_000}, 0))
	assert.Equal(t, 50, l.enforce(retention.Limits{MaxRecords: 5_000}, 0))
	assert.Equal(t, 25, l.enforce(retention.Limits{MaxBytes: 64 * 2_500}, 0))
	assert.Equal(t, 25, l.enforce(retention.Limits{MaxRecords: 10}, 0), "a whole segment is more than the limit: none stays")
}
