package disk

import (
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// Roll seals the active file and begins the next one. What was written is durable after it. If there is no record in the
// active file it does nothing.
func (l *Log) Roll() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	err := l.unusable()
	l.mu.Unlock()
	if err != nil || l.active().empty() {
		return err
	}
	if err := l.roll(0); err != nil {
		return err
	}
	return l.settle()
}

// roll makes the next file, with room for a frame of so many bytes, the active one. In the one before there are records. writing is
// held.
//
// The order is what makes it safe. First the next file is made under a name that means nothing: if there is no space for it,
// nothing else has happened. Then the old one is sealed; and only when that is safe the next one gets its name. So behind a
// file that is not sealed there is never another. Records may be written to the next file before it has its name: none of them is
// durable until then. An opening takes them over if the file before is whole, since a process may die without the machine: see
// loadNext.
func (l *Log) roll(bytes int64) error {
	if err := l.settle(); err != nil {
		return err
	}
	l.mu.Lock()
	base, epoch := l.next, l.epoch
	l.mu.Unlock()
	next, err := l.prepare(base, epoch, bytes)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.rolling = l.files[len(l.files)-1]
	l.files = append(l.files, next)
	l.mu.Unlock()
	if l.cfg.Behind == nil {
		return l.settle()
	}
	l.cfg.Behind(func() { _ = l.settle() }) // whoever writes or syncs finds what has gone wrong
	return nil
}

// settle finishes the roll that has been begun, if there is one.
func (l *Log) settle() error {
	l.mu.Lock()
	rolling := l.rolling != nil
	l.mu.Unlock()
	if !rolling {
		return nil
	}
	l.syncing.Lock()
	defer l.syncing.Unlock()
	return l.finishRoll()
}

// finishRoll is settle. syncing is held.
func (l *Log) finishRoll() error {
	l.mu.Lock()
	full, err := l.rolling, l.unusable()
	next := l.lastFile()
	l.mu.Unlock()
	if full == nil || err != nil {
		return err
	}
	if l.cfg.broken.has(flawNameFirst) {
		if err := l.enter(next); err != nil {
			return err
		}
	}
	if err := l.seal(full); err != nil {
		return err
	}
	if !l.cfg.broken.has(flawNameFirst) {
		if err := l.enter(next); err != nil {
			return err
		}
	}
	l.mu.Lock()
	l.rolling = nil
	l.mu.Unlock()
	return nil
}

// prepare makes a file for records from base on. It does not have its name yet, and nothing of it is safe: see enter.
func (l *Log) prepare(base, epoch uint64, bytes int64) (*file, error) {
	head := frame.Segment{Topic: l.cfg.Topic, Partition: l.cfg.Partition, Base: base, Epoch: epoch, Created: l.cfg.Now()}
	n := newNext(l.path(segmentName(base)), head)
	n.allocated = max(l.cfg.SegmentBytes, frame.SegmentBytes+bytes+sealRoom(1))
	temp := n.path()
	f, err := l.fs.Create(temp)
	if err != nil {
		return nil, l.fail("create", temp, err)
	}
	n.f = f
	op := "allocate"
	if err = f.Allocate(n.allocated); err == nil {
		op = "write"
		_, err = f.WriteAt(frame.AppendSegment(nil, &n.head), 0)
	}
	if err != nil {
		_ = f.Close()
		_ = l.fs.Remove(temp) // to give the space back; Open does so too
		return nil, l.fail(op, temp, err)
	}
	return n, nil
}

// sealRoom returns how much room a file with an index of so many entries keeps for its seal.
func sealRoom(entries int) int64 { return max(frame.SealSize(entries), leastSealRoom) }

// leastSealRoom is room for the seal of a file with up to 76 entries, which is what one without sums took at the most.
const leastSealRoom = 3152

// enter makes a file that was prepared safe, and gives it its name.
func (l *Log) enter(n *file) error {
	if !l.cfg.broken.has(flawNoHeadSync | flawRenameFirst) {
		if err := n.f.Sync(); err != nil {
			return l.fail("sync", n.path(), err)
		}
	}
	if err := l.rename(n); err != nil {
		return err
	}
	if l.cfg.broken.has(flawRenameFirst) {
		_ = n.f.Sync()
	}
	return nil
}

// rename gives a file its name. What is in it is safe.
func (l *Log) rename(n *file) error {
	if err := l.fs.Rename(n.name+tempExt, n.name); err != nil {
		return l.fail("rename", n.name, err)
	}
	l.mu.Lock()
	n.temp = false
	l.mu.Unlock()
	return l.syncDir()
}

// syncDir makes the names in the directory safe.
func (l *Log) syncDir() error {
	if l.cfg.broken.has(flawNoDirSync) {
		return nil
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return l.fail("sync", l.dir, err)
	}
	return nil
}

// sealActive finishes a roll that has been begun, and seals the active file. writing is held.
func (l *Log) sealActive() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if err := l.finishRoll(); err != nil {
		return err
	}
	return l.seal(l.active())
}

// seal makes a file durable, and writes its end: the index, which says that nothing follows. If there is no record in
// it, it only gives back the space. syncing is held, and nobody writes to the file.
//
// The records are made durable first, and the seal after that: a seal that is found says that everything before it was safe.
func (l *Log) seal(a *file) error {
	l.mu.Lock()
	end, synced, err := a.end, l.durable >= a.end, l.unusable()
	l.mu.Unlock()
	if err == nil && !synced && !l.cfg.broken.has(flawSealEarly) {
		_, err = l.syncFile(a, end)
	}
	if err != nil {
		return err
	}
	size, err := l.writeSeal(a)
	if err != nil {
		return err
	}
	l.mu.Lock()
	a.sealed = size > a.size
	l.durable = max(l.durable, end)
	l.mu.Unlock()
	f := a.f
	a.f = nil
	if err := f.Close(); err != nil {
		return l.fail("close", a.name, err)
	}
	return nil
}

// writeSeal writes the seal of a, whose records are durable, and makes it so. It returns where the file ends then.
func (l *Log) writeSeal(a *file) (end int64, err error) {
	end = a.size
	if !a.empty() {
		head := frame.Header{First: a.end, Epoch: a.head.Epoch, SyncedTo: a.end}
		head.Time, head.Newest = a.times()
		var sum *frame.Sum
		if a.summed {
			sum = &a.sum
		}
		b := frame.AppendSeal(nil, a.seed, a.size, head, a.index.list, sum)
		if _, err := a.f.WriteAt(b, a.size); err != nil {
			return 0, l.fail("write", a.name, err)
		}
		end += int64(len(b))
	}
	if err := l.truncate(a.f, a.name, end); err != nil {
		return 0, err
	}
	if l.cfg.broken.has(flawNoSealSync) {
		return end, nil
	}
	if err := a.f.Sync(); err != nil {
		return 0, l.fail("sync", a.name, err)
	}
	return end, nil
}

// truncate cuts a file.
func (l *Log) truncate(f vfs.File, name string, size int64) error {
	if err := f.Truncate(size); err != nil {
		return l.fail("truncate", name, err)
	}
	return nil
}
