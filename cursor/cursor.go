package cursor

import "github.com/leatlog/leat/internal/atomicx"

// Cursor is one reader's position: it is done with everything below. The zero value is at 0 and ready to use. It must not be
// copied after first use.
//
// # Roles
//
//   - owner: the one goroutine whose position it is, or several, one after the other, with something that orders them. It calls
//     Store and StoreRelease.
//   - pusher: any goroutine. It calls Raise. While there are any, the owner calls Raise, too.
//   - asker: any goroutine. It calls Load, or Min of a Set.
//
// # Proof
//
// Publication. The owner moves the cursor to p after its last read below p. Whoever loads p, or a later value, has
// observed that, so those reads come before what it does then: it may overwrite what is below p.
//
// Never back. Raise is a ratchet: it replaces the position only by a higher one, in one CAS. As long as nobody calls Store or
// StoreRelease, positions that one goroutine loads never go back.
//
// Progress. Load, Store and StoreRelease are wait-free. Raise is lock-free: its CAS fails only because somebody else has raised
// the cursor, or moved it.
//
// Not promised. That Store and Raise together end at the higher of the two.
type Cursor struct {
	// pos is moved by the owner (Store, StoreRelease, Raise) and by pushers (Raise), and loaded by askers. Moving it to p says
	// that the reads below p are over.
	pos atomicx.PaddedUint64
}

// Load returns the position.
func (c *Cursor) Load() uint64 { return c.pos.Load() }

// Store moves the cursor to p, forward or back. It is a full barrier.
func (c *Cursor) Store(p uint64) { c.pos.Store(p) }

// StoreRelease is Store without the full barrier: what the owner loads next may be answered before others see p (see
// atomicx.StoreRelease). An owner that then asks whether somebody waits for it to move needs Store, or Raise.
func (c *Cursor) StoreRelease(p uint64) { atomicx.StoreRelease(&c.pos.Uint64, p) }

// Raise moves the cursor on to p and reports whether it moved. A cursor at p or beyond stays where it is. If it moves it is a
// full barrier.
func (c *Cursor) Raise(p uint64) bool { return atomicx.Ratchet(&c.pos.Uint64, p) }
