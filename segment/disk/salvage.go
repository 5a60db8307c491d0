package disk

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// Lost is a range of offsets that Salvage could not bring over.
type Lost struct {
	// From and To say which: [From, To).
	From, To uint64
	// File is where they should have been, and Pos where in it the damage begins.
	File string
	Pos  int64
	// Err is what is wrong there.
	Err error
}

// Salvaged is what Salvage has done.
type Salvaged struct {
	// First and Next say what the new log holds: [First, Next), without what is lost.
	First, Next uint64
	// Records is how many records it has.
	Records uint64
	// Lost are the ranges that it lacks, in order. In the new log there is a frame of kind frame.Lost for each, so that later
	// records keep their offsets.
	Lost []Lost
}

// Salvage copies what is sound of a damaged log into a new one, in a directory that is empty or not there, and lists what is
// not. It changes nothing in the old directory. c is the config of both; c.Topic and c.Partition must be right. Where each epoch
// ended stays known: see EndOf.
//
// A torn end, which would be cut by Open, is no loss and is not listed. If an error ends it the new directory is not complete.
func Salvage(from, to string, c Config) (Salvaged, error) {
	c, err := c.withDefaults()
	if err != nil {
		return Salvaged{}, err
	}
	s := salvage{old: &Log{cfg: c, dir: from, fs: c.FS}}
	if !c.NoLock {
		lock, err := c.FS.Lock(s.old.path(lockName))
		if err != nil {
			return Salvaged{}, err
		}
		defer lock.Close()
	}
	err = s.run(to, c)
	return s.rep, err
}

// salvage is one run of Salvage.
type salvage struct {
	old    *Log
	found  found
	to     *Log
	rep    Salvaged
	next   uint64 // what has been dealt with
	proven uint64 // what had been safe
	file   string // where the next loss begins
	pos    int64
	bad    error
	b      frame.Builder
}

// run does it.
func (s *salvage) run(to string, c Config) error {
	if err := s.old.list(&s.found); err != nil {
		return err
	}
	if err := s.state(); err != nil {
		return err
	}
	heads := make([]*file, len(s.found.bases))
	for i, base := range s.found.bases {
		h, err := s.old.loadHead(base, 0)
		var bad *CorruptError
		if err != nil && !errors.As(err, &bad) {
			return err
		}
		if h != nil && err == nil {
			heads[i] = h
			s.found.epoch = max(s.found.epoch, h.head.Epoch)
		}
	}
	c.First, c.epoch, c.ReadOnly = s.next, s.firstEpoch(heads)-1, false
	l, err := Open(to, c)
	if err != nil {
		return err
	}
	s.to = l
	if !l.Recovery().New {
		_ = l.Abandon()
		return fmt.Errorf("disk: there is a log in %s", to)
	}
	for i, base := range s.found.bases {
		if err = s.salvageFile(base, heads, i); err != nil {
			break
		}
	}
	if err == nil {
		err = s.salvageNext(heads)
	}
	if err == nil {
		err = s.upTo(s.proven)
	}
	if err == nil {
		err = l.under(s.found.epoch) // the next Open has one of its own
	}
	s.rep.First, s.rep.Next = l.First(), l.Next()
	if err != nil {
		return errors.Join(err, l.Abandon())
	}
	return l.Close()
}

// firstEpoch returns the epoch of the first records that are to be copied, or the last one if it is not known. Each epoch goes on to
// begin with a file of its own, so that it can be told where the log ended in it: see EndOf.
func (s *salvage) firstEpoch(heads []*file) uint64 {
	for i, h := range heads {
		if h != nil && !s.dropped(i) {
			return max(h.head.Epoch, 1)
		}
	}
	return s.found.epoch + 1
}

// dropped reports whether all in a file has been dropped.
func (s *salvage) dropped(i int) bool {
	return i+1 < len(s.found.bases) && s.found.bases[i+1] <= s.next
}

// under has what is written from now on count as written under an epoch, which is not below the present one.
func (l *Log) under(epoch uint64) error {
	l.mu.Lock()
	same := epoch <= l.epoch
	l.epoch = max(l.epoch, epoch)
	l.mu.Unlock()
	if same {
		return nil
	}
	return l.Roll()
}

// state takes from the state what is known, if it is sound.
func (s *salvage) state() error {
	if len(s.found.bases) > 0 {
		s.next = s.found.bases[0]
	}
	s.file, s.bad = s.old.path(stateName), errMissing
	if s.found.known {
		b, err := vfs.ReadFile(s.old.fs, s.file, frame.StateBytes)
		if err != nil {
			return err
		}
		if state, err := frame.DecodeState(b); err == nil {
			s.next, s.found.epoch = state.Low, state.Epoch
			s.proven = state.Durable
		} else {
			s.bad = err
		}
	}
	s.proven = max(s.proven, s.next)
	return nil
}

// upTo makes what lies between what has been dealt with and an offset lost.
func (s *salvage) upTo(off uint64) error {
	if off <= s.next {
		return nil
	}
	s.rep.Lost = append(s.rep.Lost, Lost{From: s.next, To: off, File: s.file, Pos: s.pos, Err: s.bad})
	err := s.to.writeLost(off - s.next)
	s.next = off
	return err
}

// salvageFile copies what is sound in one file.
func (s *salvage) salvageFile(base uint64, heads []*file, i int) error {
	name := s.old.path(segmentName(base))
	s.proven = max(s.proven, base)
	if s.dropped(i) {
		return nil
	}
	if base > s.next {
		if err := s.upTo(base); err != nil {
			return err
		}
	}
	return s.reading(name, func(c *chunks) (err error) {
		f := heads[i]
		if f == nil {
			if f, err = s.guess(c, base, heads, i); f == nil || err != nil {
				return err
			}
			heads[i] = f
		}
		if err := s.to.under(f.head.Epoch); err != nil {
			return err
		}
		return s.frames(f, c)
	})
}

// reading opens a file of the old log, in which the next loss begins if there is one.
func (s *salvage) reading(name string, do func(*chunks) error) error {
	in, err := s.old.fs.OpenRead(name)
	if err != nil {
		return err
	}
	defer in.Close()
	c := chunks{f: in}
	if c.size, err = in.Size(); err != nil {
		return err
	}
	s.file, s.pos, s.bad = name, 0, frame.ErrChecksum
	return do(&c)
}

// frames copies the sound frames of a file.
func (s *salvage) frames(f *file, c *chunks) error {
	s.pos, s.bad = f.size, errShort
	for pos := f.size; pos < c.size; {
		b, err := c.frame(f.seed, pos)
		if err != nil && !damage(err) {
			return err
		}
		if b.Kind != 0 {
			s.proven = max(s.proven, b.SyncedTo) // a sound header, whatever follows
		}
		if err == nil && (b.Epoch != f.head.Epoch || b.First < f.head.Base) {
			err = errOrder
		}
		if err == nil && b.Kind == frame.Seal {
			return nil
		}
		if err == nil {
			if err = s.copy(&b); err != nil && !damage(err) {
				return err
			}
		}
		if err == nil {
			pos += b.Bytes()
			s.pos, s.bad = pos, errShort
			continue
		}
		if s.bad == errShort {
			s.pos, s.bad = pos, err
		}
		if pos, err = c.search(pos + frame.Align); err != nil {
			return err
		}
	}
	return nil
}

// search returns the first place from pos on where a frame may begin, or the end of the file.
func (c *chunks) search(pos int64) (int64, error) {
	for pos < c.size {
		n := int(min(c.size-pos, chunkBytes))
		b, err := c.get(pos, n)
		if err != nil {
			return 0, err
		}
		for i := 0; ; i++ {
			k := bytes.Index(b[i:], []byte(frame.Magic))
			if k < 0 {
				break
			}
			if i += k; (pos+int64(i))%frame.Align == 0 {
				return pos + int64(i), nil
			}
		}
		if pos += int64(n); pos < c.size {
			pos -= frame.Align
		}
	}
	return c.size, nil
}

// copy copies the records of a frame that have not been dealt with.
func (s *salvage) copy(b *frame.Batch) error {
	if b.Next() <= s.next {
		return nil
	}
	s.b.Reset(0)
	first := max(b.First, s.next)
	if b.Kind == frame.Records {
		var r frame.Record
		it := b.Records()
		for it.Next(&r) {
			if r.Offset >= first && !s.b.Add(&r) {
				return ErrTooLarge
			}
		}
		if err := it.Err(); err != nil {
			return err
		}
	}
	if err := s.upTo(first); err != nil {
		return err
	}
	if b.Kind == frame.Lost {
		s.bad = ErrCorrupt // lost before
		return s.upTo(b.Next())
	}
	got, err := s.to.Write(&s.b)
	if err == nil && got != first {
		err = errOrder
	}
	if err != nil {
		return fmt.Errorf("disk: writing what was salvaged: %w", err)
	}
	s.next = b.Next()
	s.rep.Records += uint64(s.b.Count())
	return nil
}

// guess finds out under which epoch a file was written whose head is damaged: one between those of its neighbours. It returns
// nil if no frame passes for any of them.
func (s *salvage) guess(c *chunks, base uint64, heads []*file, i int) (*file, error) {
	from, to := uint64(1), s.found.epoch+1
	for k := i - 1; k >= 0; k-- {
		if heads[k] != nil {
			from = heads[k].head.Epoch
			break
		}
	}
	for k := i + 1; k < len(heads); k++ {
		if heads[k] != nil {
			to = heads[k].head.Epoch
			break
		}
	}
	for epoch := from; epoch <= to; epoch++ {
		head := frame.Segment{Topic: s.old.cfg.Topic, Partition: s.old.cfg.Partition, Base: base, Epoch: epoch}
		f := newFile(s.old.path(segmentName(base)), head)
		for pos := f.size; pos < c.size; {
			if _, err := c.header(f.seed, pos); err == nil {
				return f, nil
			} else if !damage(err) {
				return nil, err
			}
			var err error
			if pos, err = c.search(pos + frame.Align); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}
