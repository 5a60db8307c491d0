package rivals

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/leatlog/leat/bench/rivals/arena"
)

const (
	kafkaTopic = "rivals"
	kafkaBytes = 256 << 20 // kept in each partition, or the log would grow for as long as the suite runs
)

// kafkaLine is a broker in memory with a client for each producer and each consumer, as for programs of their own.
type kafkaLine struct {
	job     *arena.Job
	cluster *kfake.Cluster
	in      []*kgo.Client
	out     []*kgo.Client
	// failed is stored by a callback of the client, and loaded by producers: the first record that was refused.
	failed atomic.Pointer[error]
}

// oneGroup refuses several copies of several partitions: what is read from several partitions is read by a group here, and that has
// one copy.
func oneGroup(s arena.Spec) error {
	if s.Topology.Partitions > 1 && s.Topology.Copies > 1 {
		return errors.New("it has one group, which gets one copy of several partitions")
	}
	return nil
}

// openKafka opens one whose producers wait so long for a batch to fill.
func openKafka(linger time.Duration) opener {
	return func(j *arena.Job) (arena.Line, error) {
		l := &kafkaLine{job: j}
		if err := l.open(linger); err != nil {
			return nil, errors.Join(err, l.Close())
		}
		return l, nil
	}
}

func (l *kafkaLine) open(linger time.Duration) (err error) {
	l.cluster, err = kfake.NewCluster(
		kfake.NumBrokers(1), kfake.SeedTopics(int32(l.job.Topology.Partitions), kafkaTopic),
		kfake.BrokerConfigs(map[string]string{
			"log.retention.bytes": strconv.Itoa(kafkaBytes), "log.cleaner.backoff.ms": "1000",
			"group.initial.rebalance.delay.ms": "0",
		}),
	)
	if err != nil {
		return err
	}
	seeds := kgo.SeedBrokers(l.cluster.ListenAddrs()...)
	for range l.job.Topology.Producers {
		// The client's defaults but for compression, which has nothing to give where nothing is sent far.
		c, err := kgo.NewClient(seeds, kgo.DefaultProduceTopic(kafkaTopic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(linger))
		if err != nil {
			return err
		}
		l.in = append(l.in, c)
	}
	start := kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())
	if l.job.Topology.Partitions == 1 {
		for range l.job.Sinks {
			c, err := kgo.NewClient(seeds, kgo.ConsumeTopics(kafkaTopic), start)
			if err != nil {
				return err
			}
			l.out = append(l.out, c)
		}
		return nil
	}
	return l.join(seeds, start)
}

// join makes a group with a member for each partition, and waits until each has one.
func (l *kafkaLine) join(seeds, start kgo.Opt) error {
	owned := make([]atomic.Int32, len(l.job.Sinks))
	count := func(i int, sign int32) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
			owned[i].Add(sign * int32(len(m[kafkaTopic])))
		}
	}
	for i := range l.job.Sinks {
		c, err := kgo.NewClient(seeds, kgo.ConsumeTopics(kafkaTopic), start, kgo.ConsumerGroup("group"),
			kgo.OnPartitionsAssigned(count(i, 1)), kgo.OnPartitionsRevoked(count(i, -1)), kgo.OnPartitionsLost(count(i, -1)))
		if err != nil {
			return err
		}
		l.out = append(l.out, c)
	}
	const patience = 30 * time.Second
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		missing := 0
		for i := range owned {
			if owned[i].Load() != 1 {
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
		if time.Since(begin) > patience {
			return fmt.Errorf("%d of %d members do not have one partition each", missing, len(owned))
		}
	}
}

func (l *kafkaLine) Produce(ctx context.Context, p int, f *arena.Feed) error {
	c := l.in[p]
	promise := func(_ *kgo.Record, err error) {
		if err != nil {
			l.failed.CompareAndSwap(nil, &err)
		}
	}
	for n := f.Due(burst); n > 0; n = f.Due(burst) {
		for range n {
			r := &kgo.Record{Partition: int32(f.Partition()), Value: make([]byte, l.job.Size)} // the client's until the promise
			f.Fill(r.Value)
			c.Produce(ctx, r, promise)
		}
	}
	if err := c.Flush(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	if err := l.failed.Load(); err != nil && ctx.Err() == nil {
		return *err
	}
	return nil
}

func (l *kafkaLine) Consume(ctx context.Context, i int) error {
	c, parts := l.out[i], l.job.Topology.Partitions
	for ctx.Err() == nil {
		fetches := c.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			// With one partition each consumer sees all of it; otherwise its owner does.
			s := l.job.Sinks[i]
			if parts > 1 {
				s = l.job.Sinks[p.Partition]
			}
			for _, r := range p.Records {
				s.See(r.Value)
			}
		})
		if parts == 1 && l.job.Sinks[i].Full() {
			return nil
		}
	}
	return nil
}

func (l *kafkaLine) Close() error {
	for _, c := range l.in {
		c.Close()
	}
	for _, c := range l.out {
		c.Close()
	}
	if l.cluster != nil {
		l.cluster.Close()
	}
	return nil
}
