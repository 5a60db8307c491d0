package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/segment"
)

// TopicID tells a topic from every other, also from one that had the same name before it.
type TopicID [16]byte

// String returns the ID in hexadecimal digits.
func (id TopicID) String() string { return hex.EncodeToString(id[:]) }

// Topic is a named set of partitions. All its methods may be called from any goroutine.
type Topic struct {
	// Immutable after CreateTopic.
	e    *Engine
	name string
	id   TopicID
	cfg  TopicConfig // Partitions is how many it began with

	// parts are the partitions that publishers choose from, and everybody sees. It is replaced under growing, and loaded by
	// each publish. Storing it publishes the partitions, and the lanes that wait for what comes into them.
	parts list[*Partition]
	// made are all partitions: also those that are not in parts yet, because somebody has still to be told that they come. It
	// is replaced under mu while the topic lives, and loaded by whoever must not miss one. Storing it publishes them.
	made list[*Partition]

	pace partition.Pace

	// growing is held while partitions are added, and while the files of a topic that has ended are removed; taken before mu, and by
	// nobody who ends something.
	growing sync.Mutex

	down chan struct{} // closed when the partitions have ended and their memory is given back
	gone chan struct{} // closed when no handler or callback runs any more, either

	mu        sync.Mutex
	subs      map[string]*Subscription   // under mu: those that have not ended; nil once the topic has
	closed    map[*Subscription]struct{} // under mu: those that have ended but for a lane, whose handler may be running
	groups    map[*Group]struct{}        // under mu: those that read the topic
	positions map[string]remembered      // under mu: where named subscriptions ended
	cause     error                      // under mu: what ended the topic
}

// newTopicID returns an ID that nobody has.
func newTopicID() (id TopicID) {
	rand.Read(id[:])
	return id
}

// parseTopicID is the inverse of String.
func parseTopicID(s string) (id TopicID, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || copy(id[:], b) != len(id) || len(b) != len(id) {
		return id, fmt.Errorf("%w: topic ID %q", ErrCorrupt, s)
	}
	return id, nil
}

// newTopic makes a topic. files has what its partitions keep their records in; it is empty if they are in memory.
func newTopic(e *Engine, name string, c TopicConfig, id TopicID, files []*kept) *Topic {
	t := &Topic{
		e:         e,
		id:        id,
		name:      name,
		cfg:       c,
		down:      make(chan struct{}),
		gone:      make(chan struct{}),
		subs:      map[string]*Subscription{},
		closed:    map[*Subscription]struct{}{},
		positions: map[string]remembered{},
	}
	parts := t.newPartitions(nil, c.Partitions, files)
	t.run(parts)
	t.made.store(parts)
	t.parts.store(parts)
	return t
}

// newPartitions returns a copy of parts with new ones behind it, so that there are n. Nothing of them runs. files are those of the
// new ones, if they have any.
func (t *Topic) newPartitions(parts []*Partition, n int, files []*kept) []*Partition {
	e, c := t.e, &t.cfg
	old := len(parts)
	parts = append(make([]*Partition, 0, n), parts...)
	for i := old; i < n; i++ {
		k := &kept{}
		if len(files) > 0 {
			k = files[i-old]
		}
		k.part = partition.New(partition.Config{
			Index:          i,
			Limits:         c.limits(),
			OnFull:         c.OnFull,
			MaxRecordBytes: int64(c.MaxRecordBytes),
			HandoverSlots:  c.HandoverSlots,
			Log: segment.Config{
				SegmentBytes:   c.SegmentBytes,
				SegmentRecords: c.SegmentRecords,
				First:          c.first,
				Partition:      int32(i),
				Pool:           e.pool,
			},
			Clock:    &e.clock,
			Workers:  e.calls,
			Crowd:    e.crowd,
			Pace:     &t.pace,
			OnWorker: e.onWorker,
			Panicked: t.callbackPanicked,
			Store:    k.store,
			Loaded:   k.mem,
		})
		if e.cfg.ReadOnly {
			k.part.Broken(ErrReadOnly)
		}
		parts = append(parts, &Partition{t, k.part})
	}
	return parts
}

// run starts partitions that are new.
func (t *Topic) run(parts []*Partition) {
	for _, p := range parts {
		go p.p.Run()
	}
}

// Name returns the topic's name.
func (t *Topic) Name() string { return t.name }

// ID returns the topic's identity.
func (t *Topic) ID() TopicID { return t.id }

// Config returns the configuration, with every default filled in, and the present number of partitions.
func (t *Topic) Config() TopicConfig {
	c := t.cfg
	c.Partitions = t.Partitions()
	if c.Durable != nil {
		d := *c.Durable
		c.Durable = &d
	}
	return c
}

// Partitions returns how many partitions the topic has.
func (t *Topic) Partitions() int { return len(t.parts.load()) }

// Partition returns one partition.
func (t *Topic) Partition(i int) (*Partition, error) { return t.at(t.parts.load(), i) }

// at returns one of parts.
func (t *Topic) at(parts []*Partition, i int) (*Partition, error) {
	if i < 0 || i >= len(parts) {
		return nil, t.unknownPartition(i, len(parts))
	}
	return parts[i], nil
}

func (t *Topic) unknownPartition(i, n int) error {
	return fmt.Errorf("%w: %d of topic %s, which has %d", ErrUnknownPartition, i, t.name, n)
}

// choose asks the partitioner for one of parts. They are all that one publish goes by: there may be more before it is over.
// Partitioners of ours are called by their types, so that the record stays on the caller's stack.
func (t *Topic) choose(parts []*Partition, r *Record) (*Partition, error) {
	n := len(parts)
	switch p := t.cfg.Partitioner.(type) {
	case *byKey:
		if n == 1 {
			return parts[0], nil
		}
		return parts[p.Partition(r, n)], nil
	case *roundRobin:
		return parts[p.Partition(r, n)], nil
	case explicit:
		return t.at(parts, int(r.Partition))
	default:
		return t.ask(p, parts, *r)
	}
}

// ask calls a partitioner of the user's.
func (t *Topic) ask(p Partitioner, parts []*Partition, r Record) (chosen *Partition, err error) {
	defer func() {
		if v := recover(); v != nil {
			chosen, err = nil, fmt.Errorf("%w: %v", ErrPartitioner, v)
		}
	}()
	return t.at(parts, p.Partition(&r, len(parts)))
}

// Publish appends r to the partition that the topic's Partitioner chooses, and returns where once readers can see it. It
// waits for the appender and, under Block, for room, until ctx ends.
func (t *Topic) Publish(ctx context.Context, r Record) (Published, error) {
	p, err := t.choose(t.parts.load(), &r)
	if err != nil {
		return Published{}, err
	}
	return p.Publish(ctx, r)
}

// TryPublish is Publish that never waits: the record is on its way to the log, behind everything that the caller has
// published before, or the error is ErrFull. Should a record that is on its way fail after all, because the topic ends or
// is full under Reject, or an Appender takes the partition, Stats counts it.
func (t *Topic) TryPublish(r Record) error {
	p, err := t.choose(t.parts.load(), &r)
	if err != nil {
		return err
	}
	return p.TryPublish(r)
}

// PublishAsync copies r and returns; it waits only for room in the hand-over to the appender, until ctx ends, and does not
// look at ctx if there is room. If done is not nil it is called with the result, once, on a worker, in offset order for each
// partition. After an error done is not called.
func (t *Topic) PublishAsync(ctx context.Context, r Record, done func(Published, error)) error {
	p, err := t.choose(t.parts.load(), &r)
	if err != nil {
		return err
	}
	return p.PublishAsync(ctx, r, done)
}

// PublishBatch publishes the records, those of one partition as one batch, contiguous and visible at once, and sets
// Partition and Offset of each. If some fail the error is a *BatchError that says which: those of a partition fail together,
// but for one for which no partition was found. An empty batch does nothing.
func (t *Topic) PublishBatch(ctx context.Context, rs []Record) error {
	parts := t.parts.load()
	if len(parts) == 1 && len(rs) > 0 && t.alwaysFirst() {
		err := parts[0].PublishBatch(ctx, rs)
		if err == nil {
			return nil
		}
		return &BatchError{Errs: slices.Repeat([]error{err}, len(rs))}
	}
	byPart := make([][]int, len(parts))
	errs := make([]error, len(rs))
	failed := false
	for i := range rs {
		p, err := t.choose(parts, &rs[i])
		if err != nil {
			errs[i], failed = err, true
			continue
		}
		byPart[p.Index()] = append(byPart[p.Index()], i)
	}
	var batch []Record
	for part, is := range byPart {
		if len(is) == 0 {
			continue
		}
		batch = batch[:0]
		for _, i := range is {
			batch = append(batch, rs[i])
		}
		err := parts[part].PublishBatch(ctx, batch)
		for j, i := range is {
			if err != nil {
				errs[i], failed = err, true
				continue
			}
			rs[i].Partition, rs[i].Offset = batch[j].Partition, batch[j].Offset
		}
	}
	if failed {
		return &BatchError{Errs: errs}
	}
	return nil
}

// alwaysFirst reports whether all records of a topic with one partition go there without asking.
func (t *Topic) alwaysFirst() bool {
	switch t.cfg.Partitioner.(type) {
	case *byKey, *roundRobin:
		return true
	}
	return false
}

// Flush returns once every publish that was accepted before it is in its log or has failed, and its callback has run. Of a durable
// topic all that is visible then is durable as well, whatever its Sync says.
func (t *Topic) Flush(ctx context.Context) error {
	for _, p := range t.parts.load() {
		if err := p.Flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// halt ends the topic for a reason, of which the first counts. It waits for nobody and runs no code of the user's. The caller
// has to tell about the subscriptions that it returns.
func (t *Topic) halt(cause error) []*Subscription {
	t.mu.Lock()
	if t.cause != nil {
		t.mu.Unlock()
		return nil
	}
	t.cause = cause
	subs := make([]*Subscription, 0, len(t.subs))
	var named []*Subscription
	for _, s := range t.subs {
		subs = append(subs, s)
		if s.named {
			named = append(named, s)
		}
		t.closed[s] = struct{}{}
	}
	t.subs = nil
	t.mu.Unlock()
	// The partitions first: the gates of the subscriptions, when they go, must not make room for publishers that are to fail.
	for _, p := range t.made.load() { // for good: none is added to a topic that has ended
		p.p.Close(cause)
	}
	t.e.topicEnded(t)
	subs = slices.DeleteFunc(subs, func(s *Subscription) bool { return !s.halt(cause) })
	go t.wind(named)
	return subs
}

// wind waits for what an ended topic has going on, and gives back what it has. named are the subscriptions that ended with it.
func (t *Topic) wind(named []*Subscription) {
	parts := t.made.load()
	for _, p := range parts {
		<-p.p.Done()
	}
	for _, p := range parts {
		p.p.Free()
	}
	t.mu.Lock()
	cause := t.cause
	t.mu.Unlock()
	t.closeFiles(cause)
	close(t.down)
	for _, p := range parts {
		p.p.FlushCallbacks()
	}
	for _, s := range t.subscriptions() {
		<-s.done
	}
	t.mu.Lock()
	for _, s := range named {
		t.positions[s.id] = remembered{s.seq, s.positions()} // for the keeper
	}
	t.mu.Unlock()
	t.e.forget(t)
	close(t.gone)
}

// subscriptions returns those that have not ended, or whose handlers still run.
func (t *Topic) subscriptions() []*Subscription {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*Subscription, 0, len(t.subs)+len(t.closed))
	for _, s := range t.subs {
		all = append(all, s)
	}
	for s := range t.closed {
		all = append(all, s)
	}
	return all
}

func (t *Topic) callbackPanicked(v any, stack []byte) {
	t.e.log(slog.LevelError, "leat: callback of PublishAsync panicked", "topic", t.name, "panic", v, "stack", string(stack))
	if f := t.e.cfg.Hooks.CallbackPanicked; f != nil {
		t.e.guard(func() { f(t.name, v, stack) })
	}
}
