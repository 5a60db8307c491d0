package load

import "context"

// Target is a system that can be put under load. It says how to make a fresh instance of itself.
type Target interface {
	// Name is what results call the target.
	Name() string

	// Open makes an instance for one run. When it returns, every reader and subscriber of the scenario must be attached: what
	// is published from then on is delivered to each of them. It refuses a scenario that the target cannot run, with an error
	// that names the field.
	Open(s Scenario) (Instance, error)
}

// Instance is one run's instance of a Target. The harness calls its methods in this order: Subscribe for each subscriber and
// Producer for each producer; Read for each reader and partition, each in a goroutine of its own, while the producers publish;
// Close, once the producers are done and everything has arrived or has been given up.
type Instance interface {
	// Producer returns the handle of producer i. One goroutine uses it.
	Producer(i int) (Producer, error)

	// Read delivers every message of a partition to one of the pull readers, in order, until Close. Deliver must not be
	// called after Read has returned. Read returns nil if it ended because of Close.
	Read(reader, partition int, deliver func(payload []byte)) error

	// Subscribe makes the target call deliver for every message, as push subscriber i, on goroutines of the target. Messages
	// of one partition come in order and one at a time, those of different partitions may come at the same time.
	Subscribe(subscriber int, deliver func(partition int, payload []byte)) error

	// Close ends the instance. Afterwards every Read returns and no deliver function is called any more.
	Close() error
}

// Producer is one producer's way into an Instance.
type Producer interface {
	// Publish sends one message to a partition. The payload is the caller's again when Publish returns. An error ends the run.
	// The context ends only if the run is given up.
	Publish(ctx context.Context, partition int, payload []byte) error

	// Flush lets go of messages that Publish has kept back to send them together. It is called whenever the producer is about
	// to wait for its schedule, and at the end. A target that keeps nothing back returns nil at once.
	Flush(ctx context.Context) error
}

// Owner is a Producer that may only publish to some of the partitions, for example since it is their exclusive appender. All
// others publish to all partitions in turn.
type Owner interface {
	Producer
	// Owns returns the partitions, in the order in which they are to be used in turn.
	Owns() []int
}

// KeyProducer is a Producer that can do something with keys. The partition is already chosen by the key. Without it, Publish is
// called for messages with keys as well.
type KeyProducer interface {
	Producer
	// PublishKey is Publish with a key, which is the caller's again when it returns.
	PublishKey(ctx context.Context, partition int, key, payload []byte) error
}

// Survivor is an Instance that can keep messages beyond its own end.
type Survivor interface {
	Instance
	// Survived returns how many messages of a partition were there, or had been there before newer ones took their place, when what
	// Close had left behind was opened again. It is called after Close, if the scenario has Sync; what is missing is lost.
	Survived(partition int) (uint64, error)
}

// Replayer is an Instance whose messages can be read again.
type Replayer interface {
	Instance
	// Replay delivers every message of a partition that is kept, from the first one up to those that are there when it is called,
	// in order. It returns nil if it ended because of Close, or since what comes next is kept no longer. It is called from many goroutines, while others read and publish.
	Replay(partition int, deliver func(payload []byte)) error
}
