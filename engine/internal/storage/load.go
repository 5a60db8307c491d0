package storage

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
)

// Loading says how to fill a log in memory.
type Loading struct {
	// Log is the config of the log in memory; its First is set.
	Log segment.Config

	// Over reports whether there is more than may stay, of so many records and bytes: then the oldest segment is dropped. Nil
	// means never.
	Over func(records, bytes int64) bool

	// RollAfter ends a segment when the next record comes so long after its first one; 0 means never.
	RollAfter int64

	// Warm is how many bytes of the newest records are read at once, as they are counted in memory; what is older is left in the
	// files until somebody reads it. 0 means DefaultWarm, and negative that all is read.
	Warm int64

	// SkipLost says that records before a range that a salvage could not bring over may stay in the files only. Otherwise such a
	// range is an error. All is read then.
	SkipLost bool
}

// DefaultWarm is the Warm of a Loading that says 0.
const DefaultWarm = 16 << 20

// Load returns a log in memory with the records that the files hold. If the memory does not do for all it holds the newest.
func (l *Log) Load(c Loading) (*segment.Log, error) {
	c.Log.First = l.files.First()
	mem := segment.NewLog(c.Log)
	if err := l.attach(mem, c); err != nil {
		free(mem)
		return nil, err
	}
	r, err := l.files.NewReader(mem.Staged())
	if err != nil {
		free(mem)
		return nil, Opening(err)
	}
	defer r.Close()
	for rollAt := int64(math.MinInt64); ; {
		b, err := r.Next()
		switch {
		case err == io.EOF:
			if mem.Staged() != l.files.Next() {
				free(mem)
				return nil, fmt.Errorf("storage: filled up to %d, the files end at %d", mem.Staged(), l.files.Next())
			}
			return mem, nil
		case err != nil:
			free(mem)
			return nil, Opening(err)
		case b.Kind == frame.Lost && c.SkipLost:
			free(mem)
			c.Log.First = b.Next()
			mem = segment.NewLog(c.Log)
			continue
		case c.RollAfter > 0 && b.Time >= rollAt:
			mem.Roll()
			rollAt = b.Time + c.RollAfter
		}
		if err := fill(mem, b, c.Over); err != nil {
			free(mem)
			return nil, Opening(fmt.Errorf("offsets [%d, %d): %w", b.First, b.Next(), err))
		}
	}
}

// fill fills in one frame.
func fill(mem *segment.Log, b *frame.Batch, over func(records, bytes int64) bool) error {
	for {
		err := disk.Fill(mem, b)
		if pubErr := mem.Publish(); pubErr != nil {
			return pubErr
		}
		trim(mem, over)
		if err == nil {
			return nil
		}
		if !errors.Is(err, segment.ErrNoMemory) || !mem.DropOldest() {
			return err
		}
	}
}

// trim drops the oldest segments of what is more than may stay.
func trim(mem *segment.Log, over func(records, bytes int64) bool) {
	for over != nil {
		records, bytes, segments := mem.Retained()
		if segments < 2 || !over(records, bytes) || !mem.DropOldest() {
			return
		}
	}
}

// free gives the memory of a log back.
func free(mem *segment.Log) {
	for mem.DropOldest() {
	}
}

// Resume makes the files writable again after they have failed, if what caused that has gone, and brings the files and mem
// together: records that were written, and told to be indefinite, come into mem, staged; visible ones that the files have lost
// are written again. The caller holds the role, and publishes. It returns how many records have come.
//
// If it fails the files stay as unusable as they were.
func (l *Log) Resume(mem *segment.Log) (came int, err error) {
	if err := l.files.Resume(); err != nil {
		return 0, &Error{Err: err}
	}
	end, next := mem.Committed(), l.files.Next()
	switch {
	case next < mem.First() && next < end:
		err = fmt.Errorf("%w: [%d, %d)", ErrForgotten, next, mem.First())
	case next < end:
		l.out.begin(next)
		err = mem.EachFrom(next, l.out.each)
		err = errors.Join(err, l.out.end())
		if err == nil {
			_, err = l.files.Sync()
		}
	case next > end:
		err = l.readStaged(mem, end)
		came = mem.Unpublished()
	}
	if err != nil {
		mem.Unstage()
		l.files.Fail(err) // they and mem do not fit each other
		return 0, &Error{Err: err}
	}
	l.mu.Lock()
	l.told = false
	l.mu.Unlock()
	if err := l.files.Err(); err != nil {
		l.tell(err) // who found that they had failed again was still taken for one who told of the first time
	}
	return came, nil
}

// readStaged stages what the files hold from an offset on.
func (l *Log) readStaged(mem *segment.Log, from uint64) error {
	r, err := l.files.NewReader(from)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		b, err := r.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := disk.Fill(mem, b); err != nil {
			return err
		}
	}
}
