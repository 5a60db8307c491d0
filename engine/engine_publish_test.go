package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// publisher is one of the ways to publish a single record to a topic and wait until it is in or has failed.
type publisher struct {
	name    string
	publish func(ctx context.Context, t *engine.Topic, r engine.Record) error
}

// publishers are all of them, Appender included where the topic has one partition.
var publishers = []publisher{
	{"Publish", func(ctx context.Context, t *engine.Topic, r engine.Record) error {
		_, err := t.Publish(ctx, r)
		return err
	}},
	{"TryPublish", func(_ context.Context, t *engine.Topic, r engine.Record) error { return t.TryPublish(r) }},
	{"PublishAsync", func(ctx context.Context, t *engine.Topic, r engine.Record) error {
		result := make(chan error, 1)
		if err := t.PublishAsync(ctx, r, func(_ engine.Published, err error) { result <- err }); err != nil {
			return err
		}
		return <-result
	}},
	{"PublishAsync without a callback", func(ctx context.Context, t *engine.Topic, r engine.Record) error {
		return t.PublishAsync(ctx, r, nil)
	}},
	{"PublishBatch", func(ctx context.Context, t *engine.Topic, r engine.Record) error {
		err := t.PublishBatch(ctx, []engine.Record{r})
		if batch := (*engine.BatchError)(nil); errors.As(err, &batch) {
			return batch.Errs[0]
		}
		return err
	}},
	{"Appender", func(ctx context.Context, t *engine.Topic, r engine.Record) error {
		p, err := t.Partition(0)
		if err != nil {
			return err
		}
		a, err := p.Appender(ctx)
		if err != nil {
			return err
		}
		_, err = a.Append(ctx, r)
		return errors.Join(err, a.Close())
	}},
}

// settled returns what became of a publish: err, or what Stats counts if nobody was told.
func settled(t *testing.T, topic *engine.Topic, err, failed error) error {
	t.Helper()
	require.NoError(t, topic.Flush(background))
	if err == nil && part(t, topic, 0).Stats().AsyncFailed > 0 {
		return failed
	}
	return err
}

func TestPublish_SaysWhere(t *testing.T) {
	topic := newTopic(t, engine.TopicConfig{Partitions: 3, Partitioner: engine.Explicit()})
	next := map[int32]int64{}
	for _, i := range []int32{2, 0, 2, 1, 2, 0} {
		at, err := topic.Publish(background, engine.Record{Partition: i})
		require.NoError(t, err)
		require.Equal(t, engine.Published{Partition: int(i), Offset: next[i]}, at)
		next[i]++
		p := part(t, topic, int(i))
		require.Equal(t, int(i), p.Index())
		require.Same(t, topic, p.Topic())
		require.Equal(t, next[i], p.Next(), "readers see it when Publish returns")
		require.Zero(t, p.First())
	}
	at, err := part(t, topic, 1).Publish(background, engine.Record{Partition: 2})
	require.NoError(t, err)
	require.Equal(t, engine.Published{Partition: 1, Offset: 1}, at, "whatever the partitioner says")
	require.Equal(t, "topic", topic.Name())
	require.Equal(t, 3, topic.Partitions())
	require.Len(t, topic.ID().String(), 32)
}

func TestPublishBatch_OverPartitions(t *testing.T) {
	topic := newTopic(t, engine.TopicConfig{Partitions: 3, Partitioner: engine.Explicit()})
	batch := make([]engine.Record, 9)
	for i := range batch {
		batch[i] = engine.Record{Partition: int32(i % 3), Value: []byte{byte(i)}}
	}
	require.NoError(t, topic.PublishBatch(background, batch))
	for i, r := range batch {
		require.EqualValues(t, i%3, r.Partition)
		require.EqualValues(t, i/3, r.Offset)
	}
	for i := range 3 {
		for off, r := range part(t, topic, i).Records(0) {
			require.Equal(t, []byte{byte(int(off)*3 + i)}, r.Value)
		}
	}
}

// Some partitions of a batch fail and others do not: the error says which. With one partition it is no different.
func TestPublishBatch_SaysWhichFailed(t *testing.T) {
	for partitions := 1; partitions <= 2; partitions++ {
		topic := newTopic(t, engine.TopicConfig{Partitions: partitions, Partitioner: engine.Explicit(), MaxRecordBytes: 3})
		batch := []engine.Record{{Value: []byte("1")}, {Partition: 5}, {Value: []byte("2")}, {Partition: -1}, {Partition: math.MaxInt32}}
		err := topic.PublishBatch(background, batch)
		var failed *engine.BatchError
		require.ErrorAs(t, err, &failed)
		require.ErrorIs(t, err, engine.ErrUnknownPartition)
		require.Len(t, failed.Unwrap(), 3)
		for i, err := range failed.Errs {
			if i == 0 || i == 2 {
				require.NoError(t, err)
				require.EqualValues(t, i/2, batch[i].Offset)
			} else {
				require.ErrorIs(t, err, engine.ErrUnknownPartition)
			}
		}
		require.Contains(t, err.Error(), "3 of 5 records")
		require.EqualValues(t, 2, part(t, topic, 0).Next())

		// All of a partition fail if one is too large.
		err = topic.PublishBatch(background, []engine.Record{{Value: []byte("1")}, {Value: []byte("long")}})
		require.ErrorAs(t, err, &failed)
		require.ErrorIs(t, failed.Errs[0], engine.ErrTooLarge)
		require.ErrorIs(t, failed.Errs[1], engine.ErrTooLarge)
		require.EqualValues(t, 2, part(t, topic, 0).Next())

		require.NoError(t, topic.PublishBatch(background, nil))
		require.NoError(t, topic.PublishBatch(background, []engine.Record{}))
	}

	// ByKey and RoundRobin need no asking.
	topic := newTopic(t, engine.TopicConfig{MaxRecordBytes: 3})
	var failed *engine.BatchError
	require.ErrorAs(t, topic.PublishBatch(background, []engine.Record{{}, {Value: []byte("long")}}), &failed)
	require.Len(t, failed.Errs, 2)
}

// Every way to publish to something that has ended says what ended it, and so does every other call.
func TestEnded_Errors(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(e *engine.Engine) error
		want error
	}{
		{"closed", (*engine.Engine).Close, engine.ErrClosed},
		{"deleted", func(e *engine.Engine) error { return e.DeleteTopic("topic") }, engine.ErrTopicDeleted},
	} {
		t.Run(c.name, func(t *testing.T) {
			watchdog(t)
			e := open(t, engine.Config{})
			topic := create(t, e, "topic", engine.TopicConfig{})
			p := part(t, topic, 0)
			for range 3 {
				_, err := topic.Publish(background, value("x"))
				require.NoError(t, err)
			}
			r, err := p.Reader(engine.ReaderConfig{Start: engine.Earliest()})
			require.NoError(t, err)
			defer r.Close()
			a, err := p.Appender(background)
			require.NoError(t, err)
			require.NoError(t, c.end(e))

			_, err = a.Append(background, value("x"))
			require.ErrorIs(t, err, c.want)
			_, err = a.AppendBatch(background, make([]engine.Record, 1))
			require.ErrorIs(t, err, c.want)
			require.ErrorIs(t, a.Flush(), c.want)
			require.NoError(t, a.Close())
			for _, way := range publishers {
				err := way.publish(background, topic, value("x"))
				require.ErrorIs(t, err, c.want, way.name)
				require.NotErrorIs(t, err, engine.ErrIndefinite, way.name)
			}
			require.NoError(t, topic.PublishBatch(background, nil))
			require.NoError(t, topic.Flush(background), "all that was accepted has its result")
			require.ErrorIs(t, p.TruncateBefore(background, 0), c.want)
			_, err = r.Next(background)
			require.ErrorIs(t, err, c.want)
			_, err = r.NextBatch(background, make([]engine.Record, 1))
			require.ErrorIs(t, err, c.want)
			_, err = p.Reader(engine.ReaderConfig{})
			require.ErrorIs(t, err, c.want)
			_, err = p.ReadAt(0, make([]engine.Record, 1))
			require.ErrorIs(t, err, c.want)
			for range p.Records(0) {
				t.Error("a record")
			}
			n := 0
			for _, err := range p.Follow(background, 0) {
				require.ErrorIs(t, err, c.want)
				n++
			}
			require.Equal(t, 1, n)
			require.Equal(t, p.Next(), p.First())
		})
	}
}

// TestBadUse is what a program may do wrong without harm.
func TestBadUse(t *testing.T) {
	e := open(t, engine.Config{})
	for _, name := range []string{"", ".", "..", "a b", "a/b", "a\x00", "\u00e4", strings.Repeat("x", 250), "*"} {
		_, err := e.CreateTopic(name, engine.TopicConfig{})
		require.ErrorIs(t, err, engine.ErrName, "%q", name)
	}
	create(t, e, strings.Repeat("x", 249), engine.TopicConfig{})
	topic := create(t, e, "topic", engine.TopicConfig{Partitions: 2})
	_, err := e.CreateTopic("topic", engine.TopicConfig{})
	require.ErrorIs(t, err, engine.ErrTopicExists)
	_, err = e.Topic("Topic")
	require.ErrorIs(t, err, engine.ErrUnknownTopic)
	require.ErrorIs(t, e.DeleteTopic("Topic"), engine.ErrUnknownTopic)
	_, err = e.Describe("Topic")
	require.ErrorIs(t, err, engine.ErrUnknownTopic)
	for _, i := range []int{-1, 2, math.MaxInt, math.MinInt} {
		_, err = topic.Partition(i)
		require.ErrorIs(t, err, engine.ErrUnknownPartition)
	}

	p := part(t, topic, 0)
	for range 3 {
		_, err = p.Publish(background, value("x"))
		require.NoError(t, err)
	}
	var out *engine.OffsetError
	for _, off := range []int64{-1, 4, math.MaxInt64, math.MinInt64} {
		want := engine.OffsetError{Asked: off, Next: 3}
		_, err = p.ReadAt(off, make([]engine.Record, 1))
		require.ErrorAs(t, err, &out)
		require.Equal(t, want, *out)
		require.ErrorAs(t, p.TruncateBefore(background, off), &out)
		require.Equal(t, want, *out)
		_, err = p.Reader(engine.ReaderConfig{Start: engine.At(off)})
		require.ErrorAs(t, err, &out)
		require.Equal(t, want, *out)
		for _, err := range p.Follow(background, off) {
			require.ErrorAs(t, err, &out)
			require.Equal(t, want, *out)
		}
	}
	_, err = p.Reader(engine.ReaderConfig{Start: engine.Last(-1)})
	require.ErrorIs(t, err, engine.ErrConfig)
	n, err := p.ReadAt(3, make([]engine.Record, 1))
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = p.ReadAt(0, nil)
	require.NoError(t, err)
	require.Zero(t, n)
}

// The error types say what their texts say.
func TestErrors_Texts(t *testing.T) {
	require.EqualError(t, &engine.GapError{Partition: 2, From: 3, To: 10},
		"leat: partition 2: 7 records from offset 3 on were dropped before they were read")
	require.EqualValues(t, 7, (&engine.GapError{From: 3, To: 10}).Lost())
	err := &engine.BatchError{Errs: []error{nil, engine.ErrFull, engine.ErrClosed}}
	require.EqualError(t, err, "leat: 2 of 3 records of the batch failed, the first with: leat: full")
	require.ErrorIs(t, err, engine.ErrFull)
	require.ErrorIs(t, err, engine.ErrClosed)
	require.NotErrorIs(t, err, engine.ErrTooLarge)
	require.Len(t, err.Unwrap(), 2)
}

// TestPublish_OnFull: what each policy does when a gating reader has not read on.
func TestPublish_OnFull(t *testing.T) {
	config := func(policy engine.OnFull) engine.TopicConfig {
		return engine.TopicConfig{Retention: engine.Retention{MaxRecords: 2}, OnFull: policy}
	}
	full := func(t *testing.T, topic *engine.Topic) *engine.Reader {
		r, err := part(t, topic, 0).Reader(engine.ReaderConfig{Name: "slow", Gating: true})
		require.NoError(t, err)
		t.Cleanup(r.Close)
		for range 2 {
			require.NoError(t, topic.TryPublish(value("x")))
		}
		return r
	}
	for _, way := range publishers {
		t.Run("Block/"+way.name, func(t *testing.T) {
			watchdog(t)
			topic := newTopic(t, config(engine.Block))
			r := full(t, topic)
			if way.name == "TryPublish" {
				require.ErrorIs(t, way.publish(background, topic, value("x")), engine.ErrFull)
				return
			}
			for _, cancelled := range []bool{true, false} {
				ctx, cancel := context.WithCancel(background)
				defer cancel()
				result := make(chan error, 1)
				go func() { result <- way.publish(ctx, topic, value("x")) }()
				if way.name == "PublishAsync without a callback" {
					require.NoError(t, <-result, "it is on its way")
				}
				await(func() bool { s := part(t, topic, 0).Stats(); return s.Full && s.HeldBy == "slow" })
				require.EqualValues(t, 2, part(t, topic, 0).Next())
				switch {
				case strings.HasPrefix(way.name, "PublishAsync"):
					// Once accepted its context has no say.
				case cancelled:
					cancel()
					require.ErrorIs(t, <-result, context.Canceled)
					require.EqualValues(t, 2, part(t, topic, 0).Next())
					continue
				}
				_, err := r.NextBatch(background, make([]engine.Record, 2))
				require.NoError(t, err)
				require.NoError(t, r.Seek(engine.Latest()))
				if way.name != "PublishAsync without a callback" {
					require.NoError(t, <-result)
				}
				require.NoError(t, topic.Flush(background))
				require.EqualValues(t, 3, part(t, topic, 0).Next())
				break
			}
		})
		t.Run("Reject/"+way.name, func(t *testing.T) {
			watchdog(t)
			topic := newTopic(t, config(engine.Reject))
			r := full(t, topic)
			err := settled(t, topic, way.publish(background, topic, value("x")), engine.ErrFull)
			require.ErrorIs(t, err, engine.ErrFull)
			require.NotErrorIs(t, err, engine.ErrIndefinite)
			for range 2 {
				_, err = r.Next(background)
				require.NoError(t, err)
			}
			require.NoError(t, r.Seek(engine.Latest()))
			require.NoError(t, way.publish(background, topic, value("x")))
			require.NoError(t, topic.Flush(background))
			require.EqualValues(t, 3, part(t, topic, 0).Next(), "what was refused never appears")
		})
		t.Run("DropOldest/"+way.name, func(t *testing.T) {
			watchdog(t)
			topic := newTopic(t, config(engine.DropOldest))
			r := full(t, topic)
			require.NoError(t, way.publish(background, topic, value("x")))
			require.NoError(t, topic.Flush(background))
			_, err := r.Next(background)
			var gap *engine.GapError
			require.ErrorAs(t, err, &gap)
			require.Equal(t, engine.GapError{From: 0, To: 1}, *gap)
		})
	}
}

// TestDeleteTopic_UnderTraffic deletes a topic while it is published to and read from in every way, and makes another of
// the same name: everybody is told, nobody waits for ever, and nothing of the one gets into the other.
func TestDeleteTopic_UnderTraffic(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	ids := map[engine.TopicID]bool{}
	for round := range rounds(100) {
		topic := create(t, e, "topic", engine.TopicConfig{Partitions: 2, Retention: engine.Retention{MaxRecords: 16}, HandoverSlots: 4})
		require.False(t, ids[topic.ID()])
		ids[topic.ID()] = true
		require.Zero(t, part(t, topic, 0).Next())
		mine := value(fmt.Sprint(round))
		var wg sync.WaitGroup
		for i, way := range publishers[:5] {
			wg.Go(func() {
				for {
					if err := way.publish(background, topic, mine); err != nil {
						if errors.Is(err, engine.ErrFull) {
							continue
						}
						if !errors.Is(err, engine.ErrTopicDeleted) {
							t.Errorf("%s: %v", way.name, err)
						}
						return
					}
				}
			})
			wg.Go(func() {
				p, _ := topic.Partition(i % 2)
				for r, err := range p.Follow(background, p.First()) {
					out := (*engine.OffsetError)(nil)
					switch {
					case errors.As(err, &out): // too slow
					case err != nil && !errors.Is(err, engine.ErrTopicDeleted):
						t.Error(err)
					case err == nil && string(r.Value) != string(mine.Value):
						t.Errorf("%q in round %d", r.Value, round)
					}
				}
			})
		}
		gating, err := part(t, topic, 0).Reader(engine.ReaderConfig{Gating: true}) // so that some are blocked
		require.NoError(t, err)
		await(func() bool { return part(t, topic, 0).Next() > 2 })
		require.NoError(t, e.DeleteTopic("topic"))
		_, err = e.Topic("topic")
		require.ErrorIs(t, err, engine.ErrUnknownTopic)
		wg.Wait()
		gating.Close()
	}
	require.Zero(t, e.Stats().MemoryUsed)
	require.Empty(t, e.Topics())
}

// TestPublish_LongestOffsets: a partition uses every offset there is, and then says that there are no more.
func TestPublish_LongestOffsets(t *testing.T) {
	for _, way := range publishers {
		t.Run(way.name, func(t *testing.T) {
			topic := newTopic(t, engine.FirstAt(engine.TopicConfig{}, math.MaxInt64-2))
			p := part(t, topic, 0)
			for range 2 {
				require.NoError(t, way.publish(background, topic, value("x")))
				require.NoError(t, topic.Flush(background))
			}
			require.EqualValues(t, int64(math.MaxInt64), p.Next())
			err := way.publish(background, topic, value("x"))
			require.ErrorIs(t, settled(t, topic, err, engine.ErrExhausted), engine.ErrExhausted)
			require.EqualValues(t, int64(math.MaxInt64), p.Next())
			rs := make([]engine.Record, 3)
			n, err := p.ReadAt(math.MaxInt64-2, rs)
			require.NoError(t, err)
			require.Equal(t, 2, n)
			require.EqualValues(t, int64(math.MaxInt64-1), rs[1].Offset)
		})
	}
}
