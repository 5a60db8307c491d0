package engine_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// spread publishes n records made by make and returns how many went to each partition.
func spread(t *testing.T, topic *engine.Topic, n int, make func(i int) engine.Record) []int64 {
	t.Helper()
	for i := range n {
		_, err := topic.Publish(background, make(i))
		require.NoError(t, err)
	}
	var counts []int64
	for i := range topic.Partitions() {
		counts = append(counts, part(t, topic, i).Next())
	}
	return counts
}

// TestBUG077: keys go where Kafka's default partitioner puts them. The vectors are those of Kafka's own test
// (UtilsTest.testMurmur2), with the partition that follows from the hash: (hash & 0x7fffffff) % 100.
func TestBUG077_ByKeyIsKafkas(t *testing.T) {
	topic := newTopic(t, engine.TopicConfig{Partitions: 100})
	for key, hash := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		at, err := topic.Publish(background, engine.Record{Key: []byte(key)})
		require.NoError(t, err)
		require.EqualValues(t, uint32(hash)&0x7fffffff%100, at.Partition, key)
	}
}

// TestBUG070: records without a key go round, and an empty key is a key like any other.
func TestBUG070_NilKeysGoRound(t *testing.T) {
	topic := newTopic(t, engine.TopicConfig{Partitions: 8})
	counts := spread(t, topic, 10_000, func(int) engine.Record { return value("x") })
	for _, n := range counts {
		require.EqualValues(t, 1250, n)
	}
	topic = newTopic(t, engine.TopicConfig{Partitions: 8})
	counts = spread(t, topic, 100, func(int) engine.Record { return engine.Record{Key: []byte{}} })
	require.Contains(t, counts, int64(100))
}

func TestPartitioners(t *testing.T) {
	topic := newTopic(t, engine.TopicConfig{Partitions: 7, Partitioner: engine.RoundRobin()})
	for _, n := range spread(t, topic, 700, func(i int) engine.Record { return engine.Record{Key: []byte("same")} }) {
		require.EqualValues(t, 100, n)
	}
	topic = newTopic(t, engine.TopicConfig{Partitions: 3, Partitioner: engine.Explicit()})
	require.Equal(t, []int64{34, 33, 33}, spread(t, topic, 100, func(i int) engine.Record { return engine.Record{Partition: int32(i % 3)} }))
	topic = newTopic(t, engine.TopicConfig{Partitions: 2, Partitioner: engine.PartitionerFunc(func(r *engine.Record, n int) int {
		require.Equal(t, 2, n)
		return len(r.Value) % n
	})})
	require.Equal(t, []int64{1, 3}, spread(t, topic, 4, func(i int) engine.Record { return value([]string{"a", "bb", "c", "ddd"}[i]) }))
}

// A partitioner may be wrong, panic, and end its goroutine; it costs that publish and nothing else. It may also call the
// engine: no lock is held.
func TestBUG103_BadPartitioners(t *testing.T) {
	watchdog(t)
	var topic *engine.Topic
	choose := func(r *engine.Record, n int) int {
		switch string(r.Value) {
		case "panic":
			panic("no")
		case "goexit":
			runtime.Goexit()
		case "low":
			return -1
		case "high":
			return n
		case "engine":
			_ = topic.Stats()
			_, _ = topic.Partition(0)
			_ = topic.TryPublish(value("inside"))
			_ = topic.Flush(background)
		}
		r.Value = []byte("changed") // its copy
		return 0
	}
	topic = newTopic(t, engine.TopicConfig{Partitions: 2, Partitioner: engine.PartitionerFunc(choose)})
	for _, way := range publishers[:5] {
		require.ErrorIs(t, way.publish(background, topic, value("panic")), engine.ErrPartitioner, way.name)
		require.ErrorIs(t, way.publish(background, topic, value("low")), engine.ErrUnknownPartition, way.name)
		require.ErrorIs(t, way.publish(background, topic, value("high")), engine.ErrUnknownPartition, way.name)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = way.publish(background, topic, value("goexit"))
		}()
		<-ended
		require.NoError(t, way.publish(background, topic, value("engine")), way.name)
	}
	require.NoError(t, topic.Flush(background))
	require.EqualValues(t, 10, part(t, topic, 0).Next())
	for _, r := range part(t, topic, 0).Records(0) {
		require.Contains(t, []string{"engine", "inside"}, string(r.Value))
	}

	topic = newTopic(t, engine.TopicConfig{Partitioner: engine.PartitionerFunc(nil)})
	_, err := topic.Publish(background, value("x"))
	require.ErrorIs(t, err, engine.ErrPartitioner)
}

// TestBUG103: one partitioner of each kind under many publishers at once.
func TestBUG103_SharedByPublishers(t *testing.T) {
	watchdog(t)
	n := rounds(200)
	for name, p := range map[string]engine.Partitioner{"ByKey": engine.ByKey(), "RoundRobin": engine.RoundRobin(), "Explicit": engine.Explicit()} {
		t.Run(name, func(t *testing.T) {
			e := open(t, engine.Config{})
			a := create(t, e, "a", engine.TopicConfig{Partitions: 4, Partitioner: p})
			b := create(t, e, "b", engine.TopicConfig{Partitions: 4, Partitioner: p})
			want := map[string]int{}
			for i := range 10 {
				at, err := a.Publish(background, engine.Record{Key: fmt.Append(nil, i)})
				require.NoError(t, err)
				want[fmt.Sprint(i)] = at.Partition
			}
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					for i := range n {
						for _, topic := range []*engine.Topic{a, b} {
							key := fmt.Append(nil, i%10)
							at, err := topic.Publish(background, engine.Record{Key: key})
							if err != nil || name == "ByKey" && at.Partition != want[string(key)] {
								t.Errorf("key %s: %v, %v", key, at, err)
							}
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// Records without a key spread evenly over any number of partitions, whoever publishes them and however they are published;
// and a partition that is full under Reject refuses its share and no more.
func TestBUG076_EvenSpread(t *testing.T) {
	watchdog(t)
	n := rounds(100_000)
	for name, partitioner := range map[string]engine.Partitioner{"by key": engine.ByKey(), "round robin": engine.RoundRobin()} {
		for _, partitions := range []int{1, 2, 7, 64} {
			topic := newTopic(t, engine.TopicConfig{Partitions: partitions, Partitioner: partitioner})
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for i := range n / 4 {
						if i%2 == 0 {
							_ = topic.PublishAsync(background, engine.Record{Value: []byte("x")}, nil)
						} else {
							_ = topic.PublishBatch(background, []engine.Record{{Value: []byte("x")}})
						}
					}
				})
			}
			wg.Wait()
			require.NoError(t, topic.Flush(background))
			for i := range partitions {
				mean := float64(n/4*4) / float64(partitions)
				require.InDelta(t, mean, float64(part(t, topic, i).Next()), 0.05*mean+1, "%s, partition %d of %d", name, i, partitions)
			}
		}
	}

	topic := newTopic(t, engine.TopicConfig{Partitions: 2, Partitioner: engine.RoundRobin(), OnFull: engine.Reject, Retention: engine.Retention{MaxRecords: 4}})
	newReader(t, part(t, topic, 0), engine.ReaderConfig{Gating: true}) // does not read
	refused := 0
	for range 100 {
		if _, err := topic.Publish(background, engine.Record{}); err != nil {
			require.ErrorIs(t, err, engine.ErrFull)
			refused++
		}
	}
	require.Equal(t, 46, refused, "50 went to the partition that is full after 4")
	require.EqualValues(t, 50, part(t, topic, 1).Next())
}
