package frame

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

const (
	// MaxEntries is the most entries that a seal may have, so that the seal of any file is within its last SealBytes bytes.
	MaxEntries = 128

	// SealBytes is the most bytes that a seal takes.
	SealBytes = HeaderBytes + MaxEntries*weighedBytes + totalBytes + trailerBytes

	entryBytes   = 24
	weighedBytes = 40
	totalBytes   = 16
	trailerBytes = 16
	sealMagic    = "LeatEnd\n"
)

// Entry is an entry of the index of a file: the place of one of its frames.
type Entry struct {
	// Offset is that of the first record of the frame, and Pos its position.
	Offset uint64
	Pos    int64
	// Before is the newest append time of what lies before the frame in the file, or for its first frame any smaller time.
	Before int64
	// Sum is that of the records that lie before the frame in the file, if the seal says it.
	Sum Sum
}

// Sum says of some records what can be known without reading them.
type Sum struct {
	// Latest is the greatest timestamp, that which a record came with or else its append time; math.MinInt64 if there is no
	// record.
	Latest int64
	// Body is how many bytes they take, of headers, keys and values, with 8 for each timestamp that a record came with and 4
	// for each record that has headers: what package segment takes for them beside its index.
	Body uint64
}

// None is the Sum of no records.
var None = Sum{Latest: math.MinInt64}

// Add adds other records.
func (s *Sum) Add(o Sum) {
	s.Latest = max(s.Latest, o.Latest)
	s.Body += o.Body
}

const (
	// besideTimestamp and besideHeaders are what Sum.Body has for a timestamp and for headers.
	besideTimestamp = 8
	besideHeaders   = 4
)

// SealSize returns how many bytes a seal with so many entries takes at the most.
func SealSize(entries int) int64 {
	return HeaderBytes + int64(entries)*weighedBytes + totalBytes + trailerBytes
}

// AppendSeal appends the seal for position pos: First, Epoch, SyncedTo, Time and Newest are taken from h. There must be at most
// MaxEntries entries. total is the Sum of all records of the file; if it is nil the seal says nothing of sums.
func AppendSeal(dst []byte, seed Seed, pos int64, h Header, index []Entry, total *Sum) []byte {
	if len(index) > MaxEntries {
		panic("frame: too many entries")
	}
	h.sums = total != nil
	at := len(dst)
	dst = append(dst, make([]byte, HeaderBytes)...)
	for _, e := range index {
		dst = binary.LittleEndian.AppendUint64(dst, e.Offset)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.Pos))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.Before))
		if h.sums {
			dst = e.Sum.append(dst)
		}
	}
	if h.sums {
		dst = total.append(dst)
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(pos))
	dst = append(dst, sealMagic...)
	payload := dst[at+HeaderBytes:]
	h.Kind, h.Count, h.Payload = Seal, 0, uint32(len(payload))
	h.payloadCRC = crc32.Update(uint32(seed), castagnoli, payload)
	h.put(dst[at:], seed, pos)
	return dst
}

func (s *Sum) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Latest))
	return binary.LittleEndian.AppendUint64(dst, s.Body)
}

// decode takes a Sum off b.
func (s *Sum) decode(b []byte) {
	s.Latest = int64(binary.LittleEndian.Uint64(b))
	s.Body = binary.LittleEndian.Uint64(b[8:])
}

// goesOn reports whether s can be the Sum of what there is up to a later place, if before is that up to an earlier one.
func (s *Sum) goesOn(before *Sum) bool { return s.Latest >= before.Latest && s.Body >= before.Body }

// sealed reports whether a payload of so many bytes can be that of a seal.
func (h *Header) sealed() bool {
	n := int64(h.Payload) - trailerBytes
	if h.sums {
		return n >= totalBytes && (n-totalBytes)%weighedBytes == 0
	}
	return n >= 0 && n%entryBytes == 0
}

// FindSeal looks for a seal at the end of a file of size bytes, of which tail is the end. It returns its position, which may be
// out of the tail, in which case the seal is not one: the tail must have SealBytes bytes or be the whole file. ok is false if
// the file does not end like one that is sealed. Whether there is a seal is for Decode to say.
func FindSeal(tail []byte, size int64) (pos int64, ok bool) {
	if len(tail) < HeaderBytes+trailerBytes || string(tail[len(tail)-8:]) != sealMagic {
		return 0, false
	}
	pos = int64(binary.LittleEndian.Uint64(tail[len(tail)-trailerBytes:]))
	return pos, pos >= size-int64(len(tail)) && pos <= size-HeaderBytes-trailerBytes && pos%Align == 0
}

// Index appends the entries of a seal to dst, and returns the Sum of the file, or nil if the seal does not say it. The error is
// ErrFormat if the entries are not in order, or lie outside of [SegmentBytes, pos), where pos is where the seal lies.
func (b *Batch) Index(dst []Entry, base uint64, pos int64) ([]Entry, *Sum, error) {
	if b.Kind != Seal || len(b.payload) > SealBytes-HeaderBytes {
		return dst, nil, ErrFormat
	}
	p, size := b.payload[:len(b.payload)-trailerBytes], entryBytes
	var total *Sum
	if b.sums {
		size = weighedBytes
		total = new(Sum)
		total.decode(p[len(p)-totalBytes:])
		p = p[:len(p)-totalBytes]
	}
	if len(p) > MaxEntries*size {
		return dst, nil, ErrFormat
	}
	last := Entry{Offset: base, Pos: SegmentBytes - 1, Sum: None}
	for i := 0; len(p) > 0; p, i = p[size:], i+1 {
		e := Entry{
			Offset: binary.LittleEndian.Uint64(p),
			Pos:    int64(binary.LittleEndian.Uint64(p[8:])),
			Before: int64(binary.LittleEndian.Uint64(p[16:])),
		}
		if b.sums {
			e.Sum.decode(p[24:])
		}
		if e.Offset < last.Offset || e.Offset >= b.First || e.Pos <= last.Pos || e.Pos >= pos || i > 0 && e.Before < last.Before ||
			b.sums && !e.Sum.goesOn(&last.Sum) {
			return dst, nil, ErrFormat
		}
		dst = append(dst, e)
		last = e
	}
	if b.sums && !total.goesOn(&last.Sum) {
		return dst, nil, ErrFormat
	}
	return dst, total, nil
}
