package frame

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
)

// Shape is what a Builder has to know about a record to make room for it.
type Shape struct {
	// Key and Value are lengths; a negative one stands for nil. Headers is the length of the encoded headers.
	Key, Value, Headers int
	// Timestamp and Appended are as in Record.
	Timestamp, Appended int64
}

// mostBeside is the most bytes that a record takes beside its headers, key and value.
const mostBeside = 1 + 3*binary.MaxVarintLen32 + 8 + binary.MaxVarintLen64

// Builder puts records into a frame. The zero value is ready for use; one that is used again allocates nothing once its buffer
// has grown. It is not for several goroutines at once.
type Builder struct {
	buf          []byte // room for the header, then the records
	count        uint32
	time, newest int64
	sum          Sum
}

// Reset takes all records out. It keeps the buffer, unless that has more than keep bytes and keep is positive.
func (b *Builder) Reset(keep int) {
	if keep > 0 && cap(b.buf) > keep {
		b.buf = nil
	}
	b.buf, b.count = b.buf[:0], 0
}

// Count returns how many records there are.
func (b *Builder) Count() int { return int(b.count) }

// Sum returns what there is to know of the records, if there are any.
func (b *Builder) Sum() Sum { return b.sum }

// Bytes returns how many bytes the frame takes in the file, if there are any records.
func (b *Builder) Bytes() int64 {
	if b.count == 0 {
		return 0
	}
	return (int64(len(b.buf)) + Align - 1) &^ (Align - 1)
}

// Add adds a copy of r. It reports false, and adds nothing, if the frame would get too large; an empty one takes any record
// with less than MaxPayload - 64 bytes.
func (b *Builder) Add(r *Record) bool {
	s := Shape{Key: len(r.Key), Value: len(r.Value), Headers: len(r.Headers), Timestamp: r.Timestamp, Appended: r.Appended}
	if r.Key == nil {
		s.Key = -1
	}
	if r.Value == nil {
		s.Value = -1
	}
	dst := b.Reserve(s)
	if dst == nil {
		return false
	}
	n := copy(dst, r.Headers)
	n += copy(dst[n:], r.Key)
	copy(dst[n:], r.Value)
	return true
}

// Reserve adds a record and returns the place for its headers, key and value, in that order, which the caller must fill before
// it calls another method. It returns nil, and adds nothing, if the frame would get too large. An append time that is before
// that of an earlier record counts as that one.
func (b *Builder) Reserve(s Shape) []byte {
	k, v := max(s.Key, 0), max(s.Value, 0)
	if k > MaxPayload || v > MaxPayload || s.Headers > MaxPayload {
		return nil
	}
	size := int64(k) + int64(v) + int64(s.Headers)
	if int64(len(b.buf))+size+HeaderBytes+mostBeside > MaxPayload || b.count == math.MaxUint32 {
		return nil
	}
	n := int(size)
	buf := b.buf
	if len(buf) == 0 {
		buf = slices.Grow(buf, HeaderBytes)[:HeaderBytes]
		b.time, b.newest, b.sum = s.Appended, s.Appended, None
	}
	if cap(buf)-len(buf) < n+mostBeside+Align {
		buf = slices.Grow(buf, n+mostBeside+Align)
	}
	if k|v < 0x80 && s.Headers == 0 && s.Timestamp == 0 && s.Appended <= b.newest { // what most are like
		at, end := len(buf), len(buf)+1
		buf = buf[:at+3+n]
		buf[at] = 0
		if s.Key >= 0 {
			buf[end] = byte(k)
			end++
		} else {
			buf[at] = flagNilKey
		}
		if s.Value >= 0 {
			buf[end] = byte(v)
			end++
		} else {
			buf[at] |= flagNilValue
		}
		b.buf = buf[:end+n]
		b.count++
		b.sum.Latest = max(b.sum.Latest, b.newest)
		b.sum.Body += uint64(n)
		return buf[end : end+n : end+n]
	}
	var flags byte
	at := len(buf)
	buf = append(buf, 0)
	if s.Key < 0 {
		flags |= flagNilKey
	} else {
		buf = appendLength(buf, k)
	}
	if s.Value < 0 {
		flags |= flagNilValue
	} else {
		buf = appendLength(buf, v)
	}
	if s.Headers > 0 {
		flags |= flagHeaders
		buf = appendLength(buf, s.Headers)
	}
	if s.Timestamp != 0 {
		flags |= flagTimestamp
		buf = binary.LittleEndian.AppendUint64(buf, uint64(s.Timestamp))
	}
	if s.Appended > b.newest {
		flags |= flagLater
		buf = binary.AppendUvarint(buf, uint64(s.Appended)-uint64(b.newest))
		b.newest = s.Appended
	}
	buf[at] = flags
	at = len(buf)
	b.buf = buf[:at+n]
	b.count++
	b.sum.Add(sumOf(s.Timestamp, b.newest, s.Headers, n))
	return b.buf[at : at+n : at+n]
}

// appendLength appends a length.
func appendLength(b []byte, n int) []byte {
	if n < 0x80 {
		return append(b, byte(n))
	}
	return binary.AppendUvarint(b, uint64(n))
}

// Finish returns the frame for position pos of a file with that seed: First, Epoch and SyncedTo are taken from h, and the rest
// is known. The bytes are valid until the next call of another method than Count and Bytes; Finish may be called again, for
// another place. It panics if there are no records.
func (b *Builder) Finish(seed Seed, pos int64, h Header) []byte {
	if b.count == 0 {
		panic("frame: no records")
	}
	h.Kind, h.Count, h.Time, h.Newest = Records, b.count, b.time, b.newest
	h.Payload = uint32(len(b.buf) - HeaderBytes)
	h.payloadCRC = crc32.Update(uint32(seed), castagnoli, b.buf[HeaderBytes:])
	h.put(b.buf, seed, pos)
	whole := b.buf[:b.Bytes()] // Reserve has left room
	clear(whole[len(b.buf):])
	return whole
}
