package frame

import "encoding/binary"

// Record is a record as it is stored.
type Record struct {
	// Key and Value are the record's bytes. Nil and empty differ.
	Key, Value []byte
	// Headers is the list of headers as package segment encodes it: for each the length of the name, the name, the length of
	// the value plus one or 0 for nil, and the value, with lengths as varints. Empty means that there are none.
	Headers []byte
	// Timestamp is the one that the record came with, in ns since the Unix epoch; 0 if it came with none.
	Timestamp int64
	// Appended is when the record was appended.
	Appended int64
	// Offset is set by decoding.
	Offset uint64
	// Body is set by decoding: headers, key and value as they lie, one after the other.
	Body []byte
}

const (
	flagNilKey = 1 << iota
	flagNilValue
	flagHeaders
	flagTimestamp
	flagLater // the append time differs from that of the record before
	flagsAll  = 1<<iota - 1
)

// Iterator walks over the records of a batch.
type Iterator struct {
	rest     []byte
	off      uint64
	left     uint32
	appended int64
	newest   int64
	err      error
}

// Records returns an iterator over the records of b. Of a frame that holds none it is empty.
func (b *Batch) Records() Iterator {
	it := Iterator{off: b.First, appended: b.Time, newest: b.Newest}
	if b.Kind == Records {
		it.rest, it.left = b.payload, b.Count
	}
	return it
}

// Next sets r to the next record and reports whether there is one. Key, Value, Headers and Body point into the bytes that the
// batch was decoded from.
func (it *Iterator) Next(r *Record) bool {
	if it.left == 0 {
		return false
	}
	if !it.decode(r) {
		it.err, it.left = ErrFormat, 0
		return false
	}
	if it.left--; it.left == 0 && (len(it.rest) != 0 || it.appended != it.newest) {
		it.err = ErrFormat
		return false
	}
	return true
}

// sumOf returns the Sum of one record with a body of n bytes, headers included.
func sumOf(timestamp, appended int64, headers, n int) Sum {
	s := Sum{Latest: appended, Body: uint64(n)}
	if timestamp != 0 {
		s.Latest = timestamp
		s.Body += besideTimestamp
	}
	if headers > 0 {
		s.Body += besideHeaders
	}
	return s
}

// Sum returns what there is to know of the records of b. The error is ErrFormat.
func (b *Batch) Sum() (Sum, error) {
	sum := None
	var r Record
	it := b.Records()
	for it.Next(&r) {
		sum.Add(sumOf(r.Timestamp, r.Appended, len(r.Headers), len(r.Body)))
	}
	return sum, it.Err()
}

// Err returns ErrFormat if Next has ended because the bytes are not those of records, which a matching checksum makes all but
// impossible.
func (it *Iterator) Err() error { return it.err }

// decode takes one record off the rest.
func (it *Iterator) decode(r *Record) bool {
	b := it.rest
	if len(b) == 0 || b[0] > flagsAll {
		return false
	}
	flags := b[0]
	b = b[1:]
	var key, value, headers, more uint64
	ok := true
	if flags&flagNilKey == 0 {
		key, b, ok = length(b)
	}
	if ok && flags&flagNilValue == 0 {
		value, b, ok = length(b)
	}
	if ok && flags&flagHeaders != 0 {
		headers, b, ok = length(b)
		ok = ok && headers > 0
	}
	if !ok {
		return false
	}
	r.Timestamp = 0
	if flags&flagTimestamp != 0 {
		if len(b) < 8 {
			return false
		}
		if r.Timestamp = int64(binary.LittleEndian.Uint64(b)); r.Timestamp == 0 {
			return false
		}
		b = b[8:]
	}
	if flags&flagLater != 0 {
		var w int
		if more, w = binary.Uvarint(b); w <= 0 || more > uint64(it.newest)-uint64(it.appended) {
			return false
		}
		b = b[w:]
		it.appended += int64(more)
	}
	// Each is at most MaxPayload, so that the sum does not wrap.
	if key+value+headers > uint64(len(b)) {
		return false
	}
	h, k, n := int(headers), int(headers+key), int(headers+key+value)
	r.Key, r.Value, r.Headers = nil, nil, nil
	if h > 0 {
		r.Headers = b[:h:h]
		if !validHeaders(r.Headers) {
			return false
		}
	}
	if flags&flagNilKey == 0 {
		r.Key = b[h:k:k]
	}
	if flags&flagNilValue == 0 {
		r.Value = b[k:n:n]
	}
	r.Body = b[:n:n]
	r.Appended, r.Offset = it.appended, it.off
	it.off++
	it.rest = b[n:]
	return true
}

// length takes a length off b.
func length(b []byte) (n uint64, rest []byte, ok bool) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), b[1:], true
	}
	n, w := binary.Uvarint(b)
	if w <= 0 || n > MaxPayload {
		return 0, nil, false
	}
	return n, b[w:], true
}

// validHeaders reports whether raw is a list of headers that package segment can walk.
func validHeaders(raw []byte) bool {
	for len(raw) > 0 {
		n, rest, ok := length(raw)
		if !ok || n > uint64(len(rest)) {
			return false
		}
		rest = rest[n:]
		n, rest, ok = length(rest)
		if !ok || n > uint64(len(rest))+1 {
			return false
		}
		if n > 0 {
			rest = rest[n-1:]
		}
		raw = rest
	}
	return true
}
