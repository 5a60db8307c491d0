package frame

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
)

const (
	// Version is the version of the format that this package writes, and the only one that it reads.
	Version = 1

	// SegmentBytes is the size of what a file of records begins with.
	SegmentBytes = 64

	// StateBytes is the size of the file that says where a log begins.
	StateBytes = 64

	// MaxOffset is the largest offset that can be the next one of a log.
	MaxOffset = math.MaxInt64

	segmentMagic = "LeatSeg\n"
	stateMagic   = "LeatLog\n"

	crcAt = 36 // in both
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ID is the identity of a topic: a topic that is made anew under an old name has another.
type ID [16]byte

// Seed is what the checksums of one file begin with, so that a block of another file, or of another life of this one, does not
// pass.
type Seed uint32

// Segment is what a file of records begins with.
type Segment struct {
	Topic     ID
	Partition int32
	// Base is the offset of the first record.
	Base uint64
	// Epoch counts how often the log has been opened.
	Epoch uint64
	// Created is when the file was made, in ns since the Unix epoch.
	Created int64
}

// Seed returns the seed for the frames of the file.
func (s *Segment) Seed() Seed {
	var b [36]byte
	copy(b[:], s.Topic[:])
	binary.LittleEndian.PutUint32(b[16:], uint32(s.Partition))
	binary.LittleEndian.PutUint64(b[20:], s.Base)
	binary.LittleEndian.PutUint64(b[28:], s.Epoch)
	return Seed(crc32.Checksum(b[:], castagnoli))
}

// AppendSegment appends the SegmentBytes bytes for s to dst.
func AppendSegment(dst []byte, s *Segment) []byte {
	return appendHead(dst, segmentMagic, s.Topic, s.Partition, s.Base, s.Epoch, uint64(s.Created))
}

// DecodeSegment returns what AppendSegment was given: ErrShort, ErrMagic, ErrVersion, ErrChecksum or ErrFormat if b does not
// begin with that.
func DecodeSegment(b []byte) (Segment, error) {
	topic, partition, words, err := decodeHead(b, segmentMagic)
	s := Segment{Topic: topic, Partition: partition, Base: words[0], Epoch: words[1], Created: int64(words[2])}
	if err == nil && s.Base > MaxOffset {
		err = ErrFormat
	}
	if err != nil {
		return Segment{}, err
	}
	return s, nil
}

// State is what is known of a log beside its records.
type State struct {
	Topic     ID
	Partition int32
	// Epoch is that of the opening that wrote the state.
	Epoch uint64
	// Low is the offset of the first record that has not been dropped.
	Low uint64
	// Durable says that all records below it were safe when the state was written.
	Durable uint64
}

// AppendState appends the StateBytes bytes for s to dst.
func AppendState(dst []byte, s *State) []byte {
	return appendHead(dst, stateMagic, s.Topic, s.Partition, s.Low, s.Epoch, s.Durable)
}

// DecodeState returns what AppendState was given: ErrShort, ErrMagic, ErrVersion, ErrChecksum or ErrFormat if b is not that.
func DecodeState(b []byte) (State, error) {
	topic, partition, words, err := decodeHead(b, stateMagic)
	s := State{Topic: topic, Partition: partition, Low: words[0], Epoch: words[1], Durable: words[2]}
	if err == nil && (s.Low > s.Durable || s.Durable > MaxOffset || len(b) != StateBytes) {
		err = ErrFormat
	}
	if err != nil {
		return State{}, err
	}
	return s, nil
}

// appendHead appends the 64 bytes that both kinds of file begin with.
func appendHead(dst []byte, magic string, topic ID, partition int32, words ...uint64) []byte {
	at := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint16(dst, Version)
	dst = binary.LittleEndian.AppendUint16(dst, SegmentBytes)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = append(dst, topic[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(partition))
	dst = binary.LittleEndian.AppendUint32(dst, 0) // the checksum
	for _, w := range words {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	binary.LittleEndian.PutUint32(dst[at+crcAt:], headCRC(dst[at:]))
	return dst
}

// decodeHead is the opposite of appendHead.
func decodeHead(b []byte, magic string) (topic ID, partition int32, words [3]uint64, err error) {
	switch {
	case len(b) < SegmentBytes:
		if !bytes.HasPrefix([]byte(magic), b[:min(len(b), len(magic))]) {
			return topic, 0, words, ErrMagic
		}
		return topic, 0, words, ErrShort
	case string(b[:8]) != magic:
		return topic, 0, words, ErrMagic
	}
	b = b[:SegmentBytes]
	sound := binary.LittleEndian.Uint32(b[crcAt:]) == headCRC(b)
	if binary.LittleEndian.Uint16(b[8:]) != Version {
		return topic, 0, words, ErrVersion // whose checksum may be another
	}
	if !sound {
		return topic, 0, words, ErrChecksum
	}
	if binary.LittleEndian.Uint16(b[10:]) != SegmentBytes || binary.LittleEndian.Uint32(b[12:]) != 0 {
		return topic, 0, words, ErrFormat
	}
	copy(topic[:], b[16:])
	partition = int32(binary.LittleEndian.Uint32(b[32:]))
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(b[40+8*i:])
	}
	return topic, partition, words, nil
}

// headCRC returns the checksum of the 64 bytes of b as if the one in them were zero.
func headCRC(b []byte) uint32 {
	var c [SegmentBytes]byte
	copy(c[:], b)
	clear(c[crcAt : crcAt+4])
	return crc32.Checksum(c[:], castagnoli)
}
