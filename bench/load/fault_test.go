package load_test

import (
	"bytes"
	"context"
	"sync"

	"github.com/leatlog/leat/bench/load"
)

// direct is a target that delivers within Publish, on the producer's goroutine. Its hooks plant faults.
type direct struct {
	// deliver, if not nil, says what consumer c gets from a partition instead of the n-th message (from 0) there.
	deliver func(c, partition, n int, payload []byte) [][]byte
	// publish, if not nil, is called before each message.
	publish func(ctx context.Context, producer, n int) error
	// flush, if not nil, is called by Flush.
	flush func()
	// owns, if not nil, says which partitions a producer owns.
	owns func(producer int) []int

	readErr, closeErr, openErr error
	hold                       chan struct{} // if not nil, Close waits for it
}

func (*direct) Name() string { return "direct" }

func (d *direct) Open(s load.Scenario) (load.Instance, error) {
	if d.openErr != nil {
		return nil, d.openErr
	}
	in := &directInstance{d: d, s: s, closed: make(chan struct{}), lanes: make([][]directLane, s.Partitions)}
	for p := range in.lanes {
		in.lanes[p] = make([]directLane, s.Consumers())
	}
	return in, nil
}

type directInstance struct {
	d      *direct
	s      load.Scenario
	mu     sync.Mutex
	cond   sync.Cond
	lanes  [][]directLane // partition, consumer
	ready  int
	closed chan struct{}
}

type directLane struct {
	deliver func([]byte)
	n       int
}

func (in *directInstance) attach(c, partition int, deliver func([]byte)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.cond.L = &in.mu
	in.lanes[partition][c].deliver = deliver
	in.ready++
	in.cond.Broadcast()
}

func (in *directInstance) Subscribe(i int, deliver func(int, []byte)) error {
	for p := range in.s.Partitions {
		in.attach(in.s.Readers+i, p, func(b []byte) { deliver(p, b) })
	}
	return nil
}

func (in *directInstance) Read(reader, partition int, deliver func([]byte)) error {
	in.attach(reader, partition, deliver)
	if in.d.readErr != nil {
		return in.d.readErr
	}
	<-in.closed
	return nil
}

func (in *directInstance) Close() error {
	if in.d.hold != nil {
		<-in.d.hold
	}
	close(in.closed)
	return in.d.closeErr
}

func (in *directInstance) Producer(i int) (load.Producer, error) {
	p := &directProducer{in: in, id: i}
	if in.d.owns != nil {
		return owner{p, in.d.owns(i)}, nil
	}
	return p, nil
}

type owner struct {
	*directProducer
	owns []int
}

func (o owner) Owns() []int { return o.owns }

type directProducer struct {
	in    *directInstance
	id, n int
}

func (p *directProducer) Flush(context.Context) error {
	if p.in.d.flush != nil {
		p.in.d.flush()
	}
	return nil
}

func (p *directProducer) Publish(ctx context.Context, partition int, payload []byte) error {
	if p.in.d.publish != nil {
		if err := p.in.d.publish(ctx, p.id, p.n); err != nil {
			return err
		}
	}
	p.n++
	in := p.in
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.cond.L = &in.mu; in.ready < in.s.Consumers()*in.s.Partitions; {
		in.cond.Wait() // readers attach in their goroutines
	}
	for c := range in.lanes[partition] {
		l := &in.lanes[partition][c]
		out := [][]byte{payload}
		if in.d.deliver != nil {
			out = in.d.deliver(c, partition, l.n, payload)
		}
		l.n++
		for _, b := range out {
			l.deliver(b)
		}
	}
	return nil
}

// flip returns a copy of p with one bit changed.
func flip(p []byte) []byte {
	p = bytes.Clone(p)
	p[len(p)/2] ^= 0x10
	return p
}
