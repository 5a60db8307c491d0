package disk

import (
	"errors"

	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/frame"
)

// ErrLost says that a frame stands for records that a Salvage could not bring over: there is nothing to fill a log with. It is
// final for these offsets.
var ErrLost = errors.New("disk: records were lost")

// shape returns what package frame has to know about a record to make room for it.
func shape(s segment.Shape, now int64) frame.Shape {
	return frame.Shape{Key: s.Key, Value: s.Value, Headers: s.Headers, Timestamp: s.Timestamp, Appended: now}
}

// Add adds a copy of r, which a log in memory was given at time now, to a batch. It reports false, and adds nothing, if the batch
// would get too large.
func Add(b *frame.Builder, r *segment.Record, now int64) bool {
	dst := b.Reserve(shape(r.Shape(), now))
	if dst == nil {
		return false
	}
	r.CopyTo(dst)
	return true
}

// Reserve is Add for a record of which the shape is known: it returns the place for its headers, key and value, in that order, as
// segment.Log.Reserve does, or nil.
func Reserve(b *frame.Builder, s segment.Shape, now int64) []byte { return b.Reserve(shape(s, now)) }

// View returns a record as a reader of a log in memory would get it: its bytes are those of r, and a record without a timestamp has
// that of its append. The error is frame.ErrFormat.
func View(r *frame.Record) (segment.Record, error) {
	hs, err := segment.ParseHeaders(r.Headers)
	if err != nil {
		return segment.Record{}, frame.ErrFormat
	}
	v := segment.Record{Key: r.Key, Value: r.Value, Headers: hs, Timestamp: r.Timestamp, Offset: int64(r.Offset)}
	if v.Timestamp == 0 {
		v.Timestamp = r.Appended
	}
	return v, nil
}

// Fill stages in a log in memory the records of a frame, as they were when it was written: bytes, nil and empty, headers, own
// timestamp and append time. Records before to.Staged are passed over, so that a frame that was filled in part can be filled on.
// The caller publishes.
//
// The error is one of Reserve's, frame.ErrFormat, ErrLost, or an *OffsetError if the frame begins beyond to.Staged. What was
// staged before that stays staged.
func Fill(to *segment.Log, b *frame.Batch) error {
	switch {
	case b.Next() <= to.Staged():
		return nil
	case b.First > to.Staged():
		return &OffsetError{Asked: b.First, First: to.Staged(), Next: to.Staged()}
	case b.Kind != frame.Records:
		return ErrLost
	}
	var r frame.Record
	it := b.Records()
	for it.Next(&r) {
		if r.Offset < to.Staged() {
			continue
		}
		s := segment.Shape{Key: len(r.Key), Value: len(r.Value), Headers: len(r.Headers), Timestamp: r.Timestamp}
		if r.Key == nil {
			s.Key = -1
		}
		if r.Value == nil {
			s.Value = -1
		}
		dst, err := to.Reserve(s, r.Appended)
		if err != nil {
			return err
		}
		copy(dst, r.Body)
	}
	return it.Err()
}
