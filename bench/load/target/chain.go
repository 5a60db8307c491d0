package target

import (
	"context"
	"sync"

	"github.com/leatlog/leat/bench/load"
)

// chained opens a scenario's stages as instances of their own, and carries messages from one to the next: a goroutine for each
// partition reads here and publishes there.
func chained(s load.Scenario, open func(load.Scenario) (load.Instance, error)) (load.Instance, error) {
	if s.Stages <= 1 {
		return open(s)
	}
	c := &chain{}
	for i := range s.Stages {
		stage := s
		if i < s.Stages-1 {
			stage.Readers, stage.Subscribers = 1, 0
		}
		in, err := open(stage)
		if err != nil {
			return nil, err
		}
		c.stages = append(c.stages, in)
	}
	for i := range s.Stages - 1 {
		c.relays = append(c.relays, new(sync.WaitGroup))
		for p := range s.Partitions {
			to, err := c.stages[i+1].Producer(0)
			if err != nil {
				return nil, err
			}
			c.relays[i].Go(func() {
				// What it does not carry, readers see as lost.
				_ = c.stages[i].Read(0, p, func(payload []byte) { _ = to.Publish(context.Background(), p, payload) })
			})
		}
	}
	return c, nil
}

type chain struct {
	stages []load.Instance
	relays []*sync.WaitGroup // from each stage to the next
}

func (c *chain) last() load.Instance { return c.stages[len(c.stages)-1] }

func (c *chain) Producer(i int) (load.Producer, error) { return c.stages[0].Producer(i) }

func (c *chain) Read(reader, partition int, deliver func([]byte)) error {
	return c.last().Read(reader, partition, deliver)
}

func (c *chain) Subscribe(i int, deliver func(int, []byte)) error {
	return c.last().Subscribe(i, deliver)
}

// Close ends the stages in their order, so that nobody publishes to what is closed.
func (c *chain) Close() error {
	for i, in := range c.stages {
		if err := in.Close(); err != nil {
			return err
		}
		if i < len(c.relays) {
			c.relays[i].Wait()
		}
	}
	return nil
}
