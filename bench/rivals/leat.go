package rivals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leatlog/leat/bench/rivals/arena"
	"github.com/leatlog/leat/engine"
)

// leatIn is a way in.
type leatIn struct {
	name, about string
	single      bool // one producer only
	open        func(l *leat) (leatProduce, error)
}

// leatProduce is a Produce.
type leatProduce func(ctx context.Context, f *arena.Feed) error

// leatOut is a way out.
type leatOut struct {
	name, about string
	waits       []arena.Wait
	attach      func(l *leat) error
	consume     func(l *leat, ctx context.Context, i int) error // nil: it pushes
}

const leatPrefix = "leat/"

// leats are all ways in times all ways out. Everything has its default, how much a partition keeps (64 MiB) included, but for what
// the names say, and the partitioner, since the harness says what goes where.
func leats() (all []*arena.Rival) {
	for _, in := range leatIns() {
		for _, out := range leatOuts() {
			r := &arena.Rival{
				Name:  leatPrefix + in.name + "/" + out.name,
				About: fmt.Sprintf("Leat: %s; %s.", in.about, out.about),
				Waits: out.waits,
				Warm:  time.Second, // until each partition is full and its memory is used again, as it is from then on
				Open: func(j *arena.Job) (arena.Line, error) {
					return openLeat(j, in, out)
				},
			}
			if in.single {
				r.Can = oneProducer
			}
			all = append(all, r)
		}
	}
	return all
}

// leat is one topic, or several groups on it, that makes producers wait for the slowest consumer: the default policy.
type leat struct {
	job     *arena.Job
	engine  *engine.Engine
	topic   *engine.Topic
	parts   []*engine.Partition
	produce leatProduce
	out     leatOut

	readers   []*engine.Reader   // one for each consumer
	consumers []*engine.Consumer // one for each consumer
}

func openLeat(j *arena.Job, in leatIn, out leatOut) (arena.Line, error) {
	e, err := engine.Open(engine.Config{})
	if err != nil {
		return nil, err
	}
	l := &leat{job: j, engine: e, out: out}
	if err := l.attach(in); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return l, nil
}

func (l *leat) attach(in leatIn) (err error) {
	l.topic, err = l.engine.CreateTopic("rivals", engine.TopicConfig{
		Partitions:  l.job.Topology.Partitions,
		Partitioner: engine.Explicit(),
	})
	if err != nil {
		return err
	}
	for i := range l.job.Topology.Partitions {
		p, err := l.topic.Partition(i)
		if err != nil {
			return err
		}
		l.parts = append(l.parts, p)
	}
	if err := l.out.attach(l); err != nil {
		return err
	}
	l.produce, err = in.open(l)
	return err
}

func (l *leat) Produce(ctx context.Context, _ int, f *arena.Feed) error { return l.produce(ctx, f) }

func (l *leat) Consume(ctx context.Context, i int) error {
	if l.out.consume == nil {
		return nil
	}
	err := l.out.consume(l, ctx, i)
	if err != nil && (ctx.Err() != nil || errors.Is(err, engine.ErrClosed)) {
		return nil
	}
	return err
}

func (l *leat) Close() error { return l.engine.Close() }
