package load_test

import (
	"context"
	"fmt"
	"time"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/slo"
)

// myQueue is a target of one's own: here a channel for each partition, so that it has exactly one reader.
type myQueue struct{}

func (myQueue) Name() string { return "my queue" }

func (myQueue) Open(s load.Scenario) (load.Instance, error) {
	if s.Readers != 1 || s.Subscribers != 0 {
		return nil, fmt.Errorf("my queue has exactly one reader, not %d readers and %d subscribers", s.Readers, s.Subscribers)
	}
	q := make(myInstance, s.Partitions)
	for i := range q {
		q[i] = make(chan []byte, 100)
	}
	return q, nil
}

type myInstance []chan []byte

func (q myInstance) Producer(int) (load.Producer, error) { return q, nil }

func (q myInstance) Publish(_ context.Context, partition int, payload []byte) error {
	q[partition] <- append([]byte(nil), payload...) // the payload is only lent
	return nil
}

func (q myInstance) Flush(context.Context) error { return nil }

func (q myInstance) Read(_, partition int, deliver func([]byte)) error {
	for p := range q[partition] {
		deliver(p)
	}
	return nil
}

func (q myInstance) Subscribe(int, func(int, []byte)) error { return nil }

func (q myInstance) Close() error {
	for _, c := range q {
		close(c)
	}
	return nil
}

// A target of your own is a few short methods: see myQueue above. A Go test can run a scenario on it and look at the result.
func ExampleRun() {
	scenario := load.Scenario{
		Name: "mine", Producers: 2, Partitions: 2, Readers: 1,
		Duration: time.Minute, Messages: 10_000, // whichever ends first
	}
	result, err := load.Run(context.Background(), myQueue{}, scenario)
	if err == nil {
		err = result.Err() // lost, duplicated, reordered, damaged; or a missed rate
	}
	fmt.Println(result.Sent, result.Received, err)

	scenario.Readers = 2
	_, err = load.Run(context.Background(), myQueue{}, scenario)
	fmt.Println(err)
	// Output:
	// 10000 10000 <nil>
	// load: target failed: my queue has exactly one reader, not 2 readers and 0 subscribers
}

// A test of your own can hold a target to objectives.
func ExampleResult_Figure() {
	s, _ := load.ScenarioNamed("unicast")
	s.Messages, s.Warmup, s.Window = 10_000, 0, -1
	res, err := load.Run(context.Background(), load.Null{}, withSubscriber(s))
	if err != nil {
		fmt.Println(err)
		return
	}
	objectives, err := slo.Parse("faults=0,rate>1000,e2e.p50<1s")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, met := objectives.Check(res.Figure)
	fmt.Println("met:", met)
	// Output: met: true
}

// withSubscriber is the scenario with a subscriber in place of its readers, since Null has none.
func withSubscriber(s load.Scenario) load.Scenario {
	s.Subscribers, s.Readers = s.Readers, 0
	return s
}
