package disk

import (
	"math"

	"github.com/leatlog/leat/segment/frame"
)

// Write appends the records of b as one frame, by one write, and returns the offset of the first of them. Nothing is durable
// yet: see Sync. A frame that is torn by a crash is dropped as a whole.
//
// If it fails the log is as before: ErrTooLarge, or ErrClosed or ErrReadOnly, which changes nothing, or ErrFailed, after which
// nothing can be written. In that case the records may still be found by the next Open, but not by Resume.
func (l *Log) Write(b *frame.Builder) (first uint64, err error) {
	if b.Count() == 0 {
		panic("disk: no records")
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	a, head, err := l.place(b.Bytes(), uint64(b.Count()))
	if err != nil {
		return 0, err
	}
	whole, sum := b.Finish(a.seed, a.size, head), b.Sum()
	return head.First, l.put(a, whole, &sum)
}

// writeLost appends a frame that says that the next n offsets are lost.
func (l *Log) writeLost(n uint64) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	for n > 0 {
		count := min(n, math.MaxUint32)
		a, head, err := l.place(frame.HeaderBytes, count)
		if err != nil {
			return err
		}
		head.Count = uint32(count)
		_, head.Time = a.times()
		head.Newest = head.Time
		l.buf = frame.AppendLost(l.buf[:0], a.seed, a.size, head)
		if err := l.put(a, l.buf, nil); err != nil {
			return err
		}
		n -= count
	}
	return nil
}

// place sees to it that the active file has room for a frame, and returns it with what the frame is to say. writing is held.
func (l *Log) place(bytes int64, records uint64) (a *file, head frame.Header, err error) {
	l.mu.Lock()
	if err = l.unusable(); err != nil { // there may be no file at all
		l.mu.Unlock()
		return nil, head, err
	}
	a = l.lastFile()
	head = frame.Header{First: l.next, Epoch: a.head.Epoch, SyncedTo: l.durable}
	l.mu.Unlock()
	switch {
	case records > frame.MaxOffset-head.First, bytes > MaxSegmentBytes:
		return nil, head, ErrTooLarge
	}
	need := a.size + bytes + sealRoom(len(a.index.list)+1)
	if need <= a.allocated {
		return a, head, nil
	}
	if a.empty() {
		if err := a.f.Allocate(need); err != nil {
			return nil, head, l.fail("allocate", a.name, err)
		}
		a.allocated = need
		return a, head, nil
	}
	if err := l.roll(bytes); err != nil {
		return nil, head, err
	}
	l.mu.Lock()
	a = l.lastFile()
	head.Epoch, head.SyncedTo = a.head.Epoch, l.durable
	l.mu.Unlock()
	return a, head, nil
}

// put writes a frame to the end of the active file; sum is that of its records, or nil. writing is held.
func (l *Log) put(a *file, whole []byte, sum *frame.Sum) error {
	h, err := frame.DecodeHeader(whole, a.seed, a.size)
	if err != nil {
		panic("disk: a frame of our own: " + err.Error())
	}
	if _, err := a.f.WriteAt(whole, a.size); err != nil && !l.cfg.broken.has(flawIgnoreWriteError) {
		return l.fail("write", a.name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil { // a sync has failed meanwhile: this frame must not count
		return l.err
	}
	a.add(&h, sum)
	l.next = a.end
	if l.cfg.broken.has(flawDurableFirst) {
		l.durable = l.next
	}
	return nil
}

// Sync makes durable what was written before it was called, and returns up to where. It may be called beside Write. Of several
// calls at once one syncs for all that were written before it began.
//
// If it fails with ErrFailed nobody knows what of that is durable, and nothing can be written any more.
func (l *Log) Sync() (durable uint64, err error) {
	l.mu.Lock()
	want := l.next
	l.mu.Unlock()
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	durable, err = l.durable, l.unusable()
	l.mu.Unlock()
	if err != nil || durable >= want {
		return durable, err
	}
	skip := l.cfg.broken.has(flawSkipRoll)
	if !skip {
		if err := l.finishRoll(); err != nil {
			return durable, err
		}
	}
	l.mu.Lock()
	a, upTo := l.lastFile(), l.next
	if l.rolling != nil && !skip { // begun since then: what was to be synced is in the file that is full now, or was before
		a, upTo = l.rolling, l.rolling.end
	}
	durable, err = l.durable, l.unusable()
	l.mu.Unlock()
	if err != nil || durable >= want {
		return durable, err
	}
	return l.syncFile(a, upTo)
}

// syncFile makes durable what is in a file, the last one that has its name: that is everything below upTo. syncing is held.
func (l *Log) syncFile(a *file, upTo uint64) (durable uint64, err error) {
	l.mu.Lock()
	durable = l.durable
	l.mu.Unlock()
	if err := a.f.Sync(); err != nil && !l.cfg.broken.has(flawIgnoreSyncError) {
		return durable, l.fail("sync", a.name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cfg.broken.has(flawDurableAll) {
		upTo = l.next
	}
	l.durable = max(l.durable, upTo)
	return l.durable, nil
}
