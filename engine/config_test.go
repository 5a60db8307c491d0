package engine_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

func TestConfig_Refused(t *testing.T) {
	for field, c := range map[string]engine.Config{
		"Workers":   {Workers: -1},
		"MaxMemory": {MaxMemory: -1},
	} {
		_, err := engine.Open(c)
		require.ErrorIs(t, err, engine.ErrConfig)
		require.ErrorContains(t, err, field)
	}
	e := open(t, engine.Config{})
	for field, cs := range map[string][]engine.TopicConfig{
		"Partitions":     {{Partitions: -1}, {Partitions: 1<<16 + 1}, {Partitions: math.MaxInt}},
		"Retention":      {{Retention: engine.Retention{MaxBytes: -2}}, {Retention: engine.Retention{MaxRecords: -2}}, {Retention: engine.Retention{MaxAge: -2}}, {Retention: engine.Retention{MaxAge: math.MinInt64}}},
		"OnFull":         {{OnFull: engine.DropOldest + 1}, {OnFull: 255}},
		"MaxRecordBytes": {{MaxRecordBytes: -1}, {MaxRecordBytes: 1<<30 - 63}, {MaxRecordBytes: math.MaxInt}, {MaxRecordBytes: 1000, Retention: engine.Retention{MaxBytes: 1000}}},
		"SegmentBytes":   {{SegmentBytes: -1}, {SegmentBytes: 1<<30 + 1}},
		"SegmentRecords": {{SegmentRecords: -1}, {SegmentRecords: 3, Retention: engine.Retention{MaxRecords: 2}}},
		"HandoverSlots":  {{HandoverSlots: -1}, {HandoverSlots: 1<<20 + 1}, {HandoverSlots: math.MaxInt}},
		"MaxBytes":       {{Retention: engine.Retention{MaxBytes: 1}}, {Retention: engine.Retention{MaxBytes: 27}}},
	} {
		for _, c := range cs {
			_, err := e.CreateTopic("topic", c)
			require.ErrorIs(t, err, engine.ErrConfig, "%+v", c)
			require.ErrorContains(t, err, field)
		}
	}
	topic := create(t, e, "topic", engine.TopicConfig{})
	for field, c := range map[string]engine.ReaderConfig{
		"MaxLag": {MaxLag: -1},
		"Gap":    {Gap: engine.FailOnGap + 1},
		"Wait":   {Wait: engine.WaitSpin + 1},
	} {
		_, err := part(t, topic, 0).Reader(c)
		require.ErrorIs(t, err, engine.ErrConfig)
		require.ErrorContains(t, err, field)
	}
}

// Every limit at its ends makes a topic that takes a record.
func TestBUG091_ExtremeConfigs(t *testing.T) {
	for _, c := range []engine.TopicConfig{
		{},
		{Partitions: 1, HandoverSlots: 1, SegmentRecords: 1, SegmentBytes: 1, MaxRecordBytes: 1},
		{HandoverSlots: 3},
		{Retention: engine.Retention{MaxBytes: 28}},
		{Retention: engine.Retention{MaxBytes: math.MaxInt64, MaxRecords: math.MaxInt64, MaxAge: math.MaxInt64}},
		{Retention: engine.Retention{MaxBytes: engine.Unlimited, MaxRecords: engine.Unlimited, MaxAge: engine.Unlimited}},
		{Retention: engine.Retention{MaxRecords: 1, MaxAge: 1}},
		{Retention: engine.Retention{MaxRecords: 1}, SegmentRecords: 1, OnFull: engine.DropOldest},
		{SegmentBytes: 1 << 30, SegmentRecords: math.MaxInt, MaxRecordBytes: 1<<30 - 64, Retention: engine.Retention{MaxBytes: engine.Unlimited}},
		{MaxRecordBytes: 972, Retention: engine.Retention{MaxBytes: 1000}},
	} {
		for _, memory := range []int64{0, 1, 4 << 10, math.MaxInt64} {
			e := open(t, engine.Config{MaxMemory: memory, CloseTimeout: -1, Workers: 1})
			if memory > 0 && memory < math.MaxInt64 && c.MaxRecordBytes > 1<<20 {
				_, err := e.CreateTopic("topic", c)
				require.ErrorIs(t, err, engine.ErrConfig, "the record would not fit")
				continue
			}
			topic, err := e.CreateTopic("topic", c)
			require.NoError(t, err, "%+v with %d", c, memory)
			full := topic.Config()
			require.Positive(t, full.HandoverSlots)
			require.GreaterOrEqual(t, full.MaxRecordBytes, 0)
			for range 3 {
				_, err = topic.Publish(background, engine.Record{Value: make([]byte, min(1, full.MaxRecordBytes)), Timestamp: 1})
				require.NoError(t, err, "%+v with %d", c, memory)
			}
			require.NoError(t, e.Close())
		}
	}
}

func TestTopicConfig_Defaults(t *testing.T) {
	c := newTopic(t, engine.TopicConfig{}).Config()
	require.Equal(t, 1, c.Partitions)
	require.EqualValues(t, 64<<20, c.Retention.MaxBytes)
	require.Equal(t, 1<<20, c.MaxRecordBytes)
	require.Equal(t, 1<<20, c.SegmentBytes)
	require.Zero(t, c.SegmentRecords)
	require.Equal(t, 512, c.HandoverSlots)
	require.NotNil(t, c.Partitioner)

	c = newTopic(t, engine.TopicConfig{Retention: engine.Retention{MaxBytes: 100 << 10, MaxRecords: 100, MaxAge: time.Hour}, HandoverSlots: 9}).Config()
	require.Equal(t, 100<<10-28, c.MaxRecordBytes)
	require.Equal(t, 100<<10/8, c.SegmentBytes)
	require.Equal(t, 12, c.SegmentRecords)
	require.Equal(t, 16, c.HandoverSlots)
}

// The largest record that the configuration allows gets in, with headers and a timestamp, and one byte more is refused.
func TestTopicConfig_LargestRecord(t *testing.T) {
	for _, c := range []struct {
		memory int64
		topic  engine.TopicConfig
	}{
		{0, engine.TopicConfig{Retention: engine.Retention{MaxBytes: 1000}}},
		{10_000, engine.TopicConfig{}},
		{1, engine.TopicConfig{}},
		{0, engine.TopicConfig{MaxRecordBytes: 300, SegmentBytes: 100}},
	} {
		e := open(t, engine.Config{MaxMemory: c.memory})
		topic := create(t, e, "topic", c.topic)
		r := engine.Record{Headers: engine.MakeHeaders(engine.Header{Name: "h"}), Timestamp: 1}
		r.Value = make([]byte, topic.Config().MaxRecordBytes-r.Headers.Size())
		for range 3 {
			_, err := topic.Publish(background, r)
			require.NoError(t, err)
			if c.memory > 0 {
				p := part(t, topic, 0)
				require.NoError(t, p.TruncateBefore(background, p.Next()))
			}
		}
		r.Key = []byte{1}
		_, err := topic.Publish(background, r)
		var large *engine.TooLargeError
		require.ErrorAs(t, err, &large)
		require.EqualValues(t, topic.Config().MaxRecordBytes, large.Limit)
		require.EqualValues(t, large.Limit+1, large.Size)
	}
}
