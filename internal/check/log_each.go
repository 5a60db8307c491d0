package check

import (
	"bufio"
	"io"
)

// Given is a record that was given to a consumer together with others.
type Given struct {
	Off     int64
	Attempt int
	Value   []byte
}

// HandleEach begins the handling of several records of one partition that were given to their consumer at one moment and are
// worked on one after the other: a batch whose records are settled one by one. Their offsets need not follow each other. Each
// Handling is ended for itself, in order.
func (l *Log) HandleEach(o Owner, given ...Given) []Handling {
	call := l.rec.clock()
	all := make([]Handling, len(given))
	for i, g := range given {
		s, recs := l.take(1)
		recs[0] = record(g.Off, g.Value)
		all[i] = Handling{o: l.handle(s, o, call, g.Attempt, recs), value: g.Value}
	}
	return all
}

// Write writes all operations to w, one a line, for whoever wants to know what led to a finding.
func (h *History) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	for i := range h.Ops {
		_, _ = b.WriteString(h.text(i) + "\n") // Flush returns the error
	}
	return b.Flush()
}
