package check_test

import (
	"fmt"

	"github.com/leatlog/leat/internal/check"
)

// A log that loses every third record, and does not notice: it gives the place away twice.
func Example() {
	rec := check.NewRecorder(42)
	orders := rec.Partition("orders/0")
	log, values := rec.Log("test"), rec.Producer()

	var stored [][]byte
	publish := func(value []byte) int64 {
		if stored = append(stored, value); len(stored)%3 == 0 {
			stored = stored[:len(stored)-1]
		}
		return int64(len(stored)) - 1
	}

	for range 4 {
		value := values.Next(64)
		send := log.SendTo(orders, value)
		send.Ok(orders, publish(value))
	}
	all := log.FinalPoll(orders, 0)
	for off, value := range stored {
		all.Record(int64(off), value)
	}
	all.Ok()

	report := rec.History().Check(check.Options{})
	for _, f := range report.Findings {
		fmt.Printf("%s: %s\n", f.Anomaly, f.Text)
	}
	fmt.Println(report.Ok())
	// Output:
	// A-1 inconsistent-offset: offset 1 had p1:1 and has p1:2
	// A-1 inconsistent-offset: offset 1 had p1:1 and has p1:3
	// false
}
