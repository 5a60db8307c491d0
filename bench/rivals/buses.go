package rivals

import (
	"context"
	"fmt"
	"sync"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	eventbus "github.com/asaskevich/EventBus"
	"github.com/cskr/pubsub/v2"

	"github.com/leatlog/leat/bench/rivals/arena"
)

// buses have topics; a partition is one.
func buses() []*arena.Rival {
	return []*arena.Rival{
		{
			// Pub waits while a subscriber's channel is full, so nothing is lost; all messages go through one goroutine.
			Name: "cskr-pubsub", About: "cskr/pubsub v2 of values, capacity 1024, Pub and a channel for each consumer.",
			Sizes: arena.Sizes(), Open: bySize(openPubsub[[16]byte], openPubsub[[64]byte], openPubsub[[1024]byte]),
		},
		{
			// Subscribe: the publisher calls the handlers itself, under the bus's lock. Nothing passes from one goroutine to
			// another, so this is what a call costs, not a queue.
			Name: "eventbus", About: "EventBus, Subscribe: Publish calls the handlers by reflection, under a lock.",
			Open: openEventBus(false),
		},
		{
			// Transactional, since otherwise its goroutines, one for each message and handler, have no order.
			Name: "eventbus-async", About: "EventBus, SubscribeAsync, transactional: a goroutine for each message and handler, one at a time.",
			Open: openEventBus(true),
		},
		{
			// Only a publish that waits for the acknowledgement keeps the order: otherwise each message has a goroutine of its own.
			// A message's UUID may be empty, and is here: making one costs more than some rivals as a whole.
			Name: "watermill", About: "Watermill GoChannel, output buffer 1024, Publish blocks until the subscribers ack, which keeps the order.",
			Open: openWatermill,
		},
	}
}

type pubsubLine[T value] struct {
	job *arena.Job
	bus *pubsub.PubSub[int, T]
	in  []chan T // for each consumer
}

func openPubsub[T value](j *arena.Job) (arena.Line, error) {
	l := &pubsubLine[T]{job: j, bus: pubsub.New[int, T](capacity)}
	for i := range j.Sinks {
		l.in = append(l.in, l.bus.Sub(i%j.Topology.Partitions))
	}
	return l, nil
}

func (l *pubsubLine[T]) Produce(_ context.Context, _ int, f *arena.Feed) error {
	var m T
	p := bytesOf(&m)
	for n := f.Due(burst); n > 0; n = f.Due(burst) {
		for range n {
			topic := f.Partition()
			f.Fill(p)
			l.bus.Pub(m, topic)
		}
	}
	return nil
}

func (l *pubsubLine[T]) Consume(_ context.Context, i int) error {
	return receive(l.job.Sinks[i], l.in[i])
}

func (l *pubsubLine[T]) Close() error {
	// Shutdown waits behind what is under way, which after a failure nobody takes.
	var drains sync.WaitGroup
	for _, in := range l.in {
		drains.Go(func() {
			for range in { //nolint:revive // nothing is to be done with what is left
			}
		})
	}
	l.bus.Shutdown()
	drains.Wait()
	return nil
}

type eventBus struct {
	arena.Pushes
	job    *arena.Job
	bus    eventbus.Bus
	topics []string // for each partition
	async  bool
}

func openEventBus(async bool) opener {
	return func(j *arena.Job) (arena.Line, error) {
		l := &eventBus{job: j, bus: eventbus.New(), async: async}
		for p := range j.Topology.Partitions {
			l.topics = append(l.topics, fmt.Sprint("partition", p))
		}
		for i, s := range j.Sinks {
			topic := l.topics[i%len(l.topics)]
			var err error
			if async {
				err = l.bus.SubscribeAsync(topic, s.See, true)
			} else {
				err = l.bus.Subscribe(topic, s.See)
			}
			if err != nil {
				return nil, err
			}
		}
		return l, nil
	}
}

func (l *eventBus) Produce(_ context.Context, _ int, f *arena.Feed) error {
	for n := f.Due(burst); n > 0; n = f.Due(burst) {
		for range n {
			topic := l.topics[f.Partition()]
			m := f.Next()
			if l.async {
				m = append([]byte(nil), m...)
			}
			l.bus.Publish(topic, m)
		}
	}
	return nil
}

func (l *eventBus) Close() error {
	l.bus.WaitAsync()
	return nil
}

type watermillLine struct {
	job    *arena.Job
	bus    *gochannel.GoChannel
	topics []string                  // for each partition
	in     []<-chan *message.Message // for each consumer
}

func openWatermill(j *arena.Job) (arena.Line, error) {
	l := &watermillLine{job: j, bus: gochannel.NewGoChannel(gochannel.Config{
		OutputChannelBuffer: capacity, BlockPublishUntilSubscriberAck: true,
	}, watermill.NopLogger{})}
	for p := range j.Topology.Partitions {
		l.topics = append(l.topics, fmt.Sprint("partition", p))
	}
	for i := range j.Sinks {
		in, err := l.bus.Subscribe(context.Background(), l.topics[i%len(l.topics)])
		if err != nil {
			return nil, err
		}
		l.in = append(l.in, in)
	}
	return l, nil
}

func (l *watermillLine) Produce(_ context.Context, _ int, f *arena.Feed) error {
	for n := f.Due(burst); n > 0; n = f.Due(burst) {
		for range n {
			topic := l.topics[f.Partition()]
			m := make([]byte, l.job.Size)
			f.Fill(m)
			if err := l.bus.Publish(topic, message.NewMessage("", m)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *watermillLine) Consume(_ context.Context, i int) error {
	s := l.job.Sinks[i]
	for !s.Full() {
		m, ok := <-l.in[i]
		if !ok {
			return nil
		}
		s.See(m.Payload)
		m.Ack()
	}
	return nil
}

func (l *watermillLine) Close() error { return l.bus.Close() }
