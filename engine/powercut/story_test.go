package powercut_test

import (
	"sync"

	"github.com/leatlog/leat/engine"
)

// story is what the user of an engine has done, and has been told, with the position of the disk's log at each: what was told
// before a position has to be there after every power cut from that position on, and what was begun after it cannot be.
type story struct {
	position func() int

	mu     sync.Mutex
	topics []*life // under mu, and so is all that is in them
	group  *members
}

// mark says that something had a value at a position.
type mark struct {
	at    int
	value engine.Offset
}

// course is how something went that only grows.
type course []mark

// upTo returns the largest value that it had by a position.
func (c course) upTo(at int) (v engine.Offset) {
	for _, m := range c {
		if m.at <= at {
			v = max(v, m.value)
		}
	}
	return v
}

// within returns the first value that it had at a position or after it.
func (c course) within(at int) (v engine.Offset, ok bool) {
	for _, m := range c {
		if m.at >= at && (!ok || m.value < v) {
			v, ok = m.value, true
		}
	}
	return v, ok
}

// step is something that takes a while.
type step struct{ begun, done course }

// later stands for the position of what has not happened.
const later = int(^uint(0) >> 1)

// life is a topic from its creation to its deletion. Another topic may have its name later.
type life struct {
	name        string
	id          engine.TopicID
	sync        engine.Sync
	retain      int // MaxRecords, and then DropOldest; or 0
	begun, made int // its creation
	ends, gone  int // its deletion
	partitions  step
	parts       []*strand
}

// strand is a partition.
type strand struct {
	records map[engine.Offset]record
	durable course // everything below was durable
	low     step   // TruncateBefore
	first   course // where it began
}

// record was published.
type record struct {
	value        string
	until        engine.Offset // of the batch: the one after its last
	begun, acked int
}

// members are a group: where it was in each partition of each topic.
type members struct {
	begun, made int
	at          map[place]*step // begun: records were polled; done: the commit was made safe
}

type place struct {
	topic     string
	partition int
}

// so does something to the story.
func (s *story) so(f func(now int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.position())
}

// note adds what is so now.
func (s *story) note(c *course, v engine.Offset) {
	s.so(func(now int) { *c = append(*c, mark{now, v}) })
}

// strand returns a partition.
func (s *story) strand(l *life, p int) *strand {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(l.parts) <= p {
		l.parts = append(l.parts, &strand{records: map[engine.Offset]record{}})
	}
	return l.parts[p]
}

// place returns where the group is.
func (s *story) place(topic string, p int) *step {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{topic, p}
	if s.group.at[at] == nil {
		s.group.at[at] = &step{}
	}
	return s.group.at[at]
}
