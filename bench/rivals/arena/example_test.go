package arena_test

import (
	"context"
	"fmt"
	"time"

	"github.com/leatlog/leat/bench/rivals/arena"
)

// queue is a rival of one's own: here a channel for one consumer.
type queue struct {
	job *arena.Job
	c   chan [64]byte
}

// Produce is a whole loop. Due waits until something is to be sent and says how much; 0 is the end of the slice.
func (q *queue) Produce(_ context.Context, _ int, f *arena.Feed) error {
	var m [64]byte
	for n := f.Due(64); n > 0; n = f.Due(64) {
		for range n {
			f.Fill(m[:])
			q.c <- m
		}
	}
	return nil
}

// Consume is one as well, until the sink has everything.
func (q *queue) Consume(_ context.Context, i int) error {
	s := q.job.Sinks[i]
	for !s.Full() {
		m, ok := <-q.c
		if !ok {
			return nil
		}
		s.See(m[:])
	}
	return nil
}

func (q *queue) Close() error {
	close(q.c)
	return nil
}

// A rival of one's own, in full.
func ExampleRival() {
	mine := &arena.Rival{
		Name:  "mine",
		About: "A channel of 64-byte values.",
		Can: func(s arena.Spec) error {
			if s.Topology.Consumers() > 1 || s.Size != 64 {
				return arena.ErrUnsupported
			}
			return nil
		},
		Open: func(j *arena.Job) (arena.Line, error) {
			return &queue{job: j, c: make(chan [64]byte, 1024)}, nil
		},
	}
	m := arena.Match{
		A: arena.Side{Rival: mine}, B: arena.Side{Rival: mine}, // against itself, which should give 1
		Topology: arena.ThreeToOne, Size: 64, Rates: []float64{0}, Slices: 3, Length: time.Millisecond,
	}
	outcomes, err := m.Run(context.Background())
	fmt.Println(outcomes[0].Workload(), len(outcomes[0].As), len(outcomes[0].Bs), err)
	// Output: 3->1 64 B max 3 3 <nil>
}
