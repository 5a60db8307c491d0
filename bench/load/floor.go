package load

import (
	"context"
	"time"
)

// Floor is what the generator does by itself, measured just before the run with a target that does nothing: messages are made,
// handed to a function that checks and measures them, and that is all. No target can be faster, and of every latency of the run
// the floor's is the harness's own.
type Floor struct {
	RateMsgsPerS float64 `json:"rate_msgs_per_s"`
	CPUNsPerMsg  float64 `json:"cpu_ns_per_msg"`
	Publish      Latency `json:"publish_ns"`
	Delay        Latency `json:"delay_ns"`
	E2E          Latency `json:"e2e_ns"`
	// RateHeld says that the generator alone held the rate that is asked for. If not, the machine cannot, or was busy.
	RateHeld bool `json:"rate_held"`
}

const (
	floorLeast = 10 * time.Millisecond
	floorMost  = 300 * time.Millisecond
)

// floor measures the floor of a scenario, in a tenth of its time, but at most 300 ms. It returns nil if there is none.
func (s Scenario) floor(ctx context.Context, c *Clock) *Floor {
	if s.NoFloor || c.exact {
		return nil
	}
	s.Group = Group{}
	s.Producers = min(s.Producers, 256)
	s.Partitions, s.Readers, s.Subscribers, s.Stages, s.Replays, s.Stop = s.Producers, 0, 1, 1, 0, 0
	s.Publish, s.Wait, s.Sync, s.Dir, s.Messages = "", "", "", "", 0
	s.Duration = min(max(s.Duration/10, floorLeast), floorMost)
	s.Warmup = s.Duration / 5
	s.NoFloor, s.NoPlacement, s.Live, s.Intervals, s.Window = true, true, nil, nil, -1
	if s.Rate > 0 && s.Rate*s.Duration.Seconds() < 1 {
		return nil
	}
	res, err := Run(ctx, Null{}, s)
	if err != nil || res.Interrupted {
		return nil
	}
	f := &Floor{
		RateMsgsPerS: res.RateMsgsPerS, CPUNsPerMsg: res.CPUNsPerMsg, RateHeld: res.RateHeld,
		Publish: res.Latency.Publish, Delay: res.Latency.Delay, E2E: res.Latency.E2E,
	}
	f.Publish.HDR, f.Delay.HDR, f.E2E.HDR = "", "", ""
	return f
}

// Null is a target that does nothing: Publish calls the subscriber itself. Each producer has partitions of its own, so that
// there is no lock either; there must be one for each. It has no readers.
type Null struct{}

// Name implements Target.
func (Null) Name() string { return "null" }

// Open implements Target.
func (Null) Open(s Scenario) (Instance, error) { return &null{s: s}, nil }

type null struct {
	s       Scenario
	deliver []func(partition int, payload []byte)
}

func (n *null) Subscribe(_ int, deliver func(int, []byte)) error {
	n.deliver = append(n.deliver, deliver)
	return nil
}

func (n *null) Producer(i int) (Producer, error) {
	p := &nullProducer{null: n}
	for j := i; j < n.s.Partitions; j += n.s.Producers {
		p.owns = append(p.owns, j)
	}
	return p, nil
}

func (*null) Read(int, int, func([]byte)) error { return nil }
func (*null) Close() error                      { return nil }

type nullProducer struct {
	*null
	owns []int
}

func (p *nullProducer) Owns() []int { return p.owns }

func (p *nullProducer) Publish(_ context.Context, partition int, payload []byte) error {
	for _, d := range p.deliver {
		d(partition, payload)
	}
	return nil
}

func (p *nullProducer) Flush(context.Context) error { return nil }
