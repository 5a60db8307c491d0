package engine

import (
	"context"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/segment"
)

// Reservation is room in the log for records that are made where they stay, without a copy: the fastest way in. An Appender hands it
// out; Next or NextKey adds a record and returns the place for its value, and Commit makes all of them visible at once. It is for the
// goroutine that has the Appender. A record made this way has no headers and the time of the reservation; Append takes the others.
//
//	r, err := appender.Reserve(ctx, len(orders), 64*len(orders))
//	...
//	for _, o := range orders {
//		o.Encode(r.Next(64))
//	}
//	first, err := r.Commit(ctx)
type Reservation struct {
	room segment.Reservation
	x    *partition.Appender
}

// Reserve hands out room for so many records whose keys and values are bytes together, at most. There is one at a time: until its
// Commit or Discard, Append, Publish, AppendBatch and Reserve fail with ErrReserved. The next Reserve uses the same Reservation again.
//
// It waits for room as Append does. The errors are those of PublishBatch for a batch of that size, and ErrReservation if records is not
// above 0 or bytes is negative. A reservation takes one piece of memory: if a segment has not so much left, its rest stays empty, so
// reserve for one batch, not for all that may come.
func (a *Appender) Reserve(ctx context.Context, records, bytes int) (*Reservation, error) {
	if err := a.x.Reserve(ctx, &a.r.room, records, bytes); err != nil {
		return nil, err
	}
	return &a.r, nil
}

// Next adds a record without a key and returns the place for its value, which has n bytes and must be filled: what is in it is whatever
// was there before. It is the caller's until Commit or Discard; after that nothing may be written to it.
//
// It returns nil if there is no room for it, or if it is larger than a record may be; then Commit says so, and nothing of the
// reservation will appear.
func (r *Reservation) Next(n int) []byte { return r.room.Next(n) }

// NextKey is Next for a record with a key, which is copied. The key does not decide the partition: that is the Appender's.
func (r *Reservation) NextKey(key []byte, n int) []byte { return r.room.NextKey(key, n) }

// Shrink makes the value of the record added last n bytes long: its first ones. It is for values whose length is known only when they
// are written; the rest is room for others. It counts as a Next without room if there is no record, or n is more than it has.
func (r *Reservation) Shrink(n int) { r.room.Shrink(n) }

// Records returns how many records have been added.
func (r *Reservation) Records() int { return r.room.Records() }

// Commit makes the records visible to readers, all at once and one behind the other, behind what was appended before; it returns the
// offset of the first. In a topic with Sync Always they are durable then. The reservation is over, whatever Commit returns. If that is an
// error none of its records will ever appear, unless it wraps ErrIndefinite. Without a record it does what Flush does.
//
// Errors: *TooLargeError or ErrReservation if Next had no room for a record, ErrReservation also if the reservation is over already;
// those of Append. It does not wait, but for files, and for room if retention has ended the segment meanwhile: then until ctx ends.
func (r *Reservation) Commit(ctx context.Context) (first Offset, err error) {
	return r.x.Commit(ctx, &r.room)
}

// Discard gives the reservation up: none of its records will ever appear. It does nothing if it is over already.
func (r *Reservation) Discard() { r.x.Discard(&r.room) }
