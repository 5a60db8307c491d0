package segment_test

import (
	"fmt"

	"github.com/leatlog/leat/segment"
)

// One goroutine appends and publishes; any other reads what is published.
func Example() {
	log := segment.NewLog(segment.Config{})
	log.Append(&segment.Record{Key: []byte("k"), Value: []byte("first")}, 1000)
	log.Append(&segment.Record{Value: []byte("second")}, 1001)
	log.Publish() // both become visible at once

	r := log.NewReader()
	defer r.Close()
	var rec segment.Record
	for r.Refill() == segment.Ready {
		for r.Next(&rec) {
			fmt.Println(rec.Offset, rec.Timestamp, string(rec.Value), rec.Key == nil)
		}
	}
	// Output:
	// 0 1000 first false
	// 1 1001 second true
}

// Reserve gives the place for the bytes, so that the caller can make them there.
func ExampleLog_Reserve() {
	log := segment.NewLog(segment.Config{})
	dst, err := log.Reserve(segment.Shape{Key: -1, Value: 5}, 1000)
	if err != nil {
		panic(err)
	}
	copy(dst, "hello")
	log.Publish()

	var recs [1]segment.Record
	n, err := log.ReadAt(0, recs[:])
	fmt.Println(n, err, string(recs[0].Value))
	// Output: 1 <nil> hello
}

// Retention is the caller's: it looks at the oldest segment and drops it or not.
func ExampleLog_DropOldest() {
	log := segment.NewLog(segment.Config{SegmentRecords: 10})
	for range 35 {
		log.Append(&segment.Record{Value: []byte("value")}, 1000)
	}
	log.Publish()
	for {
		records, _, _ := log.Retained()
		oldest, ok := log.Oldest()
		if !ok || records-int64(oldest.End-oldest.First) < 20 {
			break
		}
		log.DropOldest()
	}
	fmt.Println(log.Snapshot())
	// Output: 10 35
}

// A reader that was overtaken by retention is told, and decides where to go on.
func ExampleReader_Refill() {
	log := segment.NewLog(segment.Config{SegmentRecords: 10})
	r := log.NewReader()
	for range 35 {
		log.Append(&segment.Record{Value: []byte("value")}, 1000)
	}
	log.Publish()
	log.DropOldest()
	if r.Refill() == segment.Below {
		first := log.First()
		fmt.Printf("lost [%d, %d)\n", r.Position(), first)
		r.Seek(first)
	}
	fmt.Println(r.Refill(), r.Window())
	// Output:
	// lost [0, 10)
	// Ready 10
}

// Headers are kept as they are encoded; Get looks one up.
func ExampleHeaders() {
	h := segment.MakeHeaders(segment.Header{Name: "trace", Value: []byte("42")})
	h = h.Add("tenant", []byte("a"))
	v, ok := h.Get("trace")
	fmt.Println(h.Len(), string(v), ok)
	// Output: 2 42 true
}
