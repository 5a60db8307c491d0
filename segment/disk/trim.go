package disk

import (
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// Trim drops the records below an offset, which is at most Next: from then on the log begins there, also after a crash. Files
// in which nothing else is are removed, whether or not somebody reads them: who has one open can read it to its end.
//
// What is to be dropped is made durable first if it is not yet, since the log must not begin beyond its end after a crash. An
// offset that is not above First changes nothing. A roll that is not finished is waited for only if its full file goes, or is to be made
// durable.
func (l *Log) Trim(below uint64) error {
	l.trimming.Lock()
	defer l.trimming.Unlock()
	l.mu.Lock()
	low, next, durable, err := l.low, l.next, l.durable, l.unusable()
	full := l.rolling
	l.mu.Unlock()
	switch {
	case err != nil:
		return err
	case below <= low:
		return nil
	case below > next:
		return &OffsetError{Asked: below, First: low, Next: next}
	}
	if full != nil && full.end <= below { // it goes, and not before the next one has its name
		if err := l.settle(); err != nil {
			return err
		}
	}
	if below > durable && !l.cfg.broken.has(flawTrimUnsynced) {
		if durable, err = l.Sync(); err != nil {
			return err
		}
	}
	if l.cfg.broken.has(flawUnlinkFirst) {
		if err := l.unlink(below); err != nil {
			return err
		}
		return l.writeState(below, max(durable, below))
	}
	mark := below
	if l.cfg.broken.has(flawTrimKeepsLow) {
		mark = low
	}
	if err := l.writeState(mark, max(durable, below)); err != nil {
		return err
	}
	return l.unlink(below)
}

// unlink makes the log begin at an offset, and removes the files that are below, the oldest first. trimming is held.
func (l *Log) unlink(below uint64) error {
	l.mu.Lock()
	l.low = below
	n := 0
	for n < len(l.files)-1 && l.files[n].end <= below && l.files[n] != l.rolling { // the next one has no name yet
		n++
	}
	gone := l.files[:n]
	l.files = append([]*file(nil), l.files[n:]...) // what readers hold of the old list stays
	l.mu.Unlock()
	for _, f := range gone {
		if err := l.fs.Remove(f.name); err != nil {
			return l.fail("remove", f.name, err)
		}
	}
	if n == 0 {
		return nil
	}
	return l.syncDir()
}

// writeState replaces the state. trimming is held.
func (l *Log) writeState(low, durable uint64) error {
	s := frame.State{Topic: l.cfg.Topic, Partition: l.cfg.Partition, Epoch: l.Epoch(), Low: low, Durable: durable}
	name, b := l.path(stateName), frame.AppendState(nil, &s)
	fsys := l.fs
	if l.cfg.broken.has(flawNoDirSync | flawStateInPlace) {
		fsys = brokenFS{l.fs, l.cfg.broken}
	}
	if err := vfs.Replace(fsys, name, b); err != nil {
		return l.fail("replace", name, err)
	}
	return nil
}
