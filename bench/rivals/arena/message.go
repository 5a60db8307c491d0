package arena

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// A message is a row of words: the first says who sent it and its number, the second is a checksum over all the others, the
// rest is filler, different for each producer; in a large message each 64 bytes begin with the first word again, so that no
// part of another message can stand in for its own. All are little endian.
//
// The checksum is linear: each word, turned by as many bits as its place says, xor. So who sends a message needs to add only
// what changes from one to the next. It costs about a nanosecond for each 24 bytes to check, and notices any word that is
// wrong or in another place.

const (
	seqBits = 48
	seqMask = 1<<seqBits - 1

	// MinSize is the size of the smallest message; sizes are multiples of 8, and of 64 from there on.
	MinSize  = 16
	lineSize = 64
)

func le(p []byte) uint64               { return binary.LittleEndian.Uint64(p) }
func putLE(p []byte, v uint64)         { binary.LittleEndian.PutUint64(p, v) }
func idOf(producer, seq uint64) uint64 { return producer<<seqBits | seq&seqMask }

// seal turns the sum into the word that is sent, so that a message of zeroes is not right.
func seal(sum uint64) uint64 { return sum*0x9E3779B97F4A7C15 + 0x6C656174 }

// sumOf returns the checksum of a message, whatever its second word is.
func sumOf(p []byte) uint64 {
	if len(p) < lineSize {
		sum := le(p)
		for i := 16; i+8 <= len(p); i += 8 {
			sum ^= bits.RotateLeft64(le(p[i:]), i)
		}
		return sum
	}
	sum := sumLine(p[:lineSize:lineSize]) ^ bits.RotateLeft64(le(p[8:]), 8) // without the checksum itself
	for p = p[lineSize:]; len(p) >= lineSize; p = p[lineSize:] {
		sum = bits.RotateLeft64(sum, 5) ^ sumLine(p[:lineSize:lineSize])
	}
	return sum
}

func sumLine(p []byte) uint64 {
	_ = p[lineSize-1]
	a := le(p) ^ bits.RotateLeft64(le(p[8:]), 8)
	b := bits.RotateLeft64(le(p[16:]), 16) ^ bits.RotateLeft64(le(p[24:]), 24)
	c := bits.RotateLeft64(le(p[32:]), 32) ^ bits.RotateLeft64(le(p[40:]), 40)
	d := bits.RotateLeft64(le(p[48:]), 48) ^ bits.RotateLeft64(le(p[56:]), 56)
	return (a ^ b) ^ (c ^ d)
}

// template is what the messages of one producer have in common.
type template struct {
	bytes []byte
	sum   uint64    // of the filler alone
	line  [6]uint64 // the filler of a message of 64 bytes, by words
}

func newTemplate(producer, size int) template {
	t := template{bytes: make([]byte, size)}
	rng := rand.New(rand.NewPCG(uint64(producer), uint64(size)))
	for i := MinSize; i < size; i += 8 {
		if i%lineSize != 0 {
			putLE(t.bytes[i:], rng.Uint64())
		}
	}
	t.sum = sumOf(t.bytes)
	for i := range t.line {
		if at := MinSize + 8*i; at+8 <= size {
			t.line[i] = le(t.bytes[at:])
		}
	}
	return t
}

// stamp makes p, which has the template's filler, the message with that first word.
func (t *template) stamp(p []byte, id uint64) {
	sum := t.sum
	if len(p) > lineSize {
		var ids uint64
		for range len(p) / lineSize {
			ids = bits.RotateLeft64(ids, 5) ^ id
		}
		sum ^= ids
		for i := lineSize; i < len(p); i += lineSize {
			putLE(p[i:], id)
		}
	} else {
		sum ^= id
	}
	putLE(p, id)
	putLE(p[8:], seal(sum))
}

// fill makes p the message with that first word, whatever was there.
func (t *template) fill(p []byte, id uint64) {
	if len(p) > MinSize {
		copy(p, t.bytes)
	}
	t.stamp(p, id)
}

// right reports whether a message's checksum is.
func right(p []byte) bool {
	if len(p) == lineSize {
		return lineRight(p)
	}
	return le(p[8:]) == seal(sumOf(p))
}

// lineRight is right for a message of 64 bytes, of which p has at least as many: sumLine in line, without the checksum itself.
func lineRight(p []byte) bool {
	_ = p[lineSize-1]
	a := le(p) ^ bits.RotateLeft64(le(p[16:]), 16)
	b := bits.RotateLeft64(le(p[24:]), 24) ^ bits.RotateLeft64(le(p[32:]), 32)
	c := bits.RotateLeft64(le(p[40:]), 40) ^ bits.RotateLeft64(le(p[48:]), 48)
	return le(p[8:]) == seal(a^b^c^bits.RotateLeft64(le(p[56:]), 56))
}

// parse checks a message and takes it apart.
func parse(p []byte, size int) (producer, seq uint64, ok bool) {
	if len(p) != size || len(p) < MinSize || !right(p) {
		return 0, 0, false
	}
	id := le(p)
	return id >> seqBits, id & seqMask, true
}
