package load

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// A message is: time (8 bytes), producer (2 bytes) and number (6 bytes), checksum (8 bytes), filler. All little endian.
//
// The checksum covers everything else, the length, and the partition. It is two running sums, a (of the words) and b (of the sums so far,
// so that the order of the words counts), about a nanosecond for each 16 bytes. The filler comes first into the sums, so
// that a producer, whose filler stays the same, adds only two words for each message.

const (
	seqBits = 48
	seqMask = 1<<seqBits - 1
)

// sums is the running checksum.
type sums struct{ a, b uint64 }

func (s *sums) add(word uint64) {
	s.a += word
	s.b += s.a
}

// addBytes adds p, the last word filled up with zeroes.
func (s *sums) addBytes(p []byte) {
	a, b := s.a, s.b
	for len(p) >= 32 { // four words at once: the same sums, with a quarter of the steps that wait for each other
		w, x := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
		y, z := binary.LittleEndian.Uint64(p[16:]), binary.LittleEndian.Uint64(p[24:])
		b += 4*(a+w) + 3*x + 2*y + z
		a += w + x + y + z
		p = p[32:]
	}
	for len(p) >= 8 {
		a += binary.LittleEndian.Uint64(p)
		b += a
		p = p[8:]
	}
	s.a, s.b = a, b
	if len(p) > 0 {
		var w uint64
		for i, c := range p {
			w |= uint64(c) << (8 * i)
		}
		s.add(w)
	}
}

// finish mixes the two sums, so that a bit that only one of them has is not lost.
func (s *sums) finish() uint64 {
	return (s.a ^ bits.RotateLeft64(s.b, 32)) * 0x9E3779B97F4A7C15
}

// sumsOf starts the checksum of a message of so many bytes to a partition.
func sumsOf(partition, size int) sums {
	return sums{a: 0x6C656174 + uint64(size)<<32, b: uint64(partition)*0xD6E8FEB86659FD93 + 1}
}

// message is one producer's buffer.
type message struct {
	buf    []byte // as large as a message can be
	size   int    // the size of all messages, or 0
	filled []sums // for each partition, the sums over the filler, if all messages have one size
	id     uint64 // the producer, in place
}

func newMessage(s *Scenario, producer int) *message {
	m := &message{buf: make([]byte, s.Size), id: uint64(producer) << seqBits}
	rng := rand.New(rand.NewPCG(s.Seed, uint64(producer)))
	filler := m.buf[MinSize:]
	for i := range filler {
		filler[i] = byte(rng.Uint32())
	}
	if s.Sizes.Least() != s.Sizes.Most() {
		return m
	}
	m.size = s.Size
	m.filled = make([]sums, s.Partitions)
	for p := range m.filled {
		m.filled[p] = sumsOf(p, m.size)
		m.filled[p].addBytes(filler)
	}
	return m
}

// set makes the buffer message number seq to a partition, stamped with a time (0: none), of the size that all messages have.
func (m *message) set(partition int, seq uint64, stamp int64) []byte {
	return m.finish(m.filled[partition], m.size, seq, stamp)
}

// setSize is set for a message of any size.
func (m *message) setSize(size, partition int, seq uint64, stamp int64) []byte {
	s := sumsOf(partition, size)
	s.addBytes(m.buf[MinSize:size])
	return m.finish(s, size, seq, stamp)
}

func (m *message) finish(s sums, size int, seq uint64, stamp int64) []byte {
	word := m.id | seq&seqMask
	s.add(uint64(stamp))
	s.add(word)
	b := m.buf[:size]
	binary.LittleEndian.PutUint64(b, uint64(stamp))
	binary.LittleEndian.PutUint64(b[8:], word)
	binary.LittleEndian.PutUint64(b[16:], s.finish())
	return b
}

// parse checks a payload of a partition, of least to most bytes, and takes it apart.
func parse(p []byte, least, most, partition int) (stamp int64, producer int, seq uint64, ok bool) {
	if len(p) < least || len(p) > most || len(p) < MinSize {
		return 0, 0, 0, false
	}
	s := sumsOf(partition, len(p))
	s.addBytes(p[MinSize:])
	time, word := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
	s.add(time)
	s.add(word)
	if s.finish() != binary.LittleEndian.Uint64(p[16:]) {
		return 0, 0, 0, false
	}
	return int64(time), int(word >> seqBits), word & seqMask, true
}
