package powercut_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leatlog/leat/engine"
)

var background = context.Background()

const (
	folderName = "data"
	openings   = 3 // so often the engine is opened
)

// author lives through a story.
type author struct {
	*story
	dir    string
	seed   uint64
	rounds int // so much is done by each goroutine of each opening
}

// rand returns a source of its own for somebody.
func (a *author) rand(who uint64) *rand.Rand { return rand.New(rand.NewPCG(a.seed, who)) }

// config is that of the engine.
func config(dir string) engine.Config {
	return engine.Config{Dir: dir, PositionsEvery: 5 * time.Millisecond}
}

// durable returns the configuration of a topic with small files, so that they are full soon.
func durable(l *life, partitions int, fileBytes int64) engine.TopicConfig {
	c := engine.TopicConfig{Partitions: partitions, Partitioner: engine.Explicit(), Durable: &engine.Durable{Sync: l.sync, FileBytes: fileBytes}}
	if l.retain > 0 {
		c.Retention.MaxRecords, c.OnFull = int64(l.retain), engine.DropOldest
	}
	return c
}

// create makes a topic.
func (a *author) create(e *engine.Engine, l *life, partitions int, fileBytes int64) (*engine.Topic, error) {
	a.so(func(now int) {
		l.begun, l.made, l.ends, l.gone = now, later, later, later
		l.partitions.begun = course{{now, engine.Offset(partitions)}}
		a.topics = append(a.topics, l)
	})
	top, err := e.CreateTopic(l.name, durable(l, partitions, fileBytes))
	if err != nil {
		return nil, err
	}
	a.so(func(now int) {
		l.id, l.made = top.ID(), now
		l.partitions.done = course{{now, engine.Offset(partitions)}}
	})
	return top, nil
}

// publish publishes n records to a partition, together.
func (a *author) publish(top *engine.Topic, l *life, i, n int, rng *rand.Rand) error {
	p, err := top.Partition(i)
	if err != nil {
		return err
	}
	strand := a.strand(l, i)
	rs := make([]engine.Record, n)
	for k := range rs {
		filler := make([]byte, []int{0, 20, 100, 700}[rng.IntN(4)])
		for f := range filler {
			filler[f] = byte(rng.Uint32())
		}
		rs[k].Value = fmt.Appendf(nil, "%s/%d/%016x/%s", l.name, i, rng.Uint64(), hex.EncodeToString(filler))
	}
	begun := a.position()
	if n == 1 {
		at, err := p.Publish(background, rs[0])
		if err != nil {
			return err
		}
		rs[0].Offset = at.Offset
	} else if err := p.PublishBatch(background, rs); err != nil {
		return err
	}
	a.so(func(now int) {
		for k, r := range rs {
			strand.records[rs[0].Offset+engine.Offset(k)] = record{string(r.Value), rs[0].Offset + engine.Offset(n), begun, now}
		}
	})
	a.note(&strand.durable, p.Durable())
	a.note(&strand.first, p.First())
	return nil
}

// flush makes a topic durable.
func (a *author) flush(top *engine.Topic, l *life) error {
	var next []engine.Offset
	for i := range top.Partitions() {
		p, err := top.Partition(i)
		if err != nil {
			return err
		}
		next = append(next, p.Next())
	}
	if err := top.Flush(background); err != nil {
		return err
	}
	for i, at := range next {
		a.note(&a.strand(l, i).durable, at)
	}
	return nil
}

// trim drops what the group has committed of a partition, but for some records.
func (a *author) trim(top *engine.Topic, l *life, g *engine.Group, i int) error {
	p, err := top.Partition(i)
	if err != nil {
		return err
	}
	low, err := g.Committed(l.name, i)
	if err != nil || low < 10 {
		return err
	}
	low -= 5
	strand := a.strand(l, i)
	a.note(&strand.low.begun, low)
	if err := p.TruncateBefore(background, low); err != nil {
		return err
	}
	a.note(&strand.low.done, low)
	return nil
}

// consume polls, commits, and now and then makes that safe.
func (a *author) consume(g *engine.Group, rng *rand.Rand) error {
	c, err := g.Consumer(engine.MemberConfig{})
	if err != nil {
		return err
	}
	defer c.Close()
	polled := map[place]engine.Offset{}
	for range a.rounds {
		ctx, cancel := context.WithTimeout(background, time.Millisecond)
		ms, err := c.Poll(ctx, 1+rng.IntN(8))
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		for _, m := range ms {
			at := place{m.Topic, int(m.Partition)}
			polled[at] = m.Offset + 1
			a.note(&a.place(at.topic, at.partition).begun, m.Offset+1)
		}
		if rng.IntN(3) == 0 {
			if err := c.CommitSync(background); err != nil {
				return err
			}
			for at, off := range polled {
				a.note(&a.place(at.topic, at.partition).done, off)
			}
		}
	}
	return nil
}

// again makes topics of one name, and deletes them.
func (a *author) again(e *engine.Engine, rng *rand.Rand) error {
	for range a.rounds / 8 {
		l := &life{name: "again", sync: engine.Always}
		top, err := a.create(e, l, 1+rng.IntN(2), 4<<10)
		if err != nil {
			return err
		}
		for range 2 + rng.IntN(3) {
			if err := a.publish(top, l, 0, 1, rng); err != nil {
				return err
			}
		}
		a.so(func(now int) { l.ends = now })
		if err := e.DeleteTopic("again"); err != nil {
			return err
		}
		a.so(func(now int) { l.gone = now })
	}
	return nil
}

// cast are the topics that stay.
type cast struct{ always, interval, never, short *life }

func newCast() *cast {
	return &cast{
		&life{name: "always", sync: engine.Always},
		&life{name: "interval", sync: engine.Interval(2 * time.Millisecond)},
		&life{name: "never", sync: engine.Never},
		&life{name: "short", sync: engine.Always, retain: 32},
	}
}

var grouped = []string{"always", "interval", "never"}

// write lives through the whole story.
func (a *author) write() error {
	c := newCast()
	for life := range openings {
		if err := a.live(c, life); err != nil {
			return fmt.Errorf("opening %d: %w", life, err)
		}
	}
	return nil
}

// live opens the engine, does many things at once, and closes it.
func (a *author) live(c *cast, n int) (err error) {
	e, err := engine.Open(config(a.dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }() // the second time it says nothing
	tops := map[*life]*engine.Topic{}
	for _, x := range []struct {
		l          *life
		partitions int
		fileBytes  int64
	}{{c.always, 2, 6 << 10}, {c.interval, 1, 8 << 10}, {c.never, 1, 4 << 10}, {c.short, 1, 4 << 10}} {
		if n == 0 {
			tops[x.l], err = a.create(e, x.l, x.partitions, x.fileBytes)
		} else {
			tops[x.l], err = e.Topic(x.l.name)
		}
		if err != nil {
			return err
		}
	}
	var g *engine.Group
	if n == 0 {
		a.so(func(now int) { a.group = &members{begun: now, made: later, at: map[place]*step{}} })
		g, err = e.CreateGroup("group", engine.GroupConfig{Topics: grouped, Start: engine.Earliest(), NonGating: true})
		a.so(func(now int) { a.group.made = now })
	} else {
		g, err = e.Group("group")
	}
	if err != nil {
		return err
	}
	if err := a.all(e, c, tops, g, n); err != nil {
		return err
	}
	var closed []func() // what is so once Close has returned
	for _, l := range []*life{c.always, c.interval, c.never, c.short} {
		for i := range tops[l].Partitions() {
			p, err := tops[l].Partition(i)
			if err != nil {
				return err
			}
			next := p.Next()
			closed = append(closed, func() { a.note(&a.strand(l, i).durable, next) })
			if l.retain > 0 {
				continue // the group does not have it
			}
			at, err := g.Committed(l.name, i)
			if err != nil {
				return err
			}
			closed = append(closed, func() { a.note(&a.place(l.name, i).done, at) })
		}
	}
	if err := e.Close(); err != nil {
		return err
	}
	for _, f := range closed {
		f()
	}
	return nil
}

// all does everything at once.
func (a *author) all(e *engine.Engine, c *cast, tops map[*life]*engine.Topic, g *engine.Group, n int) error {
	who, grow := uint64(n)*100, n == 1
	var wg sync.WaitGroup
	errs := make(chan error, 100)
	do := func(f func(rng *rand.Rand) error) {
		who++
		rng := a.rand(who)
		wg.Go(func() {
			if err := f(rng); err != nil {
				errs <- err
			}
		})
	}
	publishes := func(l *life, times int, more func(n int) error) {
		do(func(rng *rand.Rand) error {
			for n := range times {
				if err := a.publish(tops[l], l, rng.IntN(tops[l].Partitions()), 1+max(0, rng.IntN(8)-4), rng); err != nil {
					return fmt.Errorf("%s: %w", l.name, err)
				}
				if err := more(n); err != nil {
					return fmt.Errorf("%s: %w", l.name, err)
				}
			}
			return nil
		})
	}
	nothing := func(int) error { return nil }
	publishes(c.always, a.rounds, nothing)
	publishes(c.always, a.rounds, nothing)
	publishes(c.always, a.rounds, func(n int) error {
		switch {
		case grow && n == a.rounds/2:
			more := tops[c.always].Partitions() + 1
			a.note(&c.always.partitions.begun, engine.Offset(more))
			if err := tops[c.always].SetPartitions(more); err != nil {
				return err
			}
			a.note(&c.always.partitions.done, engine.Offset(more))
		case n%8 == 7:
			return a.trim(tops[c.always], c.always, g, 0)
		}
		return nil
	})
	publishes(c.short, a.rounds, nothing)
	publishes(c.interval, 2*a.rounds, nothing)
	publishes(c.never, 2*a.rounds, func(n int) error {
		if n%10 != 9 {
			return nil
		}
		return a.flush(tops[c.never], c.never)
	})
	do(func(rng *rand.Rand) error { return a.consume(g, rng) })
	do(func(rng *rand.Rand) error { return a.again(e, rng) })
	wg.Wait()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}
