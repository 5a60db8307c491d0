package powercut_test

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/leatlog/leat/engine"
)

// judge checks what somebody finds who opens an engine after a power cut. Its zero value is right for the first one.
type judge struct {
	told  func(spot)     // is told of each record that has been published after the cut; or nil
	least func(spot) int // how many of those have to be there; nil is none

	// For proving that it looks.
	neverIsSafe bool // what was acknowledged is to be there whatever the topic's policy
	tooEarly    bool // what was being published is to be there
}

// spot is a partition of a topic.
type spot struct {
	id        engine.TopicID
	partition int
	sync      engine.Sync
}

// refusal is what an engine says that finds damage.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// after is the value of records that are published after the power cut.
const after = "after the cut"

// matches checks what an engine finds in a directory after a power cut at a position, that it can be gone on with, and that
// it stays so.
func (j judge) matches(s *story, dir string, at int) error {
	first, err := j.look(s, dir, at, 0)
	if err != nil {
		return err
	}
	second, err := j.look(s, dir, at, 1)
	if err != nil {
		return fmt.Errorf("opened again: %w", err)
	}
	if first != second {
		return fmt.Errorf("first there was\n%s\nand then\n%s", first, second)
	}
	return nil
}

// look opens an engine, checks it, publishes a record to each partition, and closes it. It returns what it has seen.
func (j judge) look(s *story, dir string, at, before int) (seen string, err error) {
	var ahead error
	c := config(dir)
	c.Hooks.Truncated = func(_, _ string, err *engine.TruncatedError) { ahead = err }
	e, err := engine.Open(c)
	if err != nil {
		return "", refusal{fmt.Errorf("open: %w", err)}
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if ahead != nil {
		return "", fmt.Errorf("a position was written that was not safe: %w", ahead)
	}
	var b strings.Builder
	known := map[engine.TopicID]bool{}
	for _, l := range s.topics {
		if err := j.topic(e, l, at, before, &b, known); err != nil {
			return "", fmt.Errorf("topic %s: %w", l.name, err)
		}
	}
	for _, name := range e.Topics() {
		top, err := e.Topic(name)
		if err != nil {
			return "", err
		}
		if !known[top.ID()] {
			return "", fmt.Errorf("there is a topic %s, %v, that should not be there", name, top.ID())
		}
	}
	if err := leftovers(dir, known); err != nil {
		return "", err
	}
	if err := s.positions(e, at, &b); err != nil {
		return "", fmt.Errorf("group: %w", err)
	}
	for _, name := range e.Topics() {
		top, err := e.Topic(name)
		if err != nil {
			return "", err
		}
		for i := range top.Partitions() {
			if _, err := top.Publish(background, engine.Record{Partition: int32(i), Value: []byte(after)}); err != nil {
				return "", fmt.Errorf("going on: %w", err)
			}
			if j.told != nil {
				j.told(spot{top.ID(), i, top.Config().Durable.Sync})
			}
		}
	}
	return b.String(), nil
}

// leftovers looks for directories that are of no topic.
func leftovers(dir string, known map[engine.TopicID]bool) error {
	names := map[string]bool{}
	for id := range known {
		names[id.String()] = true
	}
	entries, err := os.ReadDir(dir)
	for _, x := range entries {
		if x.IsDir() && !names[x.Name()] {
			err = errors.Join(err, fmt.Errorf("directory %s is of no topic", x.Name()))
		}
	}
	return err
}

// topic looks at a topic.
func (j judge) topic(e *engine.Engine, l *life, at, before int, b *strings.Builder, known map[engine.TopicID]bool) error {
	top, err := e.Topic(l.name)
	switch {
	case err == nil && top.ID() == l.id:
	case err != nil && !errors.Is(err, engine.ErrUnknownTopic):
		if l.begun > at || l.gone <= at {
			return nil // it is about another one of the name, or about one that should not be there
		}
		return refusal{err}
	case l.made <= at && at < l.ends:
		return fmt.Errorf("it is lost: %v", err)
	default:
		return nil
	}
	known[l.id] = true
	if l.begun > at || l.gone <= at {
		return errors.New("it should not be there")
	}
	if n := engine.Offset(top.Partitions()); n < l.partitions.done.upTo(at) || n > l.partitions.begun.upTo(at) {
		return fmt.Errorf("it has %d partitions, not %d to %d", n, l.partitions.done.upTo(at), l.partitions.begun.upTo(at))
	}
	for i := range top.Partitions() {
		p, err := top.Partition(i)
		if err != nil {
			return err
		}
		strand := &strand{}
		if i < len(l.parts) {
			strand = l.parts[i]
		}
		own := before
		if j.least != nil {
			own += j.least(spot{l.id, i, l.sync})
		}
		if err := j.partition(p, l, strand, at, own, b); err != nil {
			return fmt.Errorf("partition %d: %w", i, err)
		}
	}
	return nil
}

// partition looks at a partition.
func (j judge) partition(p *engine.Partition, l *life, s *strand, at, least int, b *strings.Builder) error {
	first, next, own := p.First(), p.Next(), 0
	off := first
	for o, r := range p.Records(first) {
		if o != off {
			return fmt.Errorf("offset %d comes after %d", o, off-1)
		}
		off++
		v := string(r.Value)
		if v == after {
			own++
			continue
		}
		switch want, ok := s.records[o]; {
		case own > 0:
			return fmt.Errorf("offset %d: %.60q behind one that was published after the cut", o, v)
		case !ok:
			return fmt.Errorf("offset %d: %.60q, which was not published there", o, v)
		case want.value != v:
			return fmt.Errorf("offset %d: %.60q, not %.60q", o, v, want.value)
		case want.begun > at:
			return fmt.Errorf("offset %d was published after the cut", o)
		}
		if l.retain == 0 {
			fmt.Fprintln(b, l.name, l.id, p.Index(), o, v)
		}
	}
	if off != next {
		return fmt.Errorf("it ends at %d, and its records at %d", next, off)
	}
	if own < least {
		return fmt.Errorf("%d records that were published after the cut are there, not %d", own, least)
	}
	end := next - engine.Offset(own)
	if last, ok := s.records[end-1]; ok && end > first && last.until != end {
		return fmt.Errorf("it ends at %d, within a batch that ends at %d", end, last.until)
	}
	// Where it may begin at most.
	low := s.low.begun.upTo(at)
	if l.retain > 0 {
		low = max(low, next-engine.Offset(l.retain*3/4)) // whole segments are dropped
		if within, ok := s.first.within(at); ok {
			low = max(low, within)
		}
	}
	if first > low || first < s.low.done.upTo(at) {
		return fmt.Errorf("it begins at %d, not at %d to %d", first, s.low.done.upTo(at), low)
	}
	safe := s.durable.upTo(at)
	for o, r := range s.records {
		acked := r.acked <= at || j.tooEarly && r.begun <= at
		if acked && o >= end && (l.sync == engine.Always || j.neverIsSafe || o < safe) {
			return fmt.Errorf("offset %d is lost (acknowledged at %d of %d, and all below %d was durable): it ends at %d", o, r.acked, at,
				safe, end)
		}
	}
	return nil
}

// positions looks where the group is.
func (s *story) positions(e *engine.Engine, at int, b *strings.Builder) error {
	g, err := e.Group("group")
	switch {
	case err == nil && s.group.begun > at:
		return errors.New("it should not be there")
	case errors.Is(err, engine.ErrUnknownGroup) && s.group.made > at:
		return nil
	case err != nil:
		return refusal{err}
	}
	for _, name := range grouped {
		top, err := e.Topic(name)
		if err != nil {
			return err
		}
		for i := range top.Partitions() {
			p, err := top.Partition(i)
			if err != nil {
				return err
			}
			off, err := g.Committed(name, i)
			if err != nil {
				return err
			}
			var was step
			if x := s.group.at[place{name, i}]; x != nil {
				was = *x
			}
			most := max(was.begun.upTo(at), p.First())
			if off < was.done.upTo(at) || off > most || off > p.Next() {
				return fmt.Errorf("it is at %d of %s, partition %d, not at %d to %d, where the log ends at %d", off, name, i,
					was.done.upTo(at), most, p.Next())
			}
			fmt.Fprintln(b, "group", name, i, off)
		}
	}
	return nil
}

// refused reports whether an engine has found damage.
func refused(err error) bool {
	var r refusal
	return errors.As(err, &r) && errors.Is(err, engine.ErrCorrupt)
}
