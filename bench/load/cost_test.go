package load_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
)

// TestMeasuring_AllocatesNothing: making, checking and recording a message, and handing a window over, take no memory; so a run of any
// length takes no more than a short one, but for the list of its windows.
func TestMeasuring_AllocatesNothing(t *testing.T) {
	check := func(name string, rounds int, f func()) { assert.Zero(t, testing.AllocsPerRun(rounds, f), name) }
	h, v := load.NewHistogram(), int64(1)
	next := func() int64 { v = v*5 + 1; return v & 0xFFFFFFFF }
	check("record", 2000, func() { h.Record(next()) })
	r, all := load.NewTestRecorder(), load.NewHistogram()
	check("record, and hand over", 20, func() {
		r.Record(next())
		r.Ask()
		r.Record(next())
		r.Collect(all)
	})
	s := load.Scenario{Producers: 1, Partitions: 1, Size: 64}
	m, l, seq := load.NewTestMessage(s, 0), load.NewTestLane(s, 0), uint64(0)
	check("make, check and record", 2000, func() {
		l.Deliver(m.Set(0, seq, 1))
		seq++
	})
	assert.Equal(t, seq, l.Measured())
}

// TestRun_MemoryStaysAsItIs: ten times as many messages take as much memory. One object, or a word, for each would be seen.
func TestRun_MemoryStaysAsItIs(t *testing.T) {
	const few, many = 20_000, 200_000
	run := func(messages int64) (allocated float64) {
		s := load.Scenario{
			Producers: 1, Partitions: 1, Subscribers: 1, Duration: time.Hour, Messages: messages, SampleEvery: 1, NoPlacement: true, NoFloor: true,
		}
		res, err := load.Run(t.Context(), load.Null{}, s)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		require.Equal(t, uint64(messages), res.Latency.E2E.Count)
		return res.BytesPerMsg * float64(messages)
	}
	short, long := run(few), run(many)
	assert.Less(t, long-short, float64(many-few)*4, "%v bytes for %d messages, %v for %d", short, few, long, many)
}

// TestWindows_AreBounded: a run of an hour or of a week has no more windows than one of some minutes.
func TestWindows_AreBounded(t *testing.T) {
	for _, d := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour} {
		s := load.Scenario{Warmup: time.Second, Duration: d}
		assert.LessOrEqual(t, int64((d+time.Second)/s.WindowLength()), int64(1200), "%v", d)
	}
}
