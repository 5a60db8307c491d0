package engine_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// coldWays are the ways to read a partition: each reads up to a number of records, in order, and returns the last offset that it has
// seen, and what has ended it.
var coldWays = map[string]func(t *testing.T, e *engine.Engine, top *engine.Topic, upTo int) (engine.Offset, error){
	"ReadAt": func(t *testing.T, _ *engine.Engine, top *engine.Topic, upTo int) (last engine.Offset, err error) {
		p := part(t, top, 0)
		last = -1
		for int(last)+1 < upTo {
			var recs [50]engine.Record
			n, err := p.ReadAt(last+1, recs[:])
			if err != nil {
				return last, err
			}
			last += engine.Offset(n)
		}
		return last, nil
	},
	"Records": func(t *testing.T, _ *engine.Engine, top *engine.Topic, upTo int) (last engine.Offset, err error) {
		p := part(t, top, 0)
		last = -1
		for off := range p.Records(0) {
			last = off
		}
		if int(last)+1 < upTo {
			_, err = p.ReadAt(last+1, make([]engine.Record, 1))
		}
		return last, err
	},
	"Reader": func(t *testing.T, _ *engine.Engine, top *engine.Topic, upTo int) (last engine.Offset, err error) {
		r, err := part(t, top, 0).Reader(engine.ReaderConfig{Start: engine.Earliest()})
		require.NoError(t, err)
		defer r.Close()
		for last = -1; int(last)+1 < upTo; {
			rec, err := r.Next(background)
			if err != nil {
				require.Equal(t, last+1, r.Position())
				_, again := r.NextBatch(background, make([]engine.Record, 9))
				require.Equal(t, err.Error(), again.Error())
				_, again = r.NextValues(background, make([][]byte, 9))
				require.Equal(t, err.Error(), again.Error())
				_, _, again = r.NextRun(background, 9)
				require.Equal(t, err.Error(), again.Error())
				require.NoError(t, r.Seek(engine.Latest()))
				require.NoError(t, r.Seek(engine.At(0)))
				_, ok := r.Next(background)
				require.NoError(t, ok, "elsewhere it goes on")
				return last, err
			}
			require.Equal(t, last+1, rec.Offset)
			last = rec.Offset
		}
		return last, nil
	},
	"Follow": func(t *testing.T, _ *engine.Engine, top *engine.Topic, upTo int) (last engine.Offset, err error) {
		last = -1
		for rec, err := range part(t, top, 0).Follow(background, 0) {
			if err != nil {
				return last, err
			}
			if last = rec.Offset; int(last)+1 == upTo {
				break
			}
		}
		return last, nil
	},
	"subscription":           subscribed(engine.SubscribeConfig{}),
	"subscription at once":   subscribed(engine.SubscribeConfig{Mode: engine.AtMostOnce}),
	"subscription by key":    subscribed(engine.SubscribeConfig{ByKey: engine.Parallelism{Handlers: 3}}),
	"subscription by hand":   subscribed(engine.SubscribeConfig{Mode: engine.Manual}),
	"subscription dedicated": subscribed(engine.SubscribeConfig{Dedicated: true}),
	"assigned group":         joined(engine.GroupConfig{}, engine.MemberConfig{}),
	"assigned group by key":  joined(engine.GroupConfig{}, engine.MemberConfig{ByKey: engine.Parallelism{Handlers: 2}}),
	"assigned group by hand": joined(engine.GroupConfig{Mode: engine.Manual}, engine.MemberConfig{}),
	"shared group":           joined(engine.GroupConfig{Kind: engine.Shared}, engine.MemberConfig{MaxConcurrency: 2}),
	"consumer":               polled(engine.GroupConfig{}),
	"consumer by hand":       polled(engine.GroupConfig{Mode: engine.Manual}),
	"shared consumer":        polled(engine.GroupConfig{Kind: engine.Shared}),
}

// seen notes the greatest offset that a handler has seen, and closes all when that is the last one.
type seen struct {
	mu   sync.Mutex
	last engine.Offset
	upTo int
	all  chan struct{}
}

func newSeen(upTo int) *seen { return &seen{last: -1, upTo: upTo, all: make(chan struct{})} }

func (s *seen) note(off engine.Offset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if off <= s.last {
		return
	}
	if s.last = off; int(off)+1 == s.upTo {
		close(s.all)
	}
}

func (s *seen) get() engine.Offset {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func subscribed(c engine.SubscribeConfig) func(*testing.T, *engine.Engine, *engine.Topic, int) (engine.Offset, error) {
	return func(t *testing.T, _ *engine.Engine, top *engine.Topic, upTo int) (engine.Offset, error) {
		c.Start = engine.Earliest()
		s := newSeen(upTo)
		sub, err := top.Subscribe(handle(func(m *engine.Message) error {
			s.note(m.Offset)
			return done(m, c.Mode)
		}), c)
		require.NoError(t, err)
		defer sub.Close()
		select {
		case <-s.all:
			return s.get(), nil
		case <-sub.Done():
			at := position(t, sub, 0)
			assert.Equal(t, s.get()+1, at)
			return s.get(), sub.Err()
		}
	}
}

// groups counts those of coldWays, so that each has a name.
var groups atomic.Int64

func aGroup(t *testing.T, e *engine.Engine, c engine.GroupConfig) *engine.Group {
	c.Topics, c.Start = []string{"t"}, engine.Earliest()
	for _, name := range e.Groups() { // the one from before the file was mended
		g := groupOf(t, e, name)
		return g
	}
	g, err := e.CreateGroup(fmt.Sprint("g", groups.Add(1)), c)
	require.NoError(t, err)
	return g
}

func joined(c engine.GroupConfig, mc engine.MemberConfig) func(*testing.T, *engine.Engine, *engine.Topic, int) (engine.Offset, error) {
	return func(t *testing.T, e *engine.Engine, _ *engine.Topic, upTo int) (engine.Offset, error) {
		s := newSeen(upTo)
		m, err := aGroup(t, e, c).Join(handle(func(m *engine.Message) error {
			s.note(m.Offset)
			return done(m, c.Mode)
		}), mc)
		require.NoError(t, err)
		defer m.Close()
		select {
		case <-s.all:
			return s.get(), nil
		case <-m.Done():
			return s.get(), m.Err()
		}
	}
}

func polled(c engine.GroupConfig) func(*testing.T, *engine.Engine, *engine.Topic, int) (engine.Offset, error) {
	return func(t *testing.T, e *engine.Engine, _ *engine.Topic, upTo int) (last engine.Offset, err error) {
		g := aGroup(t, e, c)
		con := consumer(t, g, engine.MemberConfig{})
		defer con.Close()
		for last = -1; int(last)+1 < upTo; {
			ms, err := con.Poll(background, 100)
			if err != nil {
				return last, err
			}
			for i := range ms {
				last = max(last, ms[i].Offset)
				if c.Mode == engine.Manual {
					require.NoError(t, ms[i].Ack())
				}
			}
		}
		return last, nil
	}
}
