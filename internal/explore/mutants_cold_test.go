//go:build explore

package explore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
)

// miniCold is the cold segments of package segment in small: each of them holds two records of one offset, and its block is
// loaded by the first reader that needs it. fault names what is wrong with it; "" is nothing.
type miniCold struct {
	fault string
	source
	searches bool // the records have timestamps of their own, and are looked for by them

	committed atomicx.Uint64
	first     atomicx.Uint64
	dir       atomicx.Pointer[[]*miniFrozen]

	scratch atomicx.Cell[[]uint64] // for the fault that loads all segments by it
	low     uint64                 // the appender's
}

// source is where the records are.
type source struct {
	fails  int                  // so many loads fail, after their first record
	file   atomicx.Uint32       // 1 when it is gone
	ready  *atomicx.Uint32      // if not nil a load waits until it is 1
	loaded []atomicx.Cell[bool] // by segment
}

type miniFrozen struct {
	base     uint64
	block    atomicx.Cell[[]uint64]
	newest   atomicx.Cell[uint64]
	explicit atomicx.Uint32
	pins     atomicx.Uint32
	cold     atomicx.Uint32 // 1, and then 0
	mu       atomicx.Mutex
	failed   atomicx.Cell[error] // for the fault that remembers
}

var (
	errMiniCold = errors.New("cannot be loaded")
	errMiniGone = errors.New("not there any more")
)

func newMiniCold(fault string, segments int) *miniCold {
	l := &miniCold{fault: fault, source: source{loaded: make([]atomicx.Cell[bool], segments)}}
	l.dir.Store(&[]*miniFrozen{})
	return l
}

// attach adds so many segments.
func (l *miniCold) attach(segments int) *miniCold {
	for range segments {
		segs := *l.dir.Load()
		s := &miniFrozen{base: uint64(len(segs))}
		larger := append(slices.Clone(segs), s)
		late := func() {
			s.newest.Set(s.base + 1000)
			s.cold.Store(1)
		}
		if l.fault != "publishes it before it is cold" {
			late()
		}
		l.dir.Store(&larger)
		l.committed.Store(s.base + 1)
		if l.fault == "publishes it before it is cold" {
			late()
		}
	}
	return l
}

// load is the source.
func (l *miniCold) load(base uint64, stage func(v uint64)) error {
	if l.ready != nil {
		for l.ready.Load() == 0 {
			atomicx.Relax(0)
		}
	}
	if l.file.Load() == 1 {
		return errMiniGone
	}
	stage(base + 100)
	if l.fails > 0 {
		l.fails--
		return errMiniCold
	}
	stage(base + 200)
	explore.Assert(!l.loaded[base].Get(), "segment %d is loaded twice", base)
	l.loaded[base].Set(true)
	return nil
}

func (s *miniFrozen) pin(fault string) bool {
	if s.pins.Add(1)&miniDead != 0 && fault != "pins without a look at dead" {
		s.unpin()
		return false
	}
	return true
}

func (s *miniFrozen) unpin() { s.pins.Add(^uint32(0)) }

// warm loads the block of s, if that is not there.
func (l *miniCold) warm(s *miniFrozen) error {
	if s.cold.Load() == 0 || l.fault == "reads without a look" {
		return nil
	}
	switch l.fault {
	case "no mutex":
		return l.thaw(s)
	case "lets others load before it is warm":
		s.mu.Lock()
		defer s.cold.Store(0)
		defer s.mu.Unlock()
		return l.thaw(s)
	case "keeps the mutex if it fails":
		s.mu.Lock()
		err := l.thaw(s)
		if err == nil {
			s.mu.Unlock()
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cold.Load() == 0 && l.fault != "does not look again" {
		return nil
	}
	return l.thaw(s)
}

// thaw is warm under mu.
func (l *miniCold) thaw(s *miniFrozen) error {
	if err := s.failed.Get(); err != nil {
		return err
	}
	var b []uint64
	stage := func(v uint64) { b = append(b, v) }
	switch l.fault {
	case "fills the block in its place":
		stage = func(v uint64) { s.block.Set(append(s.block.Get(), v)) }
	case "fills a block that others have":
		l.scratch.Set(nil)
		stage = func(v uint64) { l.scratch.Set(append(slices.Clone(l.scratch.Get()), v)) }
	}
	if l.fault == "is warm before the block is there" {
		s.cold.Store(0)
	}
	err := l.load(s.base, stage)
	switch {
	case l.fault == "is warm although it failed":
	case l.fault == "remembers the failure":
		s.failed.Set(err)
		fallthrough
	default:
		if err != nil {
			return err
		}
	}
	if l.fault == "sets newest again" {
		s.newest.Set(s.base + 1000)
	}
	if l.searches && l.fault != "is warm before explicit is set" {
		s.explicit.Store(1)
	}
	switch l.fault {
	case "fills the block in its place":
	case "fills a block that others have":
		s.block.Set(l.scratch.Get())
	default:
		s.block.Set(b)
	}
	if l.fault != "lets others load before it is warm" {
		s.cold.Store(0)
	}
	if l.searches && l.fault == "is warm before explicit is set" {
		s.explicit.Store(1)
	}
	return err
}

// enter finds the segment that has pos, pins it and has it loaded. It is nil if pos has been dropped.
func (l *miniCold) enter(pos uint64) (*miniFrozen, error) {
	for {
		explore.Assert(pos < l.committed.Load(), "nothing at %d", pos)
		if pos < l.first.Load() {
			return nil, nil
		}
		var s *miniFrozen
		for _, x := range *l.dir.Load() {
			if x.base == pos {
				s = x
			}
		}
		if s == nil {
			continue
		}
		if l.fault == "pins when it is loaded" {
			if err := l.warm(s); err != nil {
				return nil, err
			}
		}
		if !s.pin(l.fault) {
			continue
		}
		if l.fault == "gives the pin back while it loads" {
			s.unpin()
		}
		err := l.warm(s)
		if l.fault == "gives the pin back while it loads" && !s.pin("") {
			continue
		}
		if err == nil {
			return s, nil
		}
		if l.fault != "keeps the pin if it fails" {
			s.unpin()
		}
		if pos < l.first.Load() && l.fault != "does not look at first if it fails" {
			continue // it has been dropped, which may be why
		}
		return nil, err
	}
}

// read reads what is at pos, and reports whether that was there.
func (l *miniCold) read(pos uint64) (bool, error) {
	s, err := l.enter(pos)
	if s == nil {
		return false, err
	}
	b := s.block.Get()
	explore.Assert(slices.Equal(b, []uint64{pos + 100, pos + 200}), "read %v at %d", b, pos)
	if l.searches {
		explore.Assert(s.explicit.Load() == 1, "the search at %d does not know how", pos)
	}
	s.unpin()
	return true, nil
}

// readAll reads all that there is, from the n-th on and then those before it, each as often as it takes.
func (l *miniCold) readAll(n int) {
	next := l.committed.Load()
	for i := range next {
		pos := (i + uint64(n)) % next
		for turn := 0; ; turn++ {
			_, err := l.read(pos)
			if err == nil {
				break
			}
			explore.Assert(errors.Is(err, errMiniCold), "offset %d: %v", pos, err)
			explore.Assert(turn < 2, "offset %d: %v, again and again", pos, err)
		}
	}
}

// drop drops the oldest segment, and with it its file.
func (l *miniCold) drop() {
	segs := *l.dir.Load()
	s, rest := segs[0], segs[1:]
	l.low++
	l.first.Store(l.low)
	l.dir.Store(&rest)
	if l.fault == "waits for who loads" {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	switch dead := s.pins.CompareAndSwap(0, miniDead); {
	case dead || l.fault == "kills what is pinned":
		s.block.Set(nil)
	case l.fault == "asks the block for its size":
		s.block.Get()
	}
	l.file.Store(1)
	if l.ready != nil {
		l.ready.Store(1)
	}
}

// coldRead is two who read all of so many segments, of which the first loads fail. Nothing is left pinned.
func coldRead(segments, fails int) func(fault string) func(s *explore.S) {
	return func(fault string) func(s *explore.S) {
		return func(s *explore.S) {
			l := newMiniCold(fault, segments).attach(segments)
			l.fails = fails
			for i := range 2 {
				s.Go(fmt.Sprint("reader", i), func() { l.readAll(i) })
			}
			s.Finally(l.idle)
		}
	}
}

// idle checks that nobody has a pin.
func (l *miniCold) idle() error {
	for _, s := range *l.dir.Load() {
		if n := s.pins.Load(); n != 0 {
			return fmt.Errorf("%d pins at %d", n, s.base)
		}
	}
	return nil
}

// coldSearch is two who look for a record by its time.
func coldSearch(fault string) func(s *explore.S) {
	return func(s *explore.S) {
		l := newMiniCold(fault, 1).attach(1)
		l.searches = true
		for i := range 2 {
			s.Go(fmt.Sprint("search", i), func() {
				if (*l.dir.Load())[0].newest.Get() == 1000 { // there may be one
					l.readAll(0)
				}
			})
		}
	}
}

// coldAttach is one who reads while segments are attached.
func coldAttach(fault string) func(s *explore.S) {
	return func(s *explore.S) {
		l := newMiniCold(fault, 2)
		s.Go("appender", func() { l.attach(2) })
		s.Go("reader", func() { l.readAll(0) })
	}
}

// coldDrop is two who read while an appender drops.
func coldDrop(fault string) func(s *explore.S) {
	return func(s *explore.S) {
		l := newMiniCold(fault, 1).attach(1)
		s.Go("appender", l.drop)
		for i := range 2 {
			s.Go(fmt.Sprint("reader", i), func() { l.readAll(i) })
		}
	}
}

// coldStuck is one who loads from a source that waits until the segment has been dropped.
func coldStuck(fault string) func(s *explore.S) {
	return func(s *explore.S) {
		l := newMiniCold(fault, 1)
		l.ready = &atomicx.Uint32{}
		l.attach(1)
		s.Go("reader", func() { l.readAll(0) })
		s.Go("appender", l.drop)
	}
}

var coldMutants = []mutant{
	// Publication.
	{"is warm before the block is there", explore.Race, 1, coldRead(1, 0), ""},
	{"is warm before explicit is set", explore.Panic, 1, coldSearch, ""},
	{"reads without a look", explore.Panic, 0, coldRead(1, 0), ""},
	{"publishes it before it is cold", explore.Panic, 1, coldAttach, ""},
	{"sets newest again", explore.Race, 0, coldSearch, ""},
	{"fills a block that others have", explore.Race, 1, coldRead(2, 0), ""},
	// Once.
	{"no mutex", explore.Race, 1, coldRead(1, 0), ""},
	{"does not look again", explore.Panic, 1, coldRead(1, 0), ""},
	{"lets others load before it is warm", explore.Panic, 1, coldRead(1, 0), ""},
	// Kill.
	{"pins when it is loaded", explore.Race, 2, coldDrop, ""},
	{"pins without a look at dead", explore.Race, 2, coldDrop, ""},
	{"gives the pin back while it loads", explore.Race, 2, coldDrop, ""},
	{"kills what is pinned", explore.Race, 2, coldDrop, ""},
	{"asks the block for its size", explore.Race, 2, coldDrop, ""},
	{"waits for who loads", explore.Deadlock, 0, coldStuck, ""},
	// Failure.
	{"is warm although it failed", explore.Panic, 0, coldRead(1, 1), ""},
	{"fills the block in its place", explore.Panic, 0, coldRead(1, 1), ""},
	{"remembers the failure", explore.Panic, 0, coldRead(1, 1), ""},
	{"keeps the mutex if it fails", explore.Deadlock, 0, coldRead(1, 1), ""},
	{"keeps the pin if it fails", explore.Wrong, 0, coldRead(1, 1), ""},
	{"does not look at first if it fails", explore.Panic, 2, coldDrop, ""},
}

func TestMutants_Cold(t *testing.T) { kill(t, coldMutants) }
