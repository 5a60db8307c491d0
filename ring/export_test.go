package ring

// NewAt returns a ring whose first position is start, which must be a multiple of PosStep: near 2^64, to see positions wrap.
func NewAt[T any](capacity int, start uint64) *MPSC[T] {
	r := New[T](capacity)
	r.tail.Store(start)
	r.head.Store(start)
	return r
}

// PosStep is the distance between two positions.
const PosStep = posStep

// Held reports whether room is held for the producer that is first in line.
func (r *MPSC[T]) Held() bool { return r.tail.Load()&heldBit != 0 }

// Places returns how many places the line has made so far and not in use.
func (r *MPSC[T]) SparePlaces() (n int) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	for p := r.line.spare; p != nil; p = p.next {
		n++
	}
	return n
}
