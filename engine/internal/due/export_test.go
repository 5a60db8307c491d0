package due

// Armed reports whether the timer is set, as far as the alarms know.
func (s *Alarms) Armed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fires != Never
}

// Until is until.
var Until = until

// Looks returns how many keys Due looks at.
func (h *Heap[K]) Looks(now int64) int { return h.due(0, now, func(K) {}) }
