package engine

import (
	"context"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/segment"
)

// Reservation is room in the log for records that are made where they stay, without a copy: the fastest way in. An Appender hands it
// out; Next or NextKey adds a record and returns the place for its value, NextRun adds several of one size, and Commit makes all of them
// visible at once. A record made this way has no headers and, as its timestamp, the time of Reserve, from which MaxAge counts; Append
// takes other records.
//
//	r, err := appender.Reserve(ctx, len(orders), 64*len(orders))
//	if err != nil {
//		return err
//	}
//	defer r.Discard() // does nothing after Commit; it is for an Encode that panics
//	for _, o := range orders {
//		o.Encode(r.Next(64))
//	}
//	_, err = r.Commit(ctx)
//	return err
//
// It is for one goroutine at a time: its methods, and writing to what they return, are not for several at once. While it is out it holds up
// nobody but its own Appender: readers, retention, TruncateBefore, the Appender's Close and the end of the topic do not wait for it. If
// the Appender is closed meanwhile, also on another goroutine, or the topic ends, what is written is never seen by anybody, and Commit
// says so. The memory of a segment that ends while a Reservation lies in it is left to the collector, and MaxMemory counts it no longer.
type Reservation struct {
	room segment.Reservation
	x    *partition.Appender
}

// Reserve hands out room for at most so many records, whose keys and values are at most bytes together. There is one Reservation at a time:
// until its Commit or Discard, Append, Publish, AppendBatch and Reserve fail with ErrReserved. What was appended before becomes
// visible by Flush, also while it is out, by Commit, or earlier, if Reserve has to make room. The next Reserve hands out the same Reservation again, so do not
// call anything on one after its end from where another may be out.
//
// Under Block it waits for room as Append does, until ctx ends; ctx is not looked at where there is room. Room that is not used in the end
// is room for others again. A reservation takes one piece of memory: if the newest segment has not so much left, its rest stays empty, so
// reserve for one batch, not for all that may come.
//
// Errors: ErrReservation if records is not above 0 or bytes is negative; *TooLargeError if it could never fit, as a batch of that size
// could not, or is larger than the largest piece of memory, which is 1 GiB or the largest power of two within MaxMemory, 16 bytes
// for each record included; ErrReserved; and those of Append: that of ctx, ErrFull, ErrSelfBlock, ErrDraining, ErrReadOnly, ErrExhausted,
// ErrClosed, ErrTopicDeleted. After an error nothing has been handed out.
func (a *Appender) Reserve(ctx context.Context, records, bytes int) (*Reservation, error) {
	if err := a.x.Reserve(ctx, &a.r.room, records, bytes); err != nil {
		return nil, err
	}
	return &a.r, nil
}

// Next adds a record without a key and returns the place for its value, which has n bytes and must be filled, all of it: what is in it is
// whatever was there before, of other records of any topic. It may be filled, and looked at, until Commit or Discard, in any order with
// others; after that nothing may be written to it, since it is part of the log, or somebody else's.
//
// It returns nil if there is no room for the record, if it is larger than MaxRecordBytes, if n is negative, or if the Reservation is over.
// Unless it was over, Commit then says so, whatever comes afterwards, and nothing of the Reservation will appear. The result is never nil
// if there was room, also if n is 0; the value is then empty and not nil.
func (r *Reservation) Next(n int) []byte { return r.room.Next(n) }

// NextRun is Next for so many records at once, all with values of n bytes: the fastest way for records of one size. The values lie one
// behind the other in what it returns, value i from i*n on. If there is no room for all of them, or records is not above 0, it adds none
// and returns nil, and Commit says so. Shrink is for the last one.
func (r *Reservation) NextRun(records, n int) []byte { return r.room.NextRun(records, n) }

// NextKey is Next for a record with a key, which is copied and counts as its bytes; what is returned is the place for the value alone. A nil
// key is none, which is not the same as an empty one. The key does not decide the partition: that is the Appender's.
func (r *Reservation) NextKey(key []byte, n int) []byte { return r.room.NextKey(key, n) }

// Shrink makes the value of the record added last n bytes long: its first ones. It is for values whose length is known only when they
// are written. The rest is room for the records added next, so it must not be written any more. It can be called again, to make the value
// still shorter. If there is no record, or n is negative or more than the value has, it counts as a Next without room.
func (r *Reservation) Shrink(n int) { r.room.Shrink(n) }

// Records returns how many records have been added; 0 if it is over.
func (r *Reservation) Records() int { return r.room.Records() }

// Commit makes the records visible to readers, all at once and one behind the other, behind what was appended before, which becomes visible
// with them; it returns the offset of the first. In a topic with Sync Always they are durable then. The Reservation is over, whatever
// Commit returns. If that is an error none of its records will ever appear, unless it wraps ErrIndefinite: the files of a durable topic
// have failed. Without a record it does what Flush does, and returns the offset that the next record gets.
//
// There is room for the records, so Commit waits for nothing but, in a durable topic, its files. One thing is different: if retention,
// TruncateBefore, or the loss of what was appended before has ended the segment that they lie in, Commit copies them to another, with the
// time of that copy, and for that it may need memory. Then it waits or fails as Reserve does, and until ctx ends.
//
// Errors: *TooLargeError if a record was larger than MaxRecordBytes; ErrReservation if Next had no room for one, or if the Reservation is over
// already; and those of Append.
func (r *Reservation) Commit(ctx context.Context) (first Offset, err error) {
	return r.x.Commit(ctx, &r.room)
}

// Discard gives the Reservation up: none of its records will ever appear, and the Appender may be used again. What was appended before
// stays. It does nothing if the Reservation is over already, so it can be deferred.
func (r *Reservation) Discard() { r.x.Discard(&r.room) }
