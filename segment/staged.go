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

// whole returns record i as it was given to Reserve.
func (s *segment) whole(i int) (shape Shape, body []byte, appended int64) {
	e, b := s.block.entry(i), &s.block
	end := int(e.span >> 32)
	body = b.data[b.start(i):end:end]
	shape.Key = int(uint32(e.span))
	if e.stamp&flagHasTimestamp != 0 {
		shape.Timestamp = int64(binary.LittleEndian.Uint64(body))
		body = body[timestampBytes:]
	}
	if e.stamp&flagHasHeaders != 0 {
		shape.Headers = int(binary.LittleEndian.Uint32(body))
		body = body[headersLenBytes:]
	}
	shape.Value = len(body) - shape.Headers - shape.Key
	if e.stamp&flagNilKey != 0 {
		shape.Key = -1
	}
	if e.stamp&flagNilValue != 0 {
		shape.Value = -1
	}
	return shape, body, s.baseTime + int64(e.stamp>>flagBits)
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
		end := min(p.seg.end.Load(), to)
		for off := max(p.base, from); off < end; off++ {
			shape, body, appended := p.seg.whole(int(off - p.base))
			if !yield(shape, body, appended) {
				return nil
			}
		}
	}
	return nil
}
