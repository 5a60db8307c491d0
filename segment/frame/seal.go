package frame

import (
	"encoding/binary"
	"hash/crc32"
)

const (
	// MaxEntries is the most entries that a seal may have, so that the seal of any file is within its last SealBytes bytes.
	MaxEntries = 128

	// SealBytes is the most bytes that a seal takes.
	SealBytes = HeaderBytes + MaxEntries*entryBytes + trailerBytes

	entryBytes   = 24
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
}

// AppendSeal appends the seal for position pos: First, Epoch, SyncedTo, Time and Newest are taken from h. There must be at most
// MaxEntries entries.
func AppendSeal(dst []byte, seed Seed, pos int64, h Header, index []Entry) []byte {
	if len(index) > MaxEntries {
		panic("frame: too many entries")
	}
	at := len(dst)
	dst = append(dst, make([]byte, HeaderBytes)...)
	for _, e := range index {
		dst = binary.LittleEndian.AppendUint64(dst, e.Offset)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.Pos))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.Before))
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(pos))
	dst = append(dst, sealMagic...)
	payload := dst[at+HeaderBytes:]
	h.Kind, h.Count, h.Payload = Seal, 0, uint32(len(payload))
	h.payloadCRC = crc32.Update(uint32(seed), castagnoli, payload)
	h.put(dst[at:], seed, pos)
	return dst
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

// Index appends the entries of a seal to dst. It returns ErrFormat if they are not in order, or lie outside of [SegmentBytes,
// pos), where pos is where the seal lies.
func (b *Batch) Index(dst []Entry, base uint64, pos int64) ([]Entry, error) {
	if b.Kind != Seal || len(b.payload) > MaxEntries*entryBytes+trailerBytes {
		return dst, ErrFormat
	}
	last := Entry{Offset: base, Pos: SegmentBytes - 1, Before: 0}
	for p, i := b.payload[:len(b.payload)-trailerBytes], 0; len(p) > 0; p, i = p[entryBytes:], i+1 {
		e := Entry{
			Offset: binary.LittleEndian.Uint64(p),
			Pos:    int64(binary.LittleEndian.Uint64(p[8:])),
			Before: int64(binary.LittleEndian.Uint64(p[16:])),
		}
		if e.Offset < last.Offset || e.Offset >= b.First || e.Pos <= last.Pos || e.Pos >= pos || i > 0 && e.Before < last.Before {
			return dst, ErrFormat
		}
		dst = append(dst, e)
		last = e
	}
	return dst, nil
}
