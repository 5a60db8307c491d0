// Package engine is Leat's public API: an embeddable, in-process, partitioned, append-only log.
//
// An [Engine] holds topics. A [Topic] has a name and a number of partitions. A [Partition] is a totally ordered log of
// records; a record's offset is its index. A [Reader] pulls the records of one partition; a [Subscription] pushes those of
// all partitions of a topic to a handler. The members of a [Group] share the records of some topics: a [Member] has a
// handler, a [Consumer] polls.
//
//	e, err := engine.Open(engine.Config{})
//	orders, err := e.CreateTopic("orders", engine.TopicConfig{Partitions: 4})
//	sub, err := orders.Subscribe(engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
//		fmt.Println(m.Partition, m.Offset, string(m.Value))
//		return nil
//	}), engine.SubscribeConfig{ID: "printer", Start: engine.Earliest()})
//	at, err := orders.Publish(ctx, engine.Record{Key: []byte("ada"), Value: []byte("one tea")})
//	err = e.Drain(ctx)
//	err = e.Close()
//
// Ways in, from the most convenient to the fastest: [Topic.Publish] waits and says where the record is;
// [Topic.PublishBatch] does so for many; [Topic.TryPublish] and [Topic.PublishAsync] do not wait for the log;
// [Partition.Appender] has a partition for itself, and [Appender.Reserve] lets it make records where they stay. Ways out: [Topic.Subscribe]; [Group.Join] and [Group.Consumer];
// [Partition.Reader]; the iterators [Partition.Follow] and [Partition.Records]; [Partition.ReadAt].
//
// A topic is in memory, or durable: then its records are in files under [Config].Dir as well, and it is there again after the
// next Open, with the groups that read it. See [Durable].
//
// What it does not do: keep order across partitions, or talk to another process.
package engine
