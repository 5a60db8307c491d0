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

// NewModelWatch returns a Watch that reads no counter: At and Learn are told what it says.
func NewModelWatch() *Watch { return &Watch{able: true} }

// At returns what Now does when the counter says count, and whether that does without a look.
func (w *Watch) At(count uint64) (now int64, ok bool) { return w.at(count) }

// Learn is a look: the clock, and the counter before and after it.
func (w *Watch) Learn(before uint64, now int64, after uint64) { w.learn(before, now, after) }

// Able reports whether w goes by the counter at all.
func (w *Watch) Able() bool { return w.able }

// Hurry makes w find that its next looks take too long to be used.
func (w *Watch) Hurry() { w.quickest = 1 }

// WatchSpan is for how many counts it does so.
const WatchSpan = watchSpan
