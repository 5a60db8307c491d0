// Package hot is compiled by a test of atomicx that looks for calls in its assembly: in a normal build there must be none.
package hot

import (
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

// Words is what the functions below touch.
type Words struct {
	Word   atomicx.Uint64
	Flag   atomicx.Bool
	Half   atomicx.Uint32
	Signed atomicx.Int64
	Next   atomicx.Pointer[Words]
	Padded atomicx.PaddedUint64
	Cell   atomicx.Cell[uint64]
	Block  [4]uint64
}

// Touch uses everything that hot paths use, except what is a call by nature (parking, yielding, the clock, StoreRelease).
func Touch(w *Words) uint64 {
	x := w.Word.Load()
	w.Word.Store(x + 1)
	x += w.Word.Add(2) + w.Word.Or(1) + w.Word.And(7)
	if w.Word.CompareAndSwap(3, 4) {
		x += w.Word.Swap(5)
	}
	if w.Flag.Load() && w.Flag.CompareAndSwap(true, false) && w.Flag.Swap(true) {
		w.Flag.Store(false)
	}
	w.Half.Store(w.Half.Add(1) + w.Half.Load() + w.Half.Or(2) + w.Half.Swap(3))
	w.Signed.Store(w.Signed.Add(1) + w.Signed.Load() + w.Signed.And(2) + w.Signed.Swap(3))
	if w.Half.CompareAndSwap(1, 2) && w.Signed.CompareAndSwap(1, 2) {
		x++
	}
	if n := w.Next.Load(); n != nil {
		x++
	}
	x += w.Padded.Load()
	w.Cell.Set(w.Cell.Get() + x)
	atomicx.Reads(unsafe.Pointer(&w.Block[0]))
	x += w.Block[0]
	atomicx.Writes(unsafe.Pointer(&w.Block[1]))
	w.Block[1] = x
	return x
}
