package engine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leatlog/leat/engine"
)

// try stops at an error.
func try(err error) {
	if err != nil {
		panic(err)
	}
}

// A subscription delivers every record to its handler: what was there before, if it is to start there, and then what comes.
// Closing it keeps its positions for the next one of its name.
func ExampleTopic_Subscribe() {
	ctx := context.Background()
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	orders := must(e.CreateTopic("orders", engine.TopicConfig{}))
	must(orders.Publish(ctx, engine.Record{Value: []byte("two apples")}))

	printed := make(chan struct{})
	printer := engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
		fmt.Printf("%d: %s\n", m.Offset, m.Value)
		printed <- struct{}{}
		return nil
	})
	s := must(orders.Subscribe(printer, engine.SubscribeConfig{ID: "printer", Start: engine.Earliest()}))
	<-printed
	must(orders.Publish(ctx, engine.Record{Value: []byte("one pear")}))
	<-printed

	s.Close()
	<-s.Done()
	must(orders.Publish(ctx, engine.Record{Value: []byte("a fig")}))
	must(orders.Subscribe(printer, engine.SubscribeConfig{ID: "printer"})) // goes on where the other was
	<-printed

	// Output:
	// 0: two apples
	// 1: one pear
	// 2: a fig
}

// A record whose handler fails is delivered again after a while, up to a number of times. What is given up then can be
// published to a topic of its own by a hook.
func ExampleTopic_Subscribe_deadLetters() {
	ctx := context.Background()
	var dead *engine.Topic
	e := must(engine.Open(engine.Config{Hooks: engine.Hooks{
		Dropped: func(ctx context.Context, subscription string, m *engine.Message, err error) {
			must(dead.Publish(ctx, engine.Record{Key: m.Key, Value: m.Value, Headers: engine.MakeHeaders(
				engine.Header{Name: "error", Value: []byte(err.Error())},
				engine.Header{Name: "offset", Value: fmt.Append(nil, m.Offset)},
			)}))
		},
	}}))
	defer e.Close()
	dead = must(e.CreateTopic("orders.dead", engine.TopicConfig{}))
	orders := must(e.CreateTopic("orders", engine.TopicConfig{}))
	must(orders.Subscribe(engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
		if string(m.Value) == "nothing" {
			fmt.Printf("attempt %d\n", m.Attempt)
			return errors.New("what should I do?")
		}
		fmt.Printf("processed %s\n", m.Value)
		return nil
	}), engine.SubscribeConfig{MaxDeliveries: 2, Backoff: []time.Duration{time.Millisecond}}))
	for _, order := range []string{"two apples", "nothing", "one pear"} {
		must(orders.Publish(ctx, engine.Record{Value: []byte(order)}))
	}
	try(e.Drain(ctx))
	for _, r := range must(dead.Partition(0)).Records(0) {
		why, _ := r.Headers.Get("error")
		fmt.Printf("dead: %s (%s)\n", r.Value, why)
	}

	// Output:
	// processed two apples
	// attempt 1
	// attempt 2
	// processed one pear
	// dead: nothing (what should I do?)
}

// Seek moves a subscription at once, also from inside its handler: here it reads everything twice.
func ExampleSubscription_Seek() {
	ctx := context.Background()
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	numbers := must(e.CreateTopic("numbers", engine.TopicConfig{}))
	try(numbers.PublishBatch(ctx, []engine.Record{{Value: []byte("one")}, {Value: []byte("two")}, {Value: []byte("three")}}))

	var s *engine.Subscription
	subscribed, passes := make(chan struct{}), 0
	s = must(numbers.Subscribe(engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
		<-subscribed
		fmt.Printf("%s\n", m.Value)
		if m.Offset == 2 && passes == 0 {
			passes++
			return s.Seek(0, engine.Earliest())
		}
		return nil
	}), engine.SubscribeConfig{Start: engine.At(1)}))
	close(subscribed)
	try(e.Drain(ctx))

	// Output:
	// two
	// three
	// one
	// two
	// three
}

// Under DropOldest publishers never wait. A subscription that is too slow is told what it has missed, in its place in the
// stream.
func ExampleGapError() {
	ctx := context.Background()
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	ticks := must(e.CreateTopic("ticks", engine.TopicConfig{
		OnFull: engine.DropOldest, Retention: engine.Retention{MaxRecords: 4}, SegmentRecords: 1,
	}))
	s := must(ticks.Subscribe(engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
		fmt.Println("tick", m.Offset)
		return nil
	}), engine.SubscribeConfig{OnGap: func(g engine.GapError) {
		fmt.Printf("missed %d: from %d to %d\n", g.Lost(), g.From, g.To)
	}}))
	try(s.Pause())
	for range 10 {
		must(ticks.Publish(ctx, engine.Record{}))
	}
	try(s.Resume())
	try(e.Drain(ctx))

	// Output:
	// missed 6: from 0 to 6
	// tick 6
	// tick 7
	// tick 8
	// tick 9
}

// Drain lets a pipeline run empty before it is closed: only handlers may publish from then on.
func ExampleEngine_Drain() {
	ctx := context.Background()
	e := must(engine.Open(engine.Config{}))
	words := must(e.CreateTopic("words", engine.TopicConfig{}))
	lengths := must(e.CreateTopic("lengths", engine.TopicConfig{}))
	must(words.Subscribe(engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
		_, err := lengths.Publish(ctx, engine.Record{Value: fmt.Append(nil, len(m.Value))})
		return err
	}), engine.SubscribeConfig{}))
	must(lengths.Subscribe(engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
		fmt.Printf("%s\n", m.Value)
		return nil
	}), engine.SubscribeConfig{}))
	for _, word := range []string{"so", "it", "goes"} {
		must(words.Publish(ctx, engine.Record{Value: []byte(word)}))
	}
	fmt.Println(e.Drain(ctx))
	_, err := words.Publish(ctx, engine.Record{})
	fmt.Println(errors.Is(err, engine.ErrDraining))
	fmt.Println(e.Close())

	// Output:
	// 2
	// 2
	// 4
	// <nil>
	// true
	// <nil>
}

// sum is a BatchHandler.
type sum struct{ total int }

func (s *sum) OnBatch(ctx context.Context, ms []engine.Message) error {
	for i := range ms {
		s.total += len(ms[i].Value)
	}
	return nil // all of them are processed
}

func (s *sum) OnMessage(ctx context.Context, m *engine.Message) error {
	panic("OnBatch is called instead")
}

// A BatchHandler gets runs of consecutive records: for work that is cheaper for many at once, such as a transaction.
func ExampleBatchHandler() {
	ctx := context.Background()
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	topic := must(e.CreateTopic("topic", engine.TopicConfig{}))
	var s sum
	must(topic.Subscribe(&s, engine.SubscribeConfig{BatchSize: 100}))
	for range 1000 {
		try(topic.PublishAsync(ctx, engine.Record{Value: []byte("12345")}, nil))
	}
	try(e.Drain(ctx))
	fmt.Println(s.total)

	// Output:
	// 5000
}
