package segment

import "time"

// Record is one record of a log. What a reader gets is a view: Key, Value and Headers point into the log's memory, are not
// to be changed, and are valid only as long as the reader says. Clone makes a copy that stays.
type Record struct {
	// Key and Value are the record's bytes. Nil and empty differ, and stay different in the log.
	Key, Value []byte
	// Headers is the list of headers.
	Headers Headers
	// Timestamp is in nanoseconds since the Unix epoch. At append, 0 means the time of the append, to within a microsecond, or that of
	// the batch that the record came to be in, which may have begun a little before it was handed over; any other value is kept as it
	// is. On read it is never "unset".
	Timestamp int64
	// Offset is set on read.
	Offset int64
	// Partition is not stored. On read it is what the log's Config says.
	Partition int32
}

// Shape is what the log has to know about a record to make room for it.
type Shape struct {
	// Key and Value are lengths; a negative one stands for nil.
	Key, Value int
	// Headers is the size of the encoded headers; 0 if there are none.
	Headers int
	// Timestamp is the record's own; 0 means the time of the append.
	Timestamp int64
}

// Shape returns the shape of r.
func (r *Record) Shape() Shape {
	s := Shape{Key: len(r.Key), Value: len(r.Value), Headers: len(r.Headers.raw), Timestamp: r.Timestamp}
	if r.Key == nil {
		s.Key = -1
	}
	if r.Value == nil {
		s.Value = -1
	}
	return s
}

// CopyTo copies headers, key and value to dst in the order that Reserve wants, and returns how many bytes they are. It
// panics if dst is too short.
func (r *Record) CopyTo(dst []byte) int {
	n := 0
	if h := r.Headers.raw; len(h) > 0 {
		n = copy(dst[:len(h)], h)
	}
	if k := r.Key; len(k) > 0 {
		n += copy(dst[n:n+len(k)], k)
	}
	return n + copy(dst[n:n+len(r.Value)], r.Value)
}

// Size returns how many bytes key, value and headers are.
func (r *Record) Size() int { return len(r.Key) + len(r.Value) + len(r.Headers.raw) }

// Time returns the timestamp as a time.
func (r *Record) Time() time.Time { return time.Unix(0, r.Timestamp) }

// Clone returns a copy of r with bytes of its own, in one allocation.
func (r *Record) Clone() Record {
	c := *r
	buf := make([]byte, r.Size())
	r.CopyTo(buf)
	h, k := len(r.Headers.raw), len(r.Headers.raw)+len(r.Key)
	c.Headers.raw, c.Key, c.Value = nil, nil, nil
	if h > 0 {
		c.Headers.raw = buf[:h:h]
	}
	if r.Key != nil {
		c.Key = buf[h:k:k]
	}
	if r.Value != nil {
		c.Value = buf[k:len(buf):len(buf)]
	}
	return c
}

// setBare makes r, which may have been something else, a value alone.
func (r *Record) setBare(value []byte, timestamp, off int64, partition int32) {
	r.Timestamp = timestamp
	r.Offset = off
	r.Partition = partition
	if r.Key != nil { // to look costs less than to store
		r.Key = nil
	}
	if r.Headers.raw != nil {
		r.Headers.raw = nil
	}
	r.Value = value
}
