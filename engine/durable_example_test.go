package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/leatlog/leat/engine"
)

// A durable topic is there again after the end of the process, and so are its groups with their positions.
func Example_durable() {
	ctx := context.Background()
	data := must(os.MkdirTemp("", "leat"))
	defer os.RemoveAll(data)

	for day := 1; day <= 2; day++ { // a process, and the next one
		e := must(engine.Open(engine.Config{Dir: data}))
		orders, err := e.Topic("orders")
		if errors.Is(err, engine.ErrUnknownTopic) {
			orders, err = e.CreateTopic("orders", engine.TopicConfig{Durable: &engine.Durable{}})
			must(e.CreateGroup("billing", engine.GroupConfig{Topics: []string{"orders"}, Start: engine.Earliest()}))
		}
		must(orders, err)

		// When Publish returns nil the record survives a power cut.
		at := must(orders.Publish(ctx, engine.Record{Value: fmt.Append(nil, "order of day ", day)}))
		p := must(orders.Partition(at.Partition))
		fmt.Println("published", at.Offset, "durable up to", p.Durable())

		billing := must(must(e.Group("billing")).Consumer(engine.MemberConfig{}))
		for _, m := range must(billing.Poll(ctx, 10)) {
			fmt.Printf("billed %d %s\n", m.Offset, m.Value)
		}
		if err := billing.CommitSync(ctx); err != nil {
			fmt.Println(err)
		}
		if err := e.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// published 0 durable up to 1
	// billed 0 order of day 1
	// published 1 durable up to 2
	// billed 1 order of day 2
}
