package storage

import (
	"errors"
	"fmt"
	"math"

	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
)

// attach gives a log in memory the records that nobody has to read now: all but the newest, as far as the indexes of the files say
// enough of them. They are loaded, a segment at a time, when somebody reads them. What is over, or does not fit into memory, is
// dropped as if it had been read.
func (l *Log) attach(mem *segment.Log, c Loading) error {
	if c.SkipLost || c.Warm < 0 {
		return nil
	}
	for _, p := range group(l.files.Pieces(), c) {
		for {
			err := mem.AttachCold(segment.Cold{First: p.First, End: p.End, Bytes: p.Memory, Oldest: p.Oldest, Newest: p.Newest,
				Latest: p.Latest, Load: l.loader(p)})
			switch {
			case errors.Is(err, segment.ErrTooLarge):
				return nil // what comes from here on is read now
			case errors.Is(err, segment.ErrNoMemory) && mem.DropOldest():
				continue
			case errors.Is(err, segment.ErrNoMemory):
				return nil // not even one: as long as it is read in parts some of it fits
			case err != nil:
				return Opening(err)
			}
			break
		}
		trim(mem, c.Over)
	}
	return nil
}

// group joins pieces to what becomes a segment each, and leaves out the newest, which are to be read now: so many that at least
// c.Warm bytes are, with what lies behind all pieces.
func group(pieces []disk.Piece, c Loading) []*disk.Piece {
	warm := c.Warm
	if warm == 0 {
		warm = DefaultWarm
	}
	most := int64(c.Log.SegmentBytes)
	if most == 0 {
		most = segment.DefaultSegmentBytes
	}
	var after int64 // bytes behind the pieces, if there are any, are not known and not counted
	n := len(pieces)
	for n > 0 && after < warm {
		n--
		after += pieces[n].Memory
	}
	var list []*disk.Piece
	for _, p := range pieces[:n] {
		if len(list) > 0 {
			last := list[len(list)-1]
			fits := last.Memory+p.Memory <= most && (c.Log.SegmentRecords == 0 || p.End-last.First <= uint64(c.Log.SegmentRecords))
			young := c.RollAfter == 0 || p.Newest < plus(last.Oldest, c.RollAfter)
			if fits && young && last.Join(&p) {
				continue
			}
		}
		list = append(list, &p) // which keeps none of the others
	}
	return list
}

// plus returns a + b, or the largest number there is.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// loader returns what loads a piece.
func (l *Log) loader(p *disk.Piece) func(to *segment.Log) error {
	return func(to *segment.Log) error {
		if !l.beginLoad(p.First) {
			return &LoadError{From: p.First, To: p.End, Err: disk.ErrClosed}
		}
		defer l.endLoad(p.First)
		err := l.files.ReadPiece(p, func(b *frame.Batch) error { return disk.Fill(to, b) })
		switch {
		case errors.Is(err, segment.ErrNoMemory), err == nil && to.Staged() != p.End:
			err = p.Corrupt(segment.ErrCold) // it says another size than it has
		case errors.Is(err, frame.ErrFormat), errors.Is(err, disk.ErrLost), errors.Is(err, segment.ErrTooLarge):
			var bad *disk.CorruptError
			if !errors.As(err, &bad) {
				err = p.Corrupt(err)
			}
		}
		if err != nil {
			return &LoadError{From: p.First, To: p.End, Err: Opening(err)}
		}
		return nil
	}
}

// LoadError says that records which are there could not be read from the files: it may help to try again, unless it matches
// ErrCorrupt.
type LoadError struct {
	// From and To are the offsets of the records that were to be read together: [From, To).
	From, To uint64
	// Err is why: it matches ErrCorrupt, or is an error of the file system.
	Err error
}

// Error says what could not be read.
func (e *LoadError) Error() string {
	return fmt.Sprintf("leat: records [%d, %d) cannot be read from the files: %v", e.From, e.To, e.Err)
}

// Unwrap returns the cause.
func (e *LoadError) Unwrap() error { return e.Err }
