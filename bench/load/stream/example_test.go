package stream_test

import (
	"fmt"
	"time"

	"github.com/leatlog/leat/bench/load/stream"
)

func ExampleParseArrival() {
	a, err := stream.ParseArrival("burst:10ms/90ms")
	if err != nil {
		fmt.Println(err)
		return
	}
	times := a.Times(stream.Part{Seed: 1, Producer: 0, Of: 1}, 20) // two in each burst, 20 a second in the mean
	for range 4 {
		fmt.Println(time.Duration(times.Next()))
	}
	// Output:
	// 0s
	// 5ms
	// 100ms
	// 105ms
}

func ExampleParseKeys() {
	_, err := stream.ParseKeys("zipf:0.99")
	fmt.Println(err)
	// Output:
	// stream: not a known form: "zipf:0.99": the form is zipf:EXPONENT:N; must be one of none, uniform:N (uniform:1000), zipf:EXPONENT:N (zipf:0.99:1000), hot:SHARE:HOT:N where HOT of N keys get a SHARE of all messages (hot:0.9:10:1000), file:PATH with a key a line
}
