package engine_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment/vfs"
)

// story is what the user of an engine has done, and has been told.
type story struct {
	mu      sync.Mutex
	n       int                         // names records
	acked   map[engine.Published]string // published
	perhaps map[string]bool             // being published, or ended with ErrIndefinite
	never   map[string]bool             // refused for good
	created bool                        // the topic is there
	parts   int                         // it has so many partitions at least
	low     engine.Offset               // of partition 0: it begins here
	lowMay  engine.Offset               // or up to here
	group   bool                        // the group is there
	floor   engine.Offset               // of partition 0: its position is safe up to here
	floorIn engine.Offset               // or may be up to here
	gone    bool                        // the other topic is deleted
	sync    engine.Sync
	durable [3]engine.Offset // by partition: below everything was durable
}

func newStory(s engine.Sync) *story {
	return &story{sync: s, acked: map[engine.Published]string{}, perhaps: map[string]bool{}, never: map[string]bool{}}
}

// so does something to the story.
func (s *story) so(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// clone returns a copy of what is known now. mu is held, or nobody else has the story any more.
func (s *story) clone() *story {
	return &story{acked: maps.Clone(s.acked), perhaps: maps.Clone(s.perhaps), never: maps.Clone(s.never), created: s.created,
		parts: s.parts, low: s.low, lowMay: s.lowMay, group: s.group, floor: s.floor, floorIn: s.floorIn, gone: s.gone, sync: s.sync, durable: s.durable}
}

// records makes n records that are published from now on.
func (s *story) records(p, n int) []engine.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	rs := make([]engine.Record, n)
	for i := range rs {
		v := fmt.Sprintf("%d/%d/%s", p, s.n, strings.Repeat("x", s.n%7*40))
		s.n++
		s.perhaps[v] = true
		rs[i] = engine.Record{Partition: int32(p), Value: []byte(v)}
	}
	return rs
}

// told notes what became of them.
func (s *story) told(p int, first engine.Offset, rs []engine.Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range rs {
		switch {
		case err == nil:
			s.acked[engine.Published{Partition: p, Offset: first + engine.Offset(i)}] = string(r.Value)
			delete(s.perhaps, string(r.Value))
		case !errors.Is(err, engine.ErrIndefinite):
			s.never[string(r.Value)] = true
			delete(s.perhaps, string(r.Value))
		}
	}
}

// live lives through the story on a file system. What fails is noted, and it goes on.
func (s *story) live(t testing.TB, fsys vfs.FS) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	e, err := engine.Open(engine.Config{Dir: dir, PositionsEvery: time.Hour}.WithFS(fsys))
	if err != nil {
		return
	}
	defer e.Close()
	small := engine.TopicConfig{Partitions: 2, Partitioner: engine.Explicit(), Durable: &engine.Durable{Sync: s.sync, FileBytes: 4 << 10}}
	top, err := e.CreateTopic("t", small)
	if err != nil {
		return
	}
	s.so(func() { s.created, s.parts = true, 2 })
	other, err := e.CreateTopic("other", small)
	if err == nil {
		_, _ = other.Publish(ctx, engine.Record{})
	}
	put := func(p, n int) {
		part, err := top.Partition(p)
		if err != nil {
			return
		}
		rs := s.records(p, n)
		switch {
		case n > 1 && s.n%3 == 0:
			var first engine.Offset
			first, err = inPlace(ctx, part, rs)
			s.told(p, first, rs, err)
		case n > 1:
			err = part.PublishBatch(ctx, rs)
			s.told(p, rs[0].Offset, rs, err)
		case s.n%2 == 0:
			at, err2 := part.Publish(ctx, rs[0])
			s.told(p, at.Offset, rs, err2)
			err = err2
		default:
			at, err2 := top.Publish(background, rs[0])
			s.told(p, at.Offset, rs, err2)
			err = err2
		}
		if err != nil {
			require.ErrorIs(t, err, engine.ErrReadOnly)
			_ = top.Resume(background)
		}
		at := part.Durable()
		s.so(func() { s.durable[p] = max(s.durable[p], at) })
	}
	for range 6 {
		put(0, 1)
		put(1, 4)
	}
	if top.Flush(ctx) == nil {
		s.so(func() {
			for p := range 2 {
				s.durable[p] = part(t, top, p).Next()
			}
		})
	}
	g, err := e.CreateGroup("g", engine.GroupConfig{Topics: []string{"t"}, Start: engine.Earliest()})
	if err == nil {
		s.so(func() { s.group = true })
		c := consumer(t, g, engine.MemberConfig{})
		for range 3 {
			put(0, 3)
			if _, err := c.Poll(gone(), 100); err != nil && ctx.Err() != nil {
				break
			}
			_ = c.Commit()
			at := committed(t, g, "t", 0)
			s.so(func() { s.floorIn = at })
			if c.CommitSync(background) == nil {
				s.so(func() { s.floor = at })
			}
		}
		c.Close()
	}
	if top.SetPartitions(3) == nil {
		s.so(func() { s.parts = 3 })
		put(2, 2)
	}
	if p, err := top.Partition(0); err == nil {
		low := min(p.Next(), 7)
		s.so(func() { s.lowMay = low })
		if p.TruncateBefore(background, low) == nil {
			s.so(func() { s.low = low })
		}
	}
	if e.DeleteTopic("other") == nil {
		s.so(func() { s.gone = true })
	}
	for range 8 {
		put(0, 2)
		put(1, 1)
	}
}

// inPlace publishes records by a reservation.
func inPlace(ctx context.Context, p *engine.Partition, rs []engine.Record) (first engine.Offset, err error) {
	x, err := p.Appender(ctx)
	if err != nil {
		return -1, err
	}
	defer x.Close() // what it says concerns nothing of ours
	size := 0
	for i := range rs {
		size += len(rs[i].Value)
	}
	r, err := x.Reserve(ctx, len(rs), size)
	if err != nil {
		return -1, err
	}
	for i := range rs {
		copy(r.Next(len(rs[i].Value)), rs[i].Value)
	}
	return r.Commit(ctx)
}

// matches checks what somebody finds who opens what is left, that it can be gone on with, and that it stays so.
func (s *story) matches(m *vfs.Mem) error {
	before, err := s.look(m, true)
	if err != nil {
		return err
	}
	after, err := s.look(m, false)
	if err != nil {
		return fmt.Errorf("the second time: %w", err)
	}
	if before != after {
		return fmt.Errorf("first there was\n%s\nand then\n%s", before, after)
	}
	return nil
}

func (s *story) look(m *vfs.Mem, first bool) (string, error) {
	var ahead error
	e, err := engine.Open(engine.Config{Dir: dir, PositionsEvery: time.Hour, Hooks: engine.Hooks{
		Truncated: func(_, _ string, err *engine.TruncatedError) { ahead = err },
	}}.WithFS(m))
	if err != nil {
		return "", fmt.Errorf("open: %w", err)
	}
	if ahead != nil {
		return "", fmt.Errorf("a position that was written was not safe: %w", ahead)
	}
	defer e.Close()
	if s.gone {
		if _, err := e.Topic("other"); !errors.Is(err, engine.ErrUnknownTopic) {
			return "", fmt.Errorf("the deleted topic: %w", err)
		}
	}
	top, err := e.Topic("t")
	if err != nil {
		if s.created || !errors.Is(err, engine.ErrUnknownTopic) {
			return "", fmt.Errorf("topic: %w", err)
		}
		return "", nil
	}
	if top.Partitions() < s.parts {
		return "", fmt.Errorf("%d partitions, not %d", top.Partitions(), s.parts)
	}
	var b strings.Builder
	seen := map[string]bool{}
	found := map[engine.Published]string{}
	for i := range top.Partitions() {
		p, err := top.Partition(i)
		if err != nil {
			return "", err
		}
		at := p.First()
		for off, r := range p.Records(at) {
			v := string(r.Value)
			if off != at {
				return "", fmt.Errorf("offset %d comes after %d", off, at-1)
			}
			at++
			if strings.HasPrefix(v, "more") {
				continue
			}
			fmt.Fprintln(&b, i, off, v)
			found[engine.Published{Partition: i, Offset: off}] = v
			if seen[v] {
				return "", fmt.Errorf("twice: %s", v)
			}
			seen[v] = true
			if s.never[v] {
				return "", fmt.Errorf("partition %d, offset %d: %s, which was refused", i, off, v)
			}
			if acked, ok := s.acked[engine.Published{Partition: i, Offset: off}]; ok != !s.perhaps[v] || ok && acked != v {
				return "", fmt.Errorf("partition %d, offset %d: %q, acknowledged was %q (%v)", i, off, v, acked, ok)
			}
		}
		if at != p.Next() {
			return "", fmt.Errorf("partition %d ends at %d, and its records at %d", i, p.Next(), at)
		}
		if i == 0 && (p.First() < s.low || p.First() > s.lowMay) {
			return "", fmt.Errorf("it begins at %d, not [%d, %d]", p.First(), s.low, s.lowMay)
		}
	}
	for at, v := range s.acked {
		if found[at] != v && !(at.Partition == 0 && at.Offset < s.lowMay) && (s.sync == engine.Always || at.Offset < s.durable[at.Partition]) {
			return "", fmt.Errorf("lost: %v %s", at, v)
		}
	}
	g, err := e.Group("g")
	switch {
	case err == nil:
		off, err := g.Committed("t", 0)
		if err != nil {
			return "", err
		}
		if off < s.floor || off > s.floorIn {
			return "", fmt.Errorf("the group is at %d, not [%d, %d]", off, s.floor, s.floorIn)
		}
	case s.group || !errors.Is(err, engine.ErrUnknownGroup):
		return "", fmt.Errorf("group: %w", err)
	}
	if first {
		for i := range top.Partitions() {
			if _, err := top.Publish(background, engine.Record{Partition: int32(i), Value: []byte("more")}); err != nil {
				return "", fmt.Errorf("going on: %w", err)
			}
		}
	}
	return b.String(), e.Close()
}

// TestDurable_CrashAnywhere takes the power away before each operation, and looks at what may be left.
func TestDurable_CrashAnywhere(t *testing.T) {
	step := testkit.Steps(t)
	type left struct {
		op    vfs.Op
		s     *story
		state *vfs.Mem
	}
	type seen struct { // what decides what comes of a state
		files uint64
		story string
	}
	for _, policy := range []engine.Sync{engine.Always, engine.Interval(time.Hour), engine.Never} {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel() // most of it is waiting
			var all []left
			m, s := vfs.NewMem(), newStory(policy)
			limit := max(1, rounds(10))
			if raceEnabled {
				limit = max(1, limit/5)
			}
			s.live(t, vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
				if o.Kind.Changes() {
					s.so(func() { // nothing is told, or begun, meanwhile
						known := s.clone()
						for state := range m.Crashes(limit, uint64(o.N)) {
							all = append(all, left{o, known, state})
						}
					})
				}
				return nil
			}))
			for state := range m.Crashes(limit, 1) {
				all = append(all, left{s: s.clone(), state: state})
			}
			require.Greater(t, len(all), 100)
			looked := map[seen]bool{}
			for _, x := range all {
				step()
				as := seen{x.state.Sum(), fmt.Sprint(x.s)}
				if looked[as] {
					continue
				}
				looked[as] = true
				require.NoError(t, x.s.matches(x.state), "power cut before %v", x.op)
			}
			t.Log(len(all), "states, of which different:", len(looked))
		})
	}
}

var everyFault = flag.Int("every-fault", 5, "TestDurable_FaultAnywhere takes each so-many-th operation: 1 is all, and takes a minute")

// TestDurable_FaultAnywhere lets each operation fail in turn, in each way, once or from then on, and looks at what is left then,
// with and without a power cut.
func TestDurable_FaultAnywhere(t *testing.T) {
	going := testkit.Steps(t)
	faults := map[string]vfs.Fault{
		"error":       {Err: errors.New("broken"), Lose: true},
		"full":        {Err: vfs.ErrFull, Keep: 100},
		"torn":        {Err: errors.New("torn"), Tear: true},
		"in secret":   {Err: errors.New("done all the same"), Done: true},
		"full for it": {Err: vfs.ErrFull},
	}
	count := 0
	{
		m := vfs.NewMem()
		f := vfs.NewFaulty(m, func(vfs.Op) *vfs.Fault { return nil })
		newStory(engine.Always).live(t, f)
		count = f.Count()
	}
	step := *everyFault
	if testing.Short() || raceEnabled {
		step = 7 * step
	}
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			runs := 0
			for n := 1; n <= count; n += step {
				for _, decide := range []func(int, vfs.Fault, ...vfs.OpKind) func(vfs.Op) *vfs.Fault{vfs.Nth, vfs.Since} {
					going()
					m, s := vfs.NewMem(), newStory([]engine.Sync{engine.Always, engine.Always, engine.Interval(time.Hour), engine.Never}[n/step%4])
					did, last := 0, ""
					d := decide(n, faults[name])
					var mu sync.Mutex
					s.live(t, vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
						f := d(o)
						if f != nil {
							mu.Lock()
							did++
							if did == 1 {
								last = o.String()
							}
							mu.Unlock()
						}
						return f
					}))
					if did == 0 {
						continue
					}
					runs++
					require.NoError(t, s.matches(lost(m)), "at %s, %d times, and a power cut", last, did)
					require.NoError(t, s.matches(m), "at %s, %d times", last, did)
				}
			}
			t.Log(runs, "runs")
		})
	}
}
