package rivals

import (
	"context"
	"fmt"
	"time"

	"github.com/leatlog/leat/bench/rivals/arena"
	"github.com/leatlog/leat/engine"
)

func leatOuts() []leatOut {
	return []leatOut{
		{"reader", "a Reader for each consumer and partition, NextBatch of 64", []arena.Wait{arena.Park, arena.Yield, arena.Spin},
			attachReaders, consumeReader},
		{"values", "a Reader for each consumer and partition, NextValues of 64", []arena.Wait{arena.Park, arena.Yield, arena.Spin},
			attachReaders, consumeValues},
		{"run", "a Reader for each consumer and partition, NextRun of up to 256", []arena.Wait{arena.Park, arena.Yield, arena.Spin},
			attachReaders, consumeRuns},
		{"push", "a subscription for each copy, OnMessage", nil, attachPush, nil},
		{"push-batch", "a subscription for each copy, OnBatch", nil, attachPushBatch, nil},
		{"group", "a group for each copy with a member for each partition, OnMessage, AtLeastOnce", nil, attachGroups, nil},
		{"group-batch", "a group for each copy with a member for each partition, OnBatch, AtLeastOnce", nil, attachGroupsBatch, nil},
		{"poll", "a group for each copy with a member for each partition, Poll of 256, AtLeastOnce", nil, attachPoll, consumePoll},
	}
}

func attachReaders(l *leat) error {
	for i := range l.job.Sinks {
		r, err := l.parts[i%len(l.parts)].Reader(engine.ReaderConfig{
			Start: engine.Earliest(), Gating: true, Gap: engine.FailOnGap, Wait: l.job.Wait,
		})
		if err != nil {
			return err
		}
		l.readers = append(l.readers, r)
	}
	return nil
}

func consumeReader(l *leat, ctx context.Context, i int) error {
	r, s := l.readers[i], l.job.Sinks[i]
	window := make([]engine.Record, 64)
	for !s.Full() {
		n, err := r.NextBatch(ctx, window)
		if err != nil {
			return err
		}
		for j := range window[:n] {
			s.See(window[j].Value)
		}
	}
	return nil
}

func consumeValues(l *leat, ctx context.Context, i int) error {
	r, s := l.readers[i], l.job.Sinks[i]
	values := make([][]byte, 64)
	for !s.Full() {
		n, err := r.NextValues(ctx, values)
		if err != nil {
			return err
		}
		for _, v := range values[:n] {
			s.See(v)
		}
	}
	return nil
}

func consumeRuns(l *leat, ctx context.Context, i int) error {
	r, s := l.readers[i], l.job.Sinks[i]
	for !s.Full() {
		values, n, err := r.NextRun(ctx, 256)
		if err != nil {
			return err
		}
		for size := len(values) / n; len(values) > 0; values = values[size:] {
			s.See(values[:size:size])
		}
	}
	return nil
}

// sinks returns the sinks of one copy, by partition.
func (l *leat) sinks(copy int) []*arena.Sink {
	n := len(l.parts)
	return l.job.Sinks[copy*n : (copy+1)*n]
}

// seer is a handler that gives messages to the sinks of their partitions.
type seer []*arena.Sink

func (s seer) OnMessage(_ context.Context, m *engine.Message) error {
	s[m.Partition].See(m.Value)
	return nil
}

// batchSeer would rather have several.
type batchSeer struct{ seer }

func (s batchSeer) OnBatch(_ context.Context, ms []engine.Message) error {
	k := s.seer[ms[0].Partition]
	for i := range ms {
		k.See(ms[i].Value)
	}
	return nil
}

func attachPush(l *leat) error { return l.subscribe(func(s seer) engine.Handler { return s }) }
func attachPushBatch(l *leat) error {
	return l.subscribe(func(s seer) engine.Handler { return batchSeer{s} })
}

func (l *leat) subscribe(handler func(seer) engine.Handler) error {
	for c := range l.job.Topology.Copies {
		_, err := l.topic.Subscribe(handler(l.sinks(c)), engine.SubscribeConfig{Start: engine.Earliest(), Gap: engine.FailOnGap})
		if err != nil {
			return err
		}
	}
	return nil
}

// groups makes a group for each copy, and a member for each of its partitions.
func (l *leat) groups(join func(g *engine.Group, copy int) error) error {
	for c := range l.job.Topology.Copies {
		g, err := l.engine.CreateGroup(fmt.Sprint("copy", c), engine.GroupConfig{
			Topics: []string{l.topic.Name()}, Start: engine.Earliest(), Gap: engine.FailOnGap,
		})
		if err != nil {
			return err
		}
		for range l.parts {
			if err := join(g, c); err != nil {
				return err
			}
		}
	}
	return nil
}

func attachGroups(l *leat) error { return l.join(func(s seer) engine.Handler { return s }) }
func attachGroupsBatch(l *leat) error {
	return l.join(func(s seer) engine.Handler { return batchSeer{s} })
}

func (l *leat) join(handler func(seer) engine.Handler) error {
	var members []*engine.Member
	err := l.groups(func(g *engine.Group, c int) error {
		m, err := g.Join(handler(l.sinks(c)), engine.MemberConfig{})
		members = append(members, m)
		return err
	})
	if err != nil {
		return err
	}
	return settled(members, func() {})
}

func attachPoll(l *leat) error {
	var members []*engine.Member
	err := l.groups(func(g *engine.Group, _ int) error {
		c, err := g.Consumer(engine.MemberConfig{})
		if err == nil {
			l.consumers = append(l.consumers, c)
			members = append(members, c.Member)
		}
		return err
	})
	if err != nil {
		return err
	}
	// A consumer gives back and takes over partitions when it polls.
	return settled(members, func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for _, c := range l.consumers {
			_, _ = c.Poll(ctx, 1) // there is nothing yet: this only ends with ctx
		}
	})
}

// settled waits until every member has its partition: nothing has been published yet, so that this takes no time of any slice.
func settled(members []*engine.Member, turn func()) error {
	const patience = 10 * time.Second
	for begin := time.Now(); ; {
		missing := 0
		for _, m := range members {
			if len(m.Assignment()) != 1 {
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
		if time.Since(begin) > patience {
			return fmt.Errorf("%d of %d members do not have one partition each", missing, len(members))
		}
		turn()
		time.Sleep(100 * time.Microsecond)
	}
}

// consumePoll is one member. Since every member has its partition, consumer i gets what is for one of its copy's sinks; which
// one is the group's choice.
func consumePoll(l *leat, ctx context.Context, i int) error {
	sinks := l.sinks(i / len(l.parts))
	for ctx.Err() == nil {
		ms, err := l.consumers[i].Poll(ctx, 256)
		if err != nil {
			return err
		}
		for j := range ms {
			sinks[ms[j].Partition].See(ms[j].Value)
		}
	}
	return nil
}
