package engine

// Drained reports whether the lanes have nothing to do and are not at work, so that all counters say what they have done.
func (s *Subscription) Drained() bool {
	for _, l := range s.lanes.load() {
		if !l.Drained() {
			return false
		}
	}
	return true
}
