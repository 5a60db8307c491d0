package cursor

import "github.com/leatlog/leat/internal/atomicx"

// Cursor is one reader's position: everything below it is done with. The zero value is at 0. It must not be copied after
// first use.
type Cursor struct {
	// pos is moved by the reader (Store, StoreRelease, Raise) and by whoever may push the reader on (Raise), and loaded by
	// whoever needs to know how far the reader is (Set.Min). Raising it says that the reader reads nothing below it any more.
	pos atomicx.PaddedUint64
}

// Load returns the position.
func (c *Cursor) Load() uint64 { return c.pos.Load() }

// Store moves the cursor to p, forward or back. It is a full barrier. Only the one goroutine that owns the cursor may call
// it, and not while others Raise.
func (c *Cursor) Store(p uint64) { c.pos.Store(p) }

// StoreRelease is Store without the full barrier: what the owner reads next may be answered before others see p (see
// atomicx.StoreRelease).
func (c *Cursor) StoreRelease(p uint64) { atomicx.StoreRelease(&c.pos.Uint64, p) }

// Raise moves the cursor on to p and reports whether it moved. A cursor at p or beyond stays where it is.
func (c *Cursor) Raise(p uint64) bool { return atomicx.Ratchet(&c.pos.Uint64, p) }
