package engine

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
)

// list is a slice that is never edited but replaced by a longer one, while others go through it without a lock.
type list[T any] struct {
	// at is stored by whoever makes the slice longer, under a lock of the list's owner, and loaded by everybody. Storing it
	// publishes the slice and what is in it. It is nil before the first store.
	at atomic.Pointer[[]T]
}

// load returns the slice. It must have been stored.
func (l *list[T]) load() []T { return *l.at.Load() }

func (l *list[T]) store(all []T) { l.at.Store(&all) }

// SetPartitions adds partitions, so that there are n; the number that there are already does nothing, and fewer are refused
// with ErrShrink. A publish whose partition has been chosen goes there; the next one chooses among n. Most keys get another
// partition with ByKey then, and their records from before and after are not in one order any more.
//
// Each subscription that there is gets the new partitions from their first record on, wherever it started, and misses
// nothing; so does a named one that comes back, for partitions that it did not know, if it asks for no other Start. Readers
// are of one partition: who wants to read the new ones has to open more. It may be called from a handler.
func (t *Topic) SetPartitions(n int) error {
	if n < 1 || n > maxPartitions {
		return configError("Partitions is %d, not 1 to %d", n, maxPartitions)
	}
	before, err := t.grow(n)
	if err == nil && before < n {
		t.e.log(slog.LevelInfo, "leat: partitions added", "topic", t.name, "id", t.id, "before", before, "partitions", n)
	}
	return err
}

// grow adds partitions, and returns how many there were.
//
// # Proof
//
// Numbers are dense. Everything that goes by the present number is under growing.
//
// Nothing is missed. A partition comes into parts, from which publishers choose, after it has a lane, with a gate, in each
// subscription that lives then. One that comes later finds it in made, and has a lane of its own making.
//
// Nothing is left behind. made gets longer under mu and only while the topic has no cause. Whatever ends the topic sets the
// cause under mu and then goes by made, so it closes all, also those that are not in parts yet; if those get there after that
// a publish finds them closed. Drain sets its mark and then takes mu: either the mark is seen here, or Drain finds the new
// ones in made. A subscription that ends has its err set under its mu, under which lanes are added only while it is nil,
// and then goes by its lanes.
func (t *Topic) grow(n int) (before int, err error) {
	t.growing.Lock()
	defer t.growing.Unlock()
	old := t.parts.load()
	before = len(old)
	switch err := t.refusal(); {
	case err != nil:
		return before, err
	case n < before:
		return before, fmt.Errorf("%w: %d of topic %s, which has %d", ErrShrink, n, t.name, before)
	case n == before:
		return before, nil
	}
	var files []*kept
	if t.cfg.Durable != nil {
		if err := t.e.enterFiles(); err != nil {
			return before, err
		}
		defer t.e.files.Done()
		entry := t.e.catalog.topic(t.id.String())
		if entry == nil {
			return before, ErrTopicDeleted
		}
		if files, err = t.e.makeFiles(entry, t.id, before, n, &t.cfg); err != nil {
			return before, err
		}
	}
	parts := t.newPartitions(old, n, files)
	if err := t.add(parts, before); err != nil {
		for _, k := range files {
			_ = k.store.Abandon() // they are there, and empty
		}
		return before, err
	}
	t.e.topicGrown(t, n)
	t.parts.store(parts)
	return before, nil
}

// add makes the partitions from before on the topic's, and gives the subscriptions their lanes.
func (t *Topic) add(parts []*Partition, before int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refuses(); err != nil {
		return err // nothing of them runs
	}
	t.run(parts[before:])
	t.made.store(parts)
	for _, s := range t.subs {
		s.grow(parts[before:])
	}
	return nil
}

// refusal says why the topic can have no more partitions, or returns nil.
func (t *Topic) refusal() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refuses()
}

// refuses is refusal for a caller that holds mu.
func (t *Topic) refuses() error {
	switch {
	case t.cause != nil:
		return t.cause
	case t.e.draining.Load():
		return ErrDraining
	}
	return nil
}

// allMade returns all partitions, and those to whom the topic refuses more from now on know that it does.
func (t *Topic) allMade() []*Partition {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.made.load()
}

// grow adds lanes for new partitions, unless the subscription has ended. The caller holds t.mu.
func (s *Subscription) grow(parts []*Partition) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	old := s.lanes.load()
	lanes := slices.Grow(slices.Clone(old), len(parts))
	for _, p := range parts {
		l, err := s.newLane(p, Earliest().in(p.p, startLatest))
		if err != nil {
			panic(err) // only a start can fail, and this one does not
		}
		if s.paused {
			l.Pause()
		}
		lanes = append(lanes, l)
	}
	s.left += len(parts)
	s.lanes.store(lanes)
	s.mu.Unlock()
	for _, l := range lanes[len(old):] { // if the subscription has ended meanwhile they are stopped, and end now
		l.Start()
	}
}

// topicGrown is told that a topic is about to have n partitions. They are in t.made and run, publishers cannot choose them
// before it returns, and t.growing is held: it sees one growth after the other, must not wait, and may take t.mu. It may
// come when the topic has just ended, even after topicEnded.
func (e *Engine) topicGrown(t *Topic, n int) {
	for _, g := range t.readers() {
		g.topicGrown(t)
	}
}

// topicEnded is told that a topic has ended, for t.cause, when its partitions have been closed. It is called under no lock,
// maybe by a handler, and must neither wait nor run code of the user's.
func (e *Engine) topicEnded(t *Topic) {
	for _, g := range t.readers() {
		g.topicEnded(t, t.cause)
	}
}

// readers returns the groups that read the topic.
func (t *Topic) readers() []*Group {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.groups))
}
