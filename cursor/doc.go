// Package cursor keeps the positions of those who read a log.
//
//	log      . . . . . a b c d e f g h i j .
//	                   |   |         |     next
//	              first|   |         cursor of a fast reader
//	                       cursor of a slow one = low water: what is below it may go
//
// There are four things here:
//
//   - [Cursor], one reader's position on a cache line of its own: the reader moves it, others look at it.
//   - [Set], the cursors that must be waited for, and its low water: the lowest position among them. Asking takes no lock
//     and allocates nothing.
//   - [Acks], which turns acknowledgements that come out of order into a floor: the end of the prefix without gaps.
//   - [Wait], which says how a reader that has caught up waits for more.
//
// A reader raises its cursor when it is done with what is below; whoever wants to drop or overwrite the beginning of the log
// asks the set for its low water:
//
//	var readers cursor.Set
//	var c cursor.Cursor
//	readers.Add(&c)
//	...
//	c.Raise(off + 1)                 // done with off
//	...
//	if low, _, ok := readers.Min(); ok {
//		drop(low)                    // nobody in the set reads below low any more
//	}
//
// What the set does not do: it does not stop a reader from being added below what has just been dropped. Whoever adds while
// others drop has to order the two (see the proof of Set). And it knows nothing of offsets, of which it only needs that more
// is later; a position is a uint64 that never wraps.
package cursor
