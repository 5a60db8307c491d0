package storage

import (
	"fmt"

	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
)

// writer writes records as one frame, or as few as they fit in: begin, each for each of them, end.
type writer struct {
	l     *Log
	batch frame.Builder
	next  uint64 // offset of the first record in batch
	since int64  // bytes that have been written since the last sync of syncEarly
	err   error

	// each adds a record, and returns false if that failed. It is a field so that a commit allocates nothing.
	each func(s segment.Shape, body []byte, appended int64) bool
}

// keptBatch is how large a buffer for a frame is kept for the next one.
const keptBatch = 1 << 20

func (w *writer) init(l *Log) {
	w.l = l
	w.each = w.add
}

// begin begins with the record of an offset.
func (w *writer) begin(next uint64) {
	w.batch.Reset(keptBatch)
	w.next, w.err = next, nil
}

func (w *writer) add(s segment.Shape, body []byte, appended int64) bool {
	dst := disk.Reserve(&w.batch, s, appended)
	if dst == nil && w.batch.Count() > 0 {
		if w.put(); w.err != nil {
			return false
		}
		dst = disk.Reserve(&w.batch, s, appended)
	}
	if dst == nil {
		w.err = disk.ErrTooLarge
		return false
	}
	copy(dst, body)
	return true
}

// end writes what is left, and returns what has gone wrong.
func (w *writer) end() error {
	if w.err == nil && w.batch.Count() > 0 {
		w.put()
	}
	return w.err
}

// put writes the batch.
func (w *writer) put() {
	n := uint64(w.batch.Count())
	w.since += w.batch.Bytes()
	w.l.writes.Add(1)
	first, err := w.l.files.Write(&w.batch)
	if err != nil {
		w.err = err
		return
	}
	if first != w.next {
		panic(fmt.Sprintf("storage: the files are at %d, the log is at %d", first, w.next))
	}
	w.batch.Reset(keptBatch)
	w.next += n
}
