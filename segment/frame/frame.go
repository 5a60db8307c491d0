package frame

import (
	"encoding/binary"
	"hash/crc32"
)

// Kind says what a frame holds.
type Kind uint8

const (
	// Records is a batch of records.
	Records Kind = 1
	// Seal is the end of a file to which nothing will be added: the index of its frames.
	Seal Kind = 2
	// Lost stands for records that were damaged, and given up by the user's decision: their offsets hold nothing.
	Lost Kind = 3
)

const (
	// HeaderBytes is the size of what a frame begins with.
	HeaderBytes = 64

	// Align is what the position of each frame is a multiple of.
	Align = 8

	// MaxPayload is the most bytes that there can be in a frame beside its header.
	MaxPayload = 1<<31 - 1<<12

	// Magic is what each frame begins with, as it lies in the file.
	Magic = "\xf5LfB"
)

// Header is what a frame begins with.
type Header struct {
	Kind Kind
	// Count is how many records there are, or how many offsets are lost.
	Count uint32
	// First is the offset of the first of them. Of a Seal it is the offset of the next record after the file.
	First uint64
	// Epoch is that of the opening in which the frame was written: the same as its segment's.
	Epoch uint64
	// SyncedTo says that all records below it were safe on disk when the frame was written. It is at most First.
	SyncedTo uint64
	// Time is the append time of the first record, and Newest that of the last, in ns since the Unix epoch. Of a Seal they are
	// those of the file.
	Time, Newest int64
	// Payload is how many bytes follow the header, without those that fill up to the next frame. It is set by encoding.
	Payload uint32

	payloadCRC uint32
	sums       bool // of a Seal: it says Sums
}

// sealSums is the flag of a Seal that says Sums.
const sealSums = 1

// Next returns the offset of the first record after the frame.
func (h *Header) Next() uint64 { return h.First + uint64(h.Count) }

// Bytes returns how many bytes the frame takes in the file.
func (h *Header) Bytes() int64 { return HeaderBytes + (int64(h.Payload)+Align-1)&^(Align-1) }

// put writes the header of a frame at pos into b.
func (h *Header) put(b []byte, seed Seed, pos int64) {
	_ = b[:HeaderBytes]
	copy(b, Magic)
	binary.LittleEndian.PutUint32(b[8:], h.Payload)
	binary.LittleEndian.PutUint32(b[12:], h.payloadCRC)
	binary.LittleEndian.PutUint32(b[16:], h.Count)
	b[20], b[21], b[22], b[23] = byte(h.Kind), 0, 0, 0
	if h.sums {
		b[21] = sealSums
	}
	binary.LittleEndian.PutUint64(b[24:], h.First)
	binary.LittleEndian.PutUint64(b[32:], h.SyncedTo)
	binary.LittleEndian.PutUint64(b[40:], uint64(h.Time))
	binary.LittleEndian.PutUint64(b[48:], uint64(h.Newest))
	binary.LittleEndian.PutUint64(b[56:], h.Epoch)
	binary.LittleEndian.PutUint32(b[4:], headerCRC(b, seed, pos))
}

// headerCRC returns the checksum of the header in b, for a frame at pos. Since a checksum is a one-to-one function of what it
// begins with, no two of the first 2^32 places have the same for the same bytes.
func headerCRC(b []byte, seed Seed, pos int64) uint32 {
	place := uint64(pos) / Align
	return crc32.Update(uint32(seed)^uint32(place)^uint32(place>>32), castagnoli, b[8:HeaderBytes])
}

// DecodeHeader returns the header of the frame that lies at pos in a file with that seed, and that b begins with: ErrShort,
// ErrMagic, ErrChecksum or ErrFormat if there is none.
func DecodeHeader(b []byte, seed Seed, pos int64) (Header, error) {
	if len(b) < HeaderBytes {
		return Header{}, ErrShort
	}
	if string(b[:4]) != Magic {
		return Header{}, ErrMagic
	}
	if binary.LittleEndian.Uint32(b[4:]) != headerCRC(b, seed, pos) {
		return Header{}, ErrChecksum
	}
	h := Header{
		Payload:    binary.LittleEndian.Uint32(b[8:]),
		payloadCRC: binary.LittleEndian.Uint32(b[12:]),
		Count:      binary.LittleEndian.Uint32(b[16:]),
		Kind:       Kind(b[20]),
		First:      binary.LittleEndian.Uint64(b[24:]),
		SyncedTo:   binary.LittleEndian.Uint64(b[32:]),
		Time:       int64(binary.LittleEndian.Uint64(b[40:])),
		Newest:     int64(binary.LittleEndian.Uint64(b[48:])),
		Epoch:      binary.LittleEndian.Uint64(b[56:]),
		sums:       b[21] == sealSums,
	}
	switch {
	case h.Payload > MaxPayload, h.First > MaxOffset, uint64(h.Count) > MaxOffset-h.First, h.SyncedTo > h.First,
		h.Newest < h.Time, b[22]|b[23] != 0, b[21] != 0 && !(h.Kind == Seal && h.sums):
		return Header{}, ErrFormat
	case h.Kind == Records && h.Count > 0 && h.Payload >= h.Count:
	case h.Kind == Lost && h.Count > 0 && h.Payload == 0:
	case h.Kind == Seal && h.Count == 0 && h.sealed():
	default:
		return Header{}, ErrFormat
	}
	return h, nil
}

// Batch is a frame that has been checked. Its bytes are those that it was decoded from.
type Batch struct {
	Header
	payload []byte
}

// Decode returns the frame that lies at pos in a file with that seed, and that b begins with. Its error is one of those of
// DecodeHeader, or ErrShort or ErrChecksum if the header is good and the rest is not; then the header is returned as well.
func Decode(b []byte, seed Seed, pos int64) (Batch, error) {
	h, err := DecodeHeader(b, seed, pos)
	if err != nil {
		return Batch{}, err
	}
	if int64(len(b)) < h.Bytes() {
		return Batch{Header: h}, ErrShort
	}
	payload := b[HeaderBytes : HeaderBytes+int(h.Payload) : HeaderBytes+int(h.Payload)]
	if crc32.Update(uint32(seed), castagnoli, payload) != h.payloadCRC {
		return Batch{Header: h}, ErrChecksum
	}
	for _, c := range b[HeaderBytes+int(h.Payload) : h.Bytes()] {
		if c != 0 {
			return Batch{Header: h}, ErrChecksum // what fills up is zero, so that no byte of a file is without a guard
		}
	}
	return Batch{Header: h, payload: payload}, nil
}

// AppendLost appends the frame that says that the offsets from h.First on, h.Count of them, are lost.
func AppendLost(dst []byte, seed Seed, pos int64, h Header) []byte {
	at := len(dst)
	h.Kind, h.Payload, h.payloadCRC = Lost, 0, crc32.Update(uint32(seed), castagnoli, nil)
	dst = append(dst, make([]byte, HeaderBytes)...)
	h.put(dst[at:], seed, pos)
	return dst
}
