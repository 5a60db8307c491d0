package segment

import (
	"encoding/binary"
	"sort"
)

// EachStaged calls yield for each record that is staged and not yet published, in order, until it returns false: its shape, its
// headers, key and value as one run of bytes, and its append time. The bytes are the log's and must not be changed. It is the
// appender's.
func (l *Log) EachStaged(yield func(s Shape, body []byte, appended int64) bool) {
	_ = l.each(l.published, l.next, yield) // no cold segment is staged
}

// whole returns a record that has the entry e and its bytes in [start, end) as it was given to Reserve.
func (s *segment) whole(e *entry, start, end int) (shape Shape, body []byte, appended int64) {
	body = s.block.data[start:end:end]
	if e.stamp&flagHasTimestamp != 0 {
		shape.Timestamp = int64(binary.LittleEndian.Uint64(body))
		body = body[timestampBytes:]
	}
	if e.stamp&flagHasHeaders != 0 {
		shape.Headers = int(binary.LittleEndian.Uint32(body))
		body = body[headersLenBytes:]
	}
	shape.Value = len(body) - shape.Headers
	if e.stamp&flagNilKey != 0 {
		shape.Key = -1
	} else {
		shape.Key = int(uint32(e.span))
		shape.Value -= shape.Key
	}
	if e.stamp&flagNilValue != 0 {
		shape.Value = -1
	}
	return shape, body, s.baseTime + int64(e.stamp>>stampBits)
}

// each calls yield for the records [i, end), and reports whether it has never returned false. The caller is the appender.
func (s *segment) each(i, end int, yield func(s Shape, body []byte, appended int64) bool) bool {
	for start := s.start(i); i < end; {
		e, first := s.covering(i)
		for last := first + e.records() - 1; i <= last && i < end; i++ {
			stop := int(e.span>>32) - (last-i)*int(uint32(e.span))
			if !yield(s.whole(e, start, stop)) {
				return false
			}
			start = stop
		}
	}
	return true
}

// EachFrom is EachStaged for the published records from an offset on that is at least First. It is the appender's as well. The
// error is that of a cold segment that could not be loaded.
func (l *Log) EachFrom(from uint64, yield func(s Shape, body []byte, appended int64) bool) error {
	return l.each(from, l.published, yield)
}

// each calls yield for the records [from, to), of which from is retained if there are any.
func (l *Log) each(from, to uint64, yield func(s Shape, body []byte, appended int64) bool) error {
	if from >= to {
		return nil
	}
	first := sort.Search(len(l.segs), func(i int) bool { return l.segs[i].base > from }) - 1
	for _, p := range l.segs[first:] {
		if p.base >= to {
			break
		}
		if err := p.seg.warm(); err != nil { // without a pin: only we could kill it
			return err
		}
		if !p.seg.each(int(max(p.base, from)-p.base), int(min(p.seg.end.Load(), to)-p.base), yield) {
			return nil
		}
	}
	return nil
}
