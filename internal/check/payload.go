package check

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync/atomic"
)

// MinPayload is the least size of a payload in bytes.
const MinPayload = 24

// seqBits is how many bits of a value count a producer's records; the others are the producer's number.
const seqBits = 40

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Val is what a record says it is: a producer's number and a sequence number of that producer. No two records of a run have
// the same.
type Val uint64

// Producer returns the producer's number.
func (v Val) Producer() int { return int(v >> seqBits) }

// Seq returns the record's place in the order of its producer.
func (v Val) Seq() int64 { return int64(v & (1<<seqBits - 1)) }

// String returns the two numbers.
func (v Val) String() string { return fmt.Sprintf("p%d:%d", v.Producer(), v.Seq()) }

// A payload is: value, key (8 bytes each, little endian), length, checksum of all other bytes (4 bytes each), and then as many
// bytes as it takes that follow from the value, so that foreign bytes in the middle show even where a checksum would not.

// Payload makes the bytes of a record that says that it is v and has a key. They are of the given size, at least MinPayload.
func Payload(v Val, key uint64, size int) []byte {
	return AppendPayload(nil, v, key, size)
}

// AppendPayload is Payload into memory of the caller's: it appends to dst.
func AppendPayload(dst []byte, v Val, key uint64, size int) []byte {
	if size < MinPayload {
		panic(fmt.Sprintf("check: a payload has at least %d bytes, not %d", MinPayload, size))
	}
	at := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	dst = binary.LittleEndian.AppendUint64(dst, key)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	x := uint64(v)*0x9e3779b97f4a7c15 | 1
	for len(dst)-at+8 <= size {
		dst = binary.LittleEndian.AppendUint64(dst, x)
		x = x*6364136223846793005 + 1442695040888963407
	}
	for len(dst)-at < size {
		dst = append(dst, byte(x))
		x >>= 8
	}
	p := dst[at:]
	binary.LittleEndian.PutUint32(p[20:], sum(p))
	return dst
}

// sum returns the checksum of a payload, of all but the checksum's own bytes.
func sum(p []byte) uint32 {
	return crc32.Update(crc32.Checksum(p[:20], castagnoli), castagnoli, p[24:])
}

// ParsePayload returns what the payload says it is, its key, and whether it is whole. If it is not, value and key are what
// the bytes there say, or 0 if there are not that many.
func ParsePayload(p []byte) (v Val, key uint64, whole bool) {
	if len(p) < MinPayload {
		var b [16]byte
		copy(b[:], p)
		return Val(binary.LittleEndian.Uint64(b[:])), binary.LittleEndian.Uint64(b[8:]), false
	}
	v, key = Val(binary.LittleEndian.Uint64(p)), binary.LittleEndian.Uint64(p[8:])
	return v, key, binary.LittleEndian.Uint32(p[16:]) == uint32(len(p)) && binary.LittleEndian.Uint32(p[20:]) == sum(p)
}

// record makes a Rec of what was read.
func record(off int64, value []byte) Rec {
	v, key, whole := ParsePayload(value)
	r := Rec{Off: off, Val: uint64(v), Key: key, Sum: crc32.Checksum(value, castagnoli)}
	if !whole {
		r.Bad = Torn
	}
	return r
}

// Producer makes payloads of one producer: what publishes one record after another. The checker takes the order in which they
// were made for that in which they were sent, so a producer belongs to one goroutine; another one takes another.
type Producer struct {
	number uint64
	// seq is how many payloads were made. Its owner writes it; it is atomic so that a mistake does not make two records that
	// say that they are the same. Nobody else reads it, and it publishes nothing.
	seq atomic.Uint64
}

// Number returns the producer's number.
func (p *Producer) Number() int { return int(p.number) }

// NextVal returns the value of the producer's next record.
func (p *Producer) NextVal() Val { return Val(p.number<<seqBits | (p.seq.Add(1) - 1)) }

// Next returns the payload of the producer's next record, of the given size and without a key.
func (p *Producer) Next(size int) []byte { return Payload(p.NextVal(), 0, size) }

// NextKey returns the payload of the producer's next record, which has a key; 0 is none. The record's own key in the log is the
// caller's matter; consumers with ByKey are checked by this one.
func (p *Producer) NextKey(key uint64, size int) []byte { return Payload(p.NextVal(), key, size) }
