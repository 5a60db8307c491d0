package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/leatlog/leat/engine"
)

// must returns v, and stops at an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func Example() {
	ctx := context.Background()
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	orders := must(e.CreateTopic("orders", engine.TopicConfig{Partitions: 4}))

	// Push: the engine calls the handler, one record at a time and in order for each partition.
	seen := make(chan string)
	must(orders.Subscribe(engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
		seen <- fmt.Sprintf("pushed %s: %s", m.Key, m.Value) // the bytes are the log's own, valid until we return
		return nil
	}), engine.SubscribeConfig{ID: "printer"}))

	// The key chooses the partition, so what ada does stays in order.
	var at engine.Published
	for _, order := range []string{"two apples", "one pear"} {
		at = must(orders.Publish(ctx, engine.Record{Key: []byte("ada"), Value: []byte(order)}))
		fmt.Println(<-seen)
	}

	// Pull: reading takes nothing away.
	p := must(orders.Partition(at.Partition))
	for off, r := range p.Records(p.First()) {
		fmt.Printf("partition %d has at %d: %s\n", at.Partition, off, r.Value)
	}

	// Output:
	// pushed ada: two apples
	// pushed ada: one pear
	// partition 1 has at 0: two apples
	// partition 1 has at 1: one pear
}

func ExampleTopic_PublishAsync() {
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	topic := must(e.CreateTopic("numbers", engine.TopicConfig{}))

	ctx, buf := context.Background(), []byte{}
	for i := range 3 {
		buf = fmt.Appendf(buf[:0], "number %d", i) // the bytes are copied, so the buffer is ours again each time
		err := topic.PublishAsync(ctx, engine.Record{Value: buf}, func(at engine.Published, err error) {
			fmt.Println(at.Partition, at.Offset, err)
		})
		if err != nil {
			panic(err) // it did not get as far as the hand-over, and the callback is not called
		}
	}
	if err := topic.Flush(ctx); err != nil { // all callbacks have run
		panic(err)
	}

	// Output:
	// 0 0 <nil>
	// 0 1 <nil>
	// 0 2 <nil>
}

func ExampleTopic_TryPublish() {
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	topic := must(e.CreateTopic("small", engine.TopicConfig{Retention: engine.Retention{MaxRecords: 1}}))
	p := must(topic.Partition(0))
	r := must(p.Reader(engine.ReaderConfig{Gating: true})) // publishers must not overtake it
	defer r.Close()

	fmt.Println(topic.TryPublish(engine.Record{Value: []byte("first")}))
	err := topic.TryPublish(engine.Record{Value: []byte("second")})
	fmt.Println(err, errors.Is(err, engine.ErrFull))

	// Output:
	// <nil>
	// leat: full true
}

func ExampleTopic_PublishBatch() {
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	topic := must(e.CreateTopic("letters", engine.TopicConfig{Partitions: 2, Partitioner: engine.Explicit()}))

	batch := []engine.Record{
		{Partition: 0, Value: []byte("a")},
		{Partition: 1, Value: []byte("b")},
		{Partition: 7, Value: []byte("c")},
		{Partition: 0, Value: []byte("d")},
	}
	err := topic.PublishBatch(context.Background(), batch)
	fmt.Println(err)
	failed := new(engine.BatchError)
	errors.As(err, &failed)
	for i, r := range batch {
		if failed.Errs[i] == nil {
			fmt.Printf("%s: partition %d, offset %d\n", r.Value, r.Partition, r.Offset)
		}
	}

	// Output:
	// leat: 1 of 4 records of the batch failed, the first with: leat: unknown partition: 7 of topic letters, which has 2
	// a: partition 0, offset 0
	// b: partition 1, offset 0
	// d: partition 0, offset 1
}

// The fastest way in, for one goroutine that has a partition to itself.
func ExamplePartition_Appender() {
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	ctx := context.Background()
	p := must(must(e.CreateTopic("ticks", engine.TopicConfig{})).Partition(0))

	a := must(p.Appender(ctx))
	for i := range 3 {
		off := must(a.Append(ctx, engine.Record{Value: fmt.Appendf(nil, "tick %d", i)}))
		fmt.Println("staged", off)
	}
	fmt.Println("visible", p.Next())
	if err := a.Flush(); err != nil {
		panic(err)
	}
	fmt.Println("visible", p.Next())

	_, err := p.Publish(ctx, engine.Record{})
	fmt.Println(err)
	if err := a.Close(); err != nil { // now others may publish again
		panic(err)
	}

	// Output:
	// staged 0
	// staged 1
	// staged 2
	// visible 0
	// visible 3
	// leat: partition has an exclusive appender
}

// Records that are made where they stay are not copied. The goroutine that has the partition reserves room for a few, fills them in, and
// makes all of them visible at once.
func ExampleAppender_Reserve() {
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	ctx := context.Background()
	p := must(must(e.CreateTopic("quotes", engine.TopicConfig{})).Partition(0))
	a := must(p.Appender(ctx))
	defer a.Close()

	r := must(a.Reserve(ctx, 3, 3*16)) // three records, of 16 bytes in the mean
	for i, name := range []string{"one", "two", "three"} {
		value := r.NextKey([]byte(name), 10) // its length is known only when it has been written
		r.Shrink(len(fmt.Appendf(value[:0], "%d.00", i)))
	}
	fmt.Println("visible", p.Next())
	first := must(r.Commit(ctx))
	for off, rec := range p.Records(first) {
		fmt.Printf("%d %s %s\n", off, rec.Key, rec.Value)
	}

	// Output:
	// visible 0
	// 0 one 0.00
	// 1 two 1.00
	// 2 three 2.00
}

// Records of one size are made, and read, fastest as a run of values.
func ExampleReservation_NextRun() {
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	ctx := context.Background()
	p := must(must(e.CreateTopic("samples", engine.TopicConfig{})).Partition(0))
	a := must(p.Appender(ctx))
	defer a.Close()

	const size = 8
	r := must(a.Reserve(ctx, 3, 3*size))
	for i, run := uint64(0), r.NextRun(3, size); len(run) > 0; i, run = i+1, run[size:] {
		binary.LittleEndian.PutUint64(run, i*i)
	}
	must(r.Commit(ctx))

	reader := must(p.Reader(engine.ReaderConfig{Start: engine.Earliest()}))
	defer reader.Close()
	run, n, err := reader.NextRun(ctx, 64)
	if err != nil {
		panic(err)
	}
	for ; len(run) > 0; run = run[size:] {
		fmt.Println(binary.LittleEndian.Uint64(run))
	}
	fmt.Println(n, "of", reader.Position())

	// Output:
	// 0
	// 1
	// 4
	// 3 of 3
}

// Who needs nothing but values reads them without the records around them.
func ExampleReader_NextValues() {
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	ctx := context.Background()
	p := must(must(e.CreateTopic("names", engine.TopicConfig{})).Partition(0))
	for _, name := range []string{"ada", "grace", "barbara"} {
		must(p.Publish(ctx, engine.Record{Value: []byte(name)}))
	}

	reader := must(p.Reader(engine.ReaderConfig{Start: engine.Earliest()}))
	defer reader.Close()
	values := make([][]byte, 64)
	n := must(reader.NextValues(ctx, values))
	fmt.Printf("%s\n", values[:n])

	// Output:
	// [ada grace barbara]
}

func ExamplePartition_Follow() {
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	topic := must(e.CreateTopic("news", engine.TopicConfig{}))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		for _, v := range []string{"one", "two", "three"} {
			must(topic.Publish(context.Background(), engine.Record{Value: []byte(v)}))
		}
	}()

	p := must(topic.Partition(0))
	for r, err := range p.Follow(ctx, 0) {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Printf("%d %s\n", r.Offset, r.Value) // valid until the loop's next turn
		if r.Offset == 2 {
			stop()
		}
	}

	// Output:
	// 0 one
	// 1 two
	// 2 three
	// context canceled
}

func ExamplePartition_ReadAt() {
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	ctx := context.Background()
	topic := must(e.CreateTopic("letters", engine.TopicConfig{}))
	for _, v := range []string{"a", "b", "c", "d"} {
		must(topic.Publish(ctx, engine.Record{Value: []byte(v)}))
	}

	p := must(topic.Partition(0))
	var two [2]engine.Record
	n := must(p.ReadAt(1, two[:]))
	for _, r := range two[:n] {
		fmt.Printf("%d %s\n", r.Offset, r.Value) // these stay valid for as long as they are held
	}
	_, err := p.ReadAt(5, two[:])
	fmt.Println(err)

	// Output:
	// 1 b
	// 2 c
	// leat: offset 5 out of range: the partition holds [0, 4)
}

// A Reader has a position. What retention drops before it gets there it is told, once.
func ExamplePartition_Reader() {
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	ctx := context.Background()
	topic := must(e.CreateTopic("last-two", engine.TopicConfig{
		Retention: engine.Retention{MaxRecords: 2},
		OnFull:    engine.DropOldest,
	}))
	p := must(topic.Partition(0))
	r := must(p.Reader(engine.ReaderConfig{Start: engine.Earliest()}))
	defer r.Close()
	for i := range 5 {
		must(topic.Publish(ctx, engine.Record{Value: fmt.Appendf(nil, "record %d", i)}))
	}

	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	for r.Lag() > 0 {
		rec, err := r.Next(ctx)
		if gap := (*engine.GapError)(nil); errors.As(err, &gap) {
			fmt.Println("missed", gap.From, "to", gap.To)
			continue
		}
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s\n", rec.Value)
	}
	if err := r.Seek(engine.Last(1)); err != nil {
		panic(err)
	}
	fmt.Printf("again: %s\n", must(r.Next(ctx)).Value)

	// Output:
	// missed 0 to 3
	// record 3
	// record 4
	// again: record 4
}

func ExamplePartition_TruncateBefore() {
	e := must(engine.Open(engine.Config{}))
	defer e.Close()
	ctx := context.Background()
	topic := must(e.CreateTopic("letters", engine.TopicConfig{}))
	for _, v := range []string{"a", "b", "c"} {
		must(topic.Publish(ctx, engine.Record{Value: []byte(v)}))
	}

	p := must(topic.Partition(0))
	if err := p.TruncateBefore(ctx, 2); err != nil {
		panic(err)
	}
	fmt.Println(p.First(), p.Next())
	for off, r := range p.Records(0) {
		fmt.Printf("%d %s\n", off, r.Value)
	}

	// Output:
	// 2 3
	// 2 c
}
