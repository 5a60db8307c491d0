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
	return l.roll(0)
}

// roll is Roll for a file in which there are records. The next file will have room for a frame of so many bytes. writing is
// held.
//
// The order is what makes it safe. First the next file is made under a name that means nothing: if there is no space for it,
// nothing else has happened. Then the old one is sealed; and only when that is safe the next one gets its name. So behind a
// file that is not sealed there is never another.
func (l *Log) roll(bytes int64) error {
	l.mu.Lock()
	base, epoch := l.next, l.epoch
	l.mu.Unlock()
	next, err := l.prepare(base, epoch, bytes)
	if err != nil {
		return err
	}
	if err := l.seal(); err != nil {
		_ = next.f.Close()
		return err
	}
	if err := l.enter(next); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files = append(l.files, next)
	return nil
}

// prepare makes a file for records from base on. It does not have its name yet: see enter.
func (l *Log) prepare(base, epoch uint64, bytes int64) (*file, error) {
	head := frame.Segment{Topic: l.cfg.Topic, Partition: l.cfg.Partition, Base: base, Epoch: epoch, Created: l.cfg.Now()}
	n := newFile(l.path(segmentName(base)), head)
	n.allocated = max(l.cfg.SegmentBytes, frame.SegmentBytes+bytes+sealRoom(1))
	temp := n.name + tempExt
	f, err := l.fs.Create(temp)
	if err != nil {
		return nil, l.fail("create", temp, err)
	}
	n.f = f
	op := "allocate"
	if err = f.Allocate(n.allocated); err == nil {
		op = "write"
		if _, err = f.WriteAt(frame.AppendSegment(nil, &n.head), 0); err == nil && !l.cfg.broken.has(flawNoHeadSync|flawRenameFirst) {
			op = "sync"
			err = f.Sync()
		}
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

// enter gives a file that was prepared its name.
func (l *Log) enter(n *file) error {
	if err := l.fs.Rename(n.name+tempExt, n.name); err != nil {
		_ = n.f.Close()
		return l.fail("rename", n.name, err)
	}
	if err := l.syncDir(); err != nil {
		_ = n.f.Close()
		return err
	}
	if l.cfg.broken.has(flawRenameFirst) {
		_ = n.f.Sync()
	}
	return nil
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

// seal makes the active file durable, and writes its end: the index, which says that nothing follows. If there is no record in
// it, it only gives back the space. writing is held.
//
// The records are made durable first, and the seal after that: a seal that is found says that everything before it was safe.
func (l *Log) seal() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if !l.cfg.broken.has(flawSealEarly) {
		if _, err := l.syncActive(); err != nil {
			return err
		}
	}
	l.mu.Lock()
	a, err := l.files[len(l.files)-1], l.unusable()
	l.mu.Unlock()
	if err != nil {
		return err
	}
	end, err := l.writeSeal(a)
	if err != nil {
		return err
	}
	l.mu.Lock()
	a.sealed = end > a.size
	l.durable = l.next
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
