package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leatlog/leat/engine"
)

// The problem that Leat was asked to solve: one subscriber that sees every order, and a group of two that share them.
// Rewinding the one does not touch the other.
func Example_orders() {
	ctx := context.Background()
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	orders := must(e.CreateTopic("orders", engine.TopicConfig{}))

	var mu sync.Mutex
	seen := map[string][]string{}
	see := func(who string) engine.HandlerFunc {
		return func(_ context.Context, m *engine.Message) error {
			mu.Lock()
			defer mu.Unlock()
			seen[who] = append(seen[who], string(m.Value))
			return nil
		}
	}
	audit := must(orders.Subscribe(see("audit"), engine.SubscribeConfig{ID: "audit"}))
	kitchen := must(e.CreateGroup("kitchen", engine.GroupConfig{Topics: []string{"orders"}, Kind: engine.Shared}))
	for _, cook := range []string{"ann", "bob"} {
		must(kitchen.Join(see(cook), engine.MemberConfig{Name: cook}))
	}

	for i := range 6 {
		must(orders.Publish(ctx, engine.Record{Value: fmt.Appendf(nil, "order %d", i)}))
	}
	for audit.Lag() > 0 || must(kitchen.Committed("orders", 0)) < 6 {
		runtime.Gosched()
	}
	try(audit.Seek(0, engine.At(0)))
	try(e.Drain(ctx))

	fmt.Println("audit saw", len(seen["audit"]), "and the last was", seen["audit"][11])
	cooked := slices.Sorted(slices.Values(append(seen["ann"], seen["bob"]...))) // whoever had time
	fmt.Println("ann and bob:", cooked)
	err := e.ResetOffsets("waiters", "orders", engine.Earliest(), engine.ResetOptions{})
	fmt.Println(errors.Is(err, engine.ErrUnknownGroup), err)
	// Output:
	// audit saw 12 and the last was order 5
	// ann and bob: [order 0 order 1 order 2 order 3 order 4 order 5]
	// true leat: unknown group: "waiters"
}

// A group of one member that is called and one that polls: they share the partitions. What is polled is committed by the
// next Poll, by Commit, or by Close.
func ExampleEngine_CreateGroup() {
	ctx := context.Background()
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	orders := must(e.CreateTopic("orders", engine.TopicConfig{Partitions: 2, Partitioner: engine.RoundRobin()}))
	must(e.CreateTopic("unpaid", engine.TopicConfig{}))
	for i := range 4 {
		must(orders.Publish(ctx, engine.Record{Value: fmt.Appendf(nil, "order %d", i)}))
	}

	billing := must(e.CreateGroup("billing", engine.GroupConfig{
		Topics:     []string{"orders"},
		Start:      engine.Earliest(), // or only what is published from now on
		DeadLetter: "unpaid",
	}))
	var handled atomic.Int64
	handler := engine.HandlerFunc(func(context.Context, *engine.Message) error { handled.Add(1); return nil })
	consumer := must(billing.Consumer(engine.MemberConfig{Name: "polls"})) // has both partitions
	must(billing.Join(handler, engine.MemberConfig{Name: "called"}))       // gets one of them
	messages := must(consumer.Poll(ctx, 100))
	fmt.Println("polled", len(messages), "in order:", messages[0].Offset < messages[1].Offset)
	try(consumer.Commit())
	try(e.Drain(ctx))
	fmt.Println("called for", handled.Load())
	s := must(e.DescribeGroup("billing"))
	fmt.Println(len(s.Members), "members, behind by", s.Lag())
	// Output:
	// polled 2 in order: true
	// called for 2
	// 2 members, behind by 0
}
