package atomicx

import "unsafe"

// EventLayout returns where the waiting word of an Event lies, where what follows it begins, and the size of the whole.
func EventLayout() (waiting, next, size uintptr) {
	var e Event
	return unsafe.Offsetof(e.waiting), unsafe.Offsetof(e.mu), unsafe.Sizeof(e)
}

// HasToken reports whether a token is left in w.
func (w *Waiter) HasToken() bool { return len(w.parker.token) > 0 }

// Empty reports whether nobody is on the event's list.
func (e *Event) Empty() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.first == nil && e.last == nil && e.waiting.Load() == 0
}
