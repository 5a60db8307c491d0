package baseline

import (
	"bytes"
	"errors"
	"sync"
)

// ErrClosed is returned by Append after Close. It is final.
var ErrClosed = errors.New("baseline: log closed")

// Log is a slice of messages under a mutex. Readers take the same mutex for every message.
//
// Offsets count from 0. A log with a limit holds at most that many messages: when it is full it drops what all its readers
// have read, and if that is nothing, Append waits. Without readers it drops the oldest.
type Log struct {
	mu       sync.Mutex
	grown    sync.Cond // on mu: there is a new message, or the log is closed
	drained  sync.Cond // on mu: a reader has moved while the log was full, or the log is closed
	messages [][]byte
	first    uint64 // offset of messages[0]
	limit    int    // immutable; 0 means no limit
	readers  []*LogReader
	closed   bool
}

// NewLog returns an empty log of at most limit messages, or without bound if limit is 0.
func NewLog(limit int) *Log {
	l := &Log{limit: limit}
	l.grown.L = &l.mu
	l.drained.L = &l.mu
	return l
}

// Append copies p to the end of the log and returns its offset. It waits while the log is full.
func (l *Log) Append(p []byte) (uint64, error) {
	m := bytes.Clone(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.limit > 0 && len(l.messages) >= l.limit && !l.closed && !l.drop() {
		l.drained.Wait()
	}
	if l.closed {
		return 0, ErrClosed
	}
	l.messages = append(l.messages, m)
	l.grown.Broadcast()
	return l.first + uint64(len(l.messages)) - 1, nil
}

// drop removes what every reader has read, or the oldest message if there are no readers, and reports whether that was
// anything. The caller holds mu.
func (l *Log) drop() bool {
	low := l.first + 1
	if len(l.readers) > 0 {
		low = l.readers[0].next
		for _, r := range l.readers[1:] {
			low = min(low, r.next)
		}
	}
	if low <= l.first {
		return false
	}
	n := low - l.first
	clear(l.messages[:n]) // the array lives on until append moves to a new one; the messages should not
	l.messages = l.messages[n:]
	l.first = low
	return true
}

// Len returns how many messages the log holds.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.messages)
}

// ReadAt returns the message at an offset, or false if the log does not hold it. The caller must not change it.
func (l *Log) ReadAt(off uint64) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if off < l.first || off-l.first >= uint64(len(l.messages)) {
		return nil, false
	}
	return l.messages[off-l.first], true
}

// Close ends the log: Append fails, and readers end when they have read what there is.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.grown.Broadcast()
	l.drained.Broadcast()
}

// LogReader is a position in a Log. One goroutine uses it at a time.
type LogReader struct {
	log  *Log
	next uint64 // under log.mu
}

// NewReader returns a reader that starts at the oldest message. A full log waits for it from now on.
func (l *Log) NewReader() *LogReader {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &LogReader{log: l, next: l.first}
	l.readers = append(l.readers, r)
	return r
}

// Next waits for the next message and returns it, or false once the log is closed and all is read. The caller must not
// change the message.
func (r *LogReader) Next() ([]byte, bool) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	for r.next-l.first >= uint64(len(l.messages)) {
		if l.closed {
			return nil, false
		}
		l.grown.Wait()
	}
	m := l.messages[r.next-l.first]
	r.next++
	if l.limit > 0 && len(l.messages) >= l.limit {
		l.drained.Broadcast()
	}
	return m, true
}
