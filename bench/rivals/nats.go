package rivals

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leatlog/leat/bench/rivals/arena"
)

// servers are what is usually reached over a network, inside this process.
func servers() []*arena.Rival {
	return []*arena.Rival{
		{
			// In-process connections, one for each producer and consumer, as for programs of their own. The client collects what
			// is published and flushes by itself. Limits on what may be pending are raised, since both sides drop beyond them.
			Name: "nats", About: "Embedded NATS server, core, in-process connections, a subject for each partition, callbacks.",
			Open: openNATS,
		},
		{
			// PublishAsync is its fastest way in, waiting for all acks at the end of the slice. Out: an ordered consumer for each
			// consumer, which is what replays a stream without acks; for the group a durable consumer for each partition with
			// explicit acks, since that is what delivers at least once.
			Name: "jetstream", About: "Embedded NATS server, JetStream in memory, PublishAsync, ordered consumers; for a group explicit acks.",
			Open: openJetStream,
		},
		{
			// 10 ms is the client's default, which is for throughput.
			Name: "kfake", About: "kfake (Kafka in memory) through franz-go on loopback, no compression, linger 10 ms; a group is one, with autocommit.",
			Can: oneGroup, Open: openKafka(10 * time.Millisecond),
		},
		{
			// What its documentation says for low latency.
			Name: "kfake-nolinger", About: "kfake without linger.", Can: oneGroup, Open: openKafka(0),
		},
	}
}

// pendingMost is how much may be under way to one consumer of NATS, in bytes, before it counts as slow and is cut off.
const pendingMost = 1 << 30

// natsBase is a server and its connections.
type natsBase struct {
	job   *arena.Job
	srv   *server.Server
	conns []*nats.Conn
	dir   string // of JetStream
}

func (b *natsBase) start(opts *server.Options) error {
	opts.DontListen, opts.NoLog, opts.NoSigs = true, true, true
	opts.MaxPending, opts.WriteDeadline = pendingMost, time.Minute
	srv, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	b.srv = srv
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		return errors.New("the server is not ready in time")
	}
	return nil
}

func (b *natsBase) connect() (*nats.Conn, error) {
	c, err := nats.Connect("", nats.InProcessServer(b.srv), nats.NoReconnect())
	if err == nil {
		b.conns = append(b.conns, c)
	}
	return c, err
}

func (b *natsBase) Close() error {
	for _, c := range b.conns {
		c.Close()
	}
	if b.srv != nil {
		b.srv.Shutdown()
		b.srv.WaitForShutdown()
	}
	if b.dir != "" {
		return os.RemoveAll(b.dir)
	}
	return nil
}

func subjects(parts int) (names []string) {
	for p := range parts {
		names = append(names, fmt.Sprint("rivals.", p))
	}
	return names
}

type natsLine struct {
	arena.Pushes
	natsBase
	subjects []string
	in       []*nats.Conn // for each producer
}

func openNATS(j *arena.Job) (arena.Line, error) {
	l := &natsLine{natsBase: natsBase{job: j}, subjects: subjects(j.Topology.Partitions)}
	if err := l.open(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *natsLine) open() error {
	if err := l.start(&server.Options{}); err != nil {
		return err
	}
	for i, s := range l.job.Sinks {
		c, err := l.connect()
		if err != nil {
			return err
		}
		sub, err := c.Subscribe(l.subjects[i%len(l.subjects)], func(m *nats.Msg) { s.See(m.Data) })
		if err != nil {
			return err
		}
		if err := sub.SetPendingLimits(-1, -1); err != nil {
			return err
		}
		if err := c.Flush(); err != nil { // the server knows of it
			return err
		}
	}
	for range l.job.Topology.Producers {
		c, err := l.connect()
		if err != nil {
			return err
		}
		l.in = append(l.in, c)
	}
	return nil
}

func (l *natsLine) Produce(_ context.Context, p int, f *arena.Feed) error {
	c := l.in[p]
	for n := f.Due(burst); n > 0; n = f.Due(burst) {
		for range n {
			subject := l.subjects[f.Partition()]
			if err := c.Publish(subject, f.Next()); err != nil { // copies
				return err
			}
		}
	}
	return nil
}

const (
	jetBytes  = 256 << 20 // kept in the stream
	jetFlight = 4096      // messages that are published and not yet acknowledged, for each producer
)

type jetLine struct {
	arena.Pushes
	natsBase
	subjects []string
	in       []jetstream.JetStream // for each producer
	// failed is stored by a callback of the client, and loaded by producers: the first message that the stream refused.
	failed atomic.Pointer[error]
}

func openJetStream(j *arena.Job) (arena.Line, error) {
	l := &jetLine{natsBase: natsBase{job: j}, subjects: subjects(j.Topology.Partitions)}
	if err := l.open(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *jetLine) open() (err error) {
	if l.dir, err = os.MkdirTemp("", "jetstream"); err != nil { // it wants one, even for streams in memory
		return err
	}
	if err := l.start(&server.Options{JetStream: true, StoreDir: l.dir, JetStreamMaxMemory: 2 << 30}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := l.connect()
	if err != nil {
		return err
	}
	js, err := jetstream.New(c)
	if err != nil {
		return err
	}
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "rivals", Subjects: []string{"rivals.*"}, Storage: jetstream.MemoryStorage, MaxBytes: jetBytes, Discard: jetstream.DiscardOld,
	})
	if err != nil {
		return err
	}
	for i := range l.job.Sinks {
		if err := l.consume(ctx, stream, i); err != nil {
			return err
		}
	}
	for range l.job.Topology.Producers {
		c, err := l.connect()
		if err != nil {
			return err
		}
		js, err := jetstream.New(c, jetstream.WithPublishAsyncMaxPending(jetFlight),
			jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *nats.Msg, err error) {
				l.failed.CompareAndSwap(nil, &err)
			}))
		if err != nil {
			return err
		}
		l.in = append(l.in, js)
	}
	return nil
}

// consume attaches one consumer, on a connection of its own.
func (l *jetLine) consume(ctx context.Context, stream jetstream.Stream, i int) error {
	c, err := l.connect()
	if err != nil {
		return err
	}
	js, err := jetstream.New(c)
	if err != nil {
		return err
	}
	s, subject := l.job.Sinks[i], l.subjects[i%len(l.subjects)]
	name := stream.CachedInfo().Config.Name
	if l.job.Topology.Partitions == 1 {
		oc, err := js.OrderedConsumer(ctx, name, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
		if err != nil {
			return err
		}
		_, err = oc.Consume(func(m jetstream.Msg) { s.See(m.Data()) })
		return err
	}
	dc, err := js.CreateConsumer(ctx, name, jetstream.ConsumerConfig{
		Durable: fmt.Sprint("partition", i), FilterSubject: subject, AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 1 << 16,
	})
	if err != nil {
		return err
	}
	_, err = dc.Consume(func(m jetstream.Msg) {
		s.See(m.Data())
		if err := m.Ack(); err != nil {
			l.failed.CompareAndSwap(nil, &err)
		}
	})
	return err
}

func (l *jetLine) Produce(ctx context.Context, p int, f *arena.Feed) error {
	js := l.in[p]
	for n := f.Due(burst); n > 0; n = f.Due(burst) {
		for range n {
			subject := l.subjects[f.Partition()]
			m := make([]byte, l.job.Size) // the client keeps it until it is acknowledged
			f.Fill(m)
			if _, err := js.PublishAsync(subject, m, jetstream.WithStallWait(10*time.Second)); err != nil {
				return err
			}
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(10 * time.Second):
		return errors.New("not all messages are acknowledged")
	}
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return nil
}
