package engine

import (
	"context"
	"errors"
	"iter"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/internal/mutant"
	"github.com/leatlog/leat/segment"
)

// Partition is one partition of a topic: the unit of order. All its methods may be called from any goroutine.
type Partition struct {
	t *Topic
	p *partition.Partition
}

// Topic returns the topic that the partition belongs to.
func (p *Partition) Topic() *Topic { return p.t }

// Index returns the partition's number.
func (p *Partition) Index() int { return p.p.Index() }

// First returns the offset of the oldest record that is there; Next if there is none.
func (p *Partition) First() Offset { first, _ := p.p.Snapshot(); return first }

// Next returns the offset that the next record will get.
func (p *Partition) Next() Offset { _, next := p.p.Snapshot(); return next }

// Durable returns the offset below which every record survives a power cut. It is at most Next, and 0 in a topic in memory.
func (p *Partition) Durable() Offset { return p.p.Durable() }

// Publish is Topic.Publish to this partition, whatever the Partitioner says.
func (p *Partition) Publish(ctx context.Context, r Record) (Published, error) {
	off, err := p.p.Publish(ctx, &r)
	if err != nil {
		return Published{}, err
	}
	if mutant.Enabled && mutant.Is(mutant.WrongOffset) && off%8 == 7 {
		off--
	}
	return Published{Partition: p.Index(), Offset: off}, nil
}

// TryPublish is Topic.TryPublish to this partition.
func (p *Partition) TryPublish(r Record) error { return p.p.TryPublish(&r) }

// PublishAsync is Topic.PublishAsync to this partition.
func (p *Partition) PublishAsync(ctx context.Context, r Record, done func(Published, error)) error {
	return p.p.PublishAsync(ctx, &r, done)
}

// PublishBatch appends the records one behind the other, visible all at once, and sets Partition and Offset of each. It is
// all or nothing: after an error none of them will ever appear. An empty batch does nothing. Values without keys that lie one behind
// the other in one buffer are copied at once.
func (p *Partition) PublishBatch(ctx context.Context, rs []Record) error {
	_, err := p.p.PublishBatch(ctx, rs)
	return err
}

// Flush is Topic.Flush for this partition.
func (p *Partition) Flush(ctx context.Context) error { return p.p.Flush(ctx) }

// TruncateBefore drops all records below off, at once for readers; the memory comes back by whole segments. Next is
// allowed and empties the partition; an offset beyond, or a negative one, is an *OffsetError; one below First does
// nothing. Subscriptions that had not read that far get a gap notice. In a durable topic the records are gone for good when it
// returns nil: no Open brings them back.
func (p *Partition) TruncateBefore(ctx context.Context, off Offset) error {
	return p.p.TruncateBefore(ctx, off)
}

// ReadAt fills dst with the records from off on that are there, without waiting, and returns how many: none if off is
// Next. An offset below First or beyond Next is an *OffsetError. The records stay valid for as long as they are held; they
// keep their segment's memory, which is then not reused.
//
// Of a durable topic, what Open has left in the files is read from there first, which waits for the disk; if that fails the error
// is a *LoadError.
func (p *Partition) ReadAt(off Offset, dst []Record) (int, error) {
	for {
		if p.p.Ended() {
			return 0, p.p.Cause()
		}
		if first, next := p.p.Snapshot(); off < first || off > next {
			return 0, &OffsetError{Asked: off, First: first, Next: next}
		}
		n, err := p.p.Log().ReadAt(uint64(off), dst)
		switch {
		case err == nil:
			return n, nil
		case !errors.Is(err, segment.ErrBelow) && !errors.Is(err, segment.ErrBeyond):
			return 0, p.p.Unreadable(err)
		}
		// It was dropped since we looked; look again.
	}
}

// Records iterates over the records from offset from on that are there at the time of the call. It never waits. If from
// is below First, or retention is faster than the loop, the offsets jump to what is left; a from beyond Next gives nothing.
// A record is valid until the loop's next turn.
//
// Of a durable topic, what Open has left in the files is read from there, which waits for the disk. If that fails the loop ends
// early, before Next; ReadAt of the offset behind the last one says why.
func (p *Partition) Records(from Offset) iter.Seq2[Offset, Record] {
	return func(yield func(Offset, Record) bool) {
		first, next := p.p.Snapshot()
		var r segment.Reader
		r.Init(p.p.Log())
		defer r.Close()
		r.Seek(uint64(max(from, first)))
		for {
			switch r.Refill() {
			case segment.Ready:
			case segment.Below:
				r.Seek(p.p.Log().First())
				continue
			default:
				return
			}
			var rec Record
			for r.Next(&rec) {
				if rec.Offset >= next || !yield(rec.Offset, rec) {
					return
				}
			}
		}
	}
}

// Follow iterates over the records from offset from on and waits for more. It ends after the one pair with an error: that
// of ctx, ErrClosed, ErrTopicDeleted, a *LoadError, or an *OffsetError if from is out of range or retention has passed the loop. A
// record is valid until the loop's next turn.
func (p *Partition) Follow(ctx context.Context, from Offset) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r, err := p.Reader(ReaderConfig{Start: At(from), Gap: FailOnGap})
		if err != nil {
			yield(Record{}, err)
			return
		}
		defer r.Close()
		for {
			rec, err := r.Next(ctx)
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// Appender takes the partition for exclusive use: one goroutine's fastest way in. It waits, until ctx ends, for what was
// accepted before; every other publish to the partition fails with ErrExclusive until the Appender is closed.
func (p *Partition) Appender(ctx context.Context) (*Appender, error) {
	x, err := p.p.Appender(ctx)
	if err != nil {
		return nil, err
	}
	a := &Appender{x: x}
	a.r.x = x
	return a, nil
}

// Appender appends records to a partition that it has for itself. It is made for one goroutine; calls from several wait for
// each other. After its Close its calls fail with ErrClosed.
type Appender struct {
	x *partition.Appender
	r Reservation // the one that Reserve hands out
}

// Append copies r and returns the offset that it will have. Readers see it after Flush, or before if 256 records are staged,
// and at the latest when the topic ends. Under Block it waits for room, until ctx ends; what was staged before is visible
// then. ctx is not looked at where there is room.
func (a *Appender) Append(ctx context.Context, r Record) (Offset, error) { return a.x.Append(ctx, &r) }

// Publish is Append and Flush in one: readers see r, and what was appended before, when it returns. If it returns an error r
// will never appear, unless that wraps ErrIndefinite: the files of a durable topic have failed.
func (a *Appender) Publish(ctx context.Context, r Record) (Offset, error) {
	return a.x.Publish(ctx, &r)
}

// AppendBatch is Append for each of the records in order; it sets Partition and Offset of each. It returns how many it
// appended: all, or those before the one that failed.
func (a *Appender) AppendBatch(ctx context.Context, rs []Record) (int, error) {
	return a.x.AppendBatch(ctx, rs)
}

// Flush makes visible what was appended, and wakes readers. Call it before a pause.
//
// In a durable topic what has been staged since the last time is lost if it, or Append or Close, returns ErrReadOnly; if the error
// is ErrIndefinite it may be found later.
func (a *Appender) Flush() error { return a.x.Flush() }

// Close flushes and gives the partition back to everybody. A Reservation that is out does not hold it up: what was made in it will never
// appear, its Commit fails with ErrClosed, and writing to it, maybe on another goroutine, does no harm. Closing again does nothing.
func (a *Appender) Close() error { return a.x.Close() }
