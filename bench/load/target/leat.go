package target

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/number"
	"github.com/leatlog/leat/bench/load/stream"
	"github.com/leatlog/leat/cursor"
	"github.com/leatlog/leat/engine"
)

// Leat is Leat: one topic in memory that keeps 16 MiB in each partition and makes producers wait for the slowest reader or
// subscriber (the default policy), so that nothing is lost. Where there are more than 256 partitions, of all stages, each keeps less, 4 GiB
// all together as long as each has room for four messages, and where there are more than 1024 each has fewer slots for records on their way.
// What does not fit even so is refused.
//
// Ways to publish: async (the default) hands over with PublishAsync, sync waits with Publish until the record is committed,
// batch collects 64 messages for each partition, fewer where all batches together would be more than 2 GiB, and hands them over with
// PublishBatch (without their keys), appender has each partition for itself, and so has reserve, which makes up to 64 messages in place
// and shows them at once.
//
// Wait is how pull readers wait: park (the default), yield, spin.
//
// With Sync it is a durable topic; otherwise it is in memory. It is a load.GroupTarget, too.
type Leat struct{}

const (
	leatBytes   = 16 << 20 // kept in each partition: stays in the caches, and lets a reader fall behind
	leatBatch   = 64       // messages of a batch
	leatWindow  = 256      // records that a pull reader takes at once, and
	leatFew     = 16       // how many at the least, where there are so many readers that all have more than
	leatWindows = 1 << 18
	leatFiles   = 16 << 20 // bytes of a file
	leatAll     = 4 << 30  // kept in all partitions together, as long as each keeps leatLeast
	leatLeast   = 32 << 10
	leatMany    = 1024 // partitions: where there are more, each has only about leatSlots slots for what is on its way
	leatSlots   = 64
	leatHeld    = 4        // messages of the largest size that each partition has room for at the least
	leatDead    = 64 << 20 // bytes of dead letters in each partition
)

// Name implements load.Target.
func (Leat) Name() string { return "leat" }

// Open implements load.Target.
func (Leat) Open(s load.Scenario) (load.Instance, error) {
	l, err := open(s)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// KeepsFiles implements load.DurableTarget.
func (Leat) KeepsFiles() {}

// Check implements load.Checker.
func (Leat) Check(s load.Scenario) error {
	if _, err := durable(s); err != nil {
		return err
	}
	if _, _, err := ways(s); err != nil {
		return err
	}
	_, err := keeps(&s)
	return err
}

// ways returns how a scenario wants to publish and wait.
func ways(s load.Scenario) (publish string, wait engine.Wait, err error) {
	if publish, err = oneOf("leat", "publish", s.Publish, "async", "sync", "batch", "appender", "reserve"); err != nil {
		return "", 0, err
	}
	name, err := oneOf("leat", "wait", s.Wait, "park", "yield", "spin")
	if err != nil {
		return "", 0, err
	}
	if (publish == "appender" || publish == "reserve") && s.Producers > s.Partitions {
		return "", 0, tooManyAppenders(s)
	}
	wait, err = cursor.ParseWait(name)
	return publish, wait, err
}

// open makes an engine with a topic and its pull readers.
func open(s load.Scenario) (*leat, error) {
	publish, wait, err := ways(s)
	if err != nil {
		return nil, err
	}
	bytes, err := keeps(&s)
	if err != nil {
		return nil, err
	}
	files, err := durable(s)
	if err != nil {
		return nil, err
	}
	l := &leat{s: s, publish: publish, files: files}
	c := engine.Config{Workers: workers(&s.Group, s.Partitions)}
	if files != nil {
		if c.Dir, err = os.MkdirTemp(s.Dir, "leatload-"); err != nil {
			return nil, err
		}
		l.dir = c.Dir
	}
	if l.engine, err = engine.Open(c); err != nil {
		return nil, err
	}
	if err := l.attach(wait, bytes); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// syncMost is the longest time that may pass until a sync, as of all times in a scenario.
const syncMost = 8760 * time.Hour

// durable returns how a scenario wants messages to be kept; nil is in memory.
func durable(s load.Scenario) (*engine.Durable, error) {
	d := &engine.Durable{FileBytes: leatFiles}
	switch s.Sync {
	case "":
		return nil, nil
	case "always":
		d.Sync = engine.Always
	case "never":
		d.Sync = engine.Never
	default:
		every, err := number.Duration(s.Sync)
		if err != nil || every <= 0 || every > syncMost {
			return nil, fmt.Errorf("%w: sync %q: must be one of always, never, or a time above 0s, at most 8760h, such as 10ms (on leat)", load.ErrUnsupported, s.Sync)
		}
		d.Sync = engine.Interval(every)
	}
	return d, nil
}

type leat struct {
	s       load.Scenario
	publish string
	engine  *engine.Engine
	files   *engine.Durable // nil in memory
	dir     string          // of the files, for this run only; empty in memory
	left    []uint64        // for each partition, how many records there were when the files were opened again; set by Close
	topic   *engine.Topic
	parts   []*engine.Partition // of the first topic
	last    []*engine.Partition // of the last one: the same, but for a scenario with stages
	wait    engine.Wait
	relays  sync.WaitGroup
	readers [][]*engine.Reader // reader, partition
}

// attach makes the topics, which keep so many bytes in each partition, what carries messages from one to the next, and the pull
// readers.
func (l *leat) attach(wait engine.Wait, bytes int64) error {
	s := &l.s
	l.wait = wait
	for i := range max(s.Stages, 1) {
		name := topicName
		if i > 0 {
			name += strconv.Itoa(i + 1)
		}
		before := l.last
		if err := l.addTopic(name, bytes); err != nil {
			return err
		}
		if i == 0 {
			l.parts = l.last
			continue
		}
		for j, from := range before {
			if err := l.relay(from, l.last[j]); err != nil {
				return err
			}
		}
	}
	for range s.Readers {
		var rs []*engine.Reader
		for _, p := range l.last {
			r, err := p.Reader(l.gating())
			if err != nil {
				return err
			}
			rs = append(rs, r)
		}
		l.readers = append(l.readers, rs)
	}
	return nil
}

// addTopic makes a topic, which is the last one then.
func (l *leat) addTopic(name string, bytes int64) (err error) {
	l.topic, err = l.engine.CreateTopic(name, engine.TopicConfig{
		Partitions:     l.s.Partitions,
		Retention:      engine.Retention{MaxBytes: bytes},
		MaxRecordBytes: l.s.Size + stream.KeyMost,
		Durable:        l.files,
		HandoverSlots:  slots(&l.s),
	})
	if err != nil {
		return err
	}
	l.last = nil
	for i := range l.s.Partitions {
		p, err := l.topic.Partition(i)
		if err != nil {
			return err
		}
		l.last = append(l.last, p)
	}
	return nil
}

func (l *leat) gating() engine.ReaderConfig {
	return engine.ReaderConfig{Start: engine.Earliest(), Gating: true, Gap: engine.FailOnGap, Wait: l.wait}
}

// relay carries messages from one partition to another one, as someone would who reads here and publishes there.
func (l *leat) relay(from, to *engine.Partition) error {
	r, err := from.Reader(l.gating())
	if err != nil {
		return err
	}
	l.relays.Go(func() {
		defer r.Close()
		window := make([]engine.Record, l.window())
		for {
			n, err := r.NextBatch(context.Background(), window)
			if err != nil { // the end, or what readers see as messages that do not come
				return
			}
			for i := range window[:n] {
				window[i] = engine.Record{Key: window[i].Key, Value: window[i].Value}
			}
			if to.PublishBatch(context.Background(), window[:n]) != nil {
				return
			}
		}
	})
	return nil
}

// Replay implements load.Replayer. Who reads old messages holds nobody up: when what it reads next is no longer kept, that is its end.
func (l *leat) Replay(partition int, deliver func([]byte)) error {
	p := l.last[partition]
	end := p.Next()
	r, err := p.Reader(engine.ReaderConfig{Start: engine.Earliest(), Gap: engine.FailOnGap, Wait: l.wait})
	if errors.Is(err, engine.ErrClosed) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	window := make([]engine.Record, l.window())
	for r.Position() < end {
		n, err := r.NextBatch(context.Background(), window)
		var gone *engine.OffsetError
		if errors.Is(err, engine.ErrClosed) || errors.As(err, &gone) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range window[:n] {
			deliver(window[i].Value)
		}
	}
	return nil
}

func (l *leat) Read(reader, partition int, deliver func([]byte)) error {
	r := l.readers[reader][partition]
	defer r.Close()
	window := make([]engine.Record, l.window())
	for {
		n, err := r.NextBatch(context.Background(), window)
		if err != nil {
			if errors.Is(err, engine.ErrClosed) {
				return nil
			}
			return err
		}
		for i := range window[:n] {
			deliver(window[i].Value)
		}
	}
}

// window returns how many records a reader takes at once: there are as many windows as readers, those that read again and those between
// stages included, each with one for each partition.
func (l *leat) window() int {
	return max(leatFew, min(leatWindow, leatWindows/((max(l.s.Readers, l.s.Stages, 1)+l.s.Replays)*l.s.Partitions)))
}

func (l *leat) Subscribe(_ int, deliver func(int, []byte)) error {
	_, err := l.topic.Subscribe(engine.HandlerFunc(func(_ context.Context, m *engine.Message) error {
		deliver(int(m.Partition), m.Value)
		return nil
	}), engine.SubscribeConfig{Start: engine.Earliest(), Gap: engine.FailOnGap})
	return err
}

func (l *leat) Close() error {
	err := l.engine.Close()
	l.relays.Wait()
	if l.dir == "" {
		return err
	}
	if l.topic != nil {
		err = errors.Join(err, l.reopen())
	}
	return errors.Join(err, os.RemoveAll(l.dir))
}

// reopen looks at what there is in the files.
func (l *leat) reopen() error {
	e, err := engine.Open(engine.Config{Dir: l.dir, ReadOnly: true})
	if err != nil {
		return err
	}
	t, err := e.Topic(l.topic.Name())
	if err != nil {
		return errors.Join(err, e.Close())
	}
	for i := range l.s.Partitions {
		p, err := t.Partition(i)
		if err != nil {
			return errors.Join(err, e.Close())
		}
		l.left = append(l.left, uint64(p.Next()))
	}
	return e.Close()
}

// Survived implements load.Survivor.
func (l *leat) Survived(partition int) (uint64, error) {
	if partition >= len(l.left) {
		return 0, errors.New("the files could not be opened again")
	}
	return l.left[partition], nil
}
