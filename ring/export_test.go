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

// ClaimInLine is Claim without the looks before it gets in line.
func (r *MPSC[T]) ClaimInLine(n int, done <-chan struct{}) (pos uint64, o Outcome, ok bool) {
	return r.claimInLine(n, done)
}

// Spare returns how many places the line keeps to use again, and how many tokens were left behind in them.
func (r *MPSC[T]) Spare() (places, tokens int) {
	done := make(chan struct{})
	close(done)
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	for p := r.line.spare; p != nil; p = p.next {
		places++
		for range 64 { // with both a token and done there, either is taken
			if p.parker.Park(done) {
				tokens++
			}
		}
	}
	return places, tokens
}

// First returns whether room is held for the first in line, and whether a token was left for it that it has not yet taken
// note of.
func (r *MPSC[T]) First() (held, signalled bool) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.line.first.held, r.line.first.signalled
}
