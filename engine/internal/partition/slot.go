package partition

import (
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// inlineBytes is how much of a record fits into one slot of the hand-over. With the ring's mark a slot is 128 bytes: two
// cache lines, enough for a 64-byte value and a 16-byte key in one slot.
const inlineBytes = 80

// kind says what a slot of the ring carries.
type kind uint8

const (
	kindInline  kind = iota // a record whose bytes are in this slot and those that follow it
	kindRequest             // a request: somebody waits for it, or it owns a copy of its record
)

// slot is one entry of the hand-over. The producer that claimed it writes it until Ready; after that it belongs to the
// holder of the role until Release.
type slot struct {
	req  *request // kindRequest
	done Done     // kindInline: whom to tell, or nil

	timestamp int64
	key       int32 // length, -1 for a nil key
	value     int32 // length, -1 for a nil value
	headers   int32
	claim     uint32 // how many slots the claim has, this one included, above the bit that is the kind

	data [inlineBytes]byte
}

// begin notes what the claim of n slots is that starts here.
func (s *slot) begin(k kind, n int) { s.claim = uint32(n)<<1 | uint32(k) }

func (s *slot) kind() kind { return kind(s.claim & 1) }

// slots returns how many slots the claim has.
func (s *slot) slots() int { return int(s.claim >> 1) }

// Published says where a record was put.
type Published struct {
	Partition int
	Offset    int64
}

// Done is called once with the result of an asynchronous publish.
type Done func(Published, error)

// length returns the length of b, -1 if it is nil.
func length(b []byte) int {
	if b == nil {
		return -1
	}
	return len(b)
}

// sizeOf returns how many bytes key, value and headers are. It cannot wrap where int has 32 bits, as Record.Size can if key
// and value are the same large slice.
func sizeOf(r *segment.Record) int64 {
	return int64(len(r.Key)) + int64(len(r.Value)) + int64(r.Headers.Size())
}

// stored returns how many bytes a record takes in the log without its index entry.
func stored(r *segment.Record) int64 {
	return storedBytes(sizeOf(r), r.Timestamp != 0, r.Headers.Size() > 0)
}

// stored is the same for a record in slots.
func (s *slot) stored() int64 {
	size := int64(s.headers) + int64(max(0, s.key)) + int64(max(0, s.value))
	return storedBytes(size, s.timestamp != 0, s.headers > 0)
}

func storedBytes(size int64, timestamp, headers bool) int64 {
	if timestamp {
		size += 8
	}
	if headers {
		size += 4
	}
	return size
}

// slotsFor returns how many slots a record of size bytes takes.
func slotsFor(size int64) int { return int(max(1, (size+inlineBytes-1)/inlineBytes)) }

// fill writes r into the slots of a claim that starts at pos. It cannot fail.
func (p *Partition) fill(pos uint64, n int, r *segment.Record, done Done) {
	s := p.ring.Slot(pos, 0)
	atomicx.Writes(unsafe.Pointer(s))
	s.begin(kindInline, n)
	s.req, s.done = nil, done
	s.timestamp = r.Timestamp
	s.key, s.value = int32(length(r.Key)), int32(length(r.Value))
	h := r.Headers.Encoded()
	s.headers = int32(len(h))
	if n == 1 {
		r.CopyTo(s.data[:])
		return
	}
	w := spanWriter{p: p, pos: pos, free: s.data[:]}
	w.write(h)
	w.write(r.Key)
	w.write(r.Value)
}

// fillOne is fill for a record that fits one slot and has nobody to tell. The holder of the role has left req and done nil.
func (p *Partition) fillOne(pos uint64, r *segment.Record) {
	s := p.ring.Slot(pos, 0)
	atomicx.Writes(unsafe.Pointer(s))
	s.begin(kindInline, 1)
	s.timestamp = r.Timestamp
	s.key, s.value, s.headers = int32(length(r.Key)), int32(length(r.Value)), int32(r.Headers.Size())
	if len(r.Key)|r.Headers.Size() == 0 {
		copy(s.data[:], r.Value)
		return
	}
	r.CopyTo(s.data[:])
}

// spanWriter writes bytes over the data of consecutive slots.
type spanWriter struct {
	p    *Partition
	pos  uint64
	i    int
	free []byte
}

func (w *spanWriter) write(b []byte) {
	for len(b) > 0 {
		if len(w.free) == 0 {
			w.i++
			s := w.p.ring.Slot(w.pos, w.i)
			atomicx.Writes(unsafe.Pointer(s))
			w.free = s.data[:]
		}
		n := copy(w.free, b)
		b, w.free = b[n:], w.free[n:]
	}
}

// gather copies the bytes of the slots of a claim into dst, which has their exact length.
func (p *Partition) gather(dst []byte, pos uint64) {
	for i := 0; len(dst) > 0; i++ {
		s := p.ring.Slot(pos, i)
		atomicx.Reads(unsafe.Pointer(s))
		dst = dst[copy(dst, s.data[:]):]
	}
}
