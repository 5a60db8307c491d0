package dispatch

// Inside is what tests may know of a pool's bookkeeping. Dedicated tasks count in Known only.
type Inside struct {
	Parked    int // workers on the parked stack
	Searching int
	Known     int // goroutines that OnWorker knows
}

// Inside returns a pool's bookkeeping.
func (p *Pool) Inside() Inside {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := Inside{Searching: p.shared.searching, Known: len(p.byID)}
	for w := p.shared.parked; w != nil; w = w.below {
		in.Parked++
	}
	return in
}
