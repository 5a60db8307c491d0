package murmur2

import "encoding/binary"

const (
	seed = 0x9747b28c
	mix  = 0x5bd1e995
)

// Sum returns Kafka's murmur2 of key. A Java client prints the same 32 bits as a signed number. A nil and an empty key have
// the same hash; whoever treats a nil key in another way must look before calling.
func Sum(key []byte) uint32 {
	h := seed ^ uint32(len(key))
	for len(key) >= 4 {
		k := binary.LittleEndian.Uint32(key) * mix
		k ^= k >> 24
		h = h*mix ^ k*mix
		key = key[4:]
	}
	switch len(key) {
	case 3:
		h ^= uint32(key[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(key[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(key[0])) * mix
	}
	h ^= h >> 13
	h *= mix
	return h ^ h>>15
}

// Partition returns the partition of key among n, from 0 to n-1. It panics if n is not positive.
func Partition(key []byte, n int) int {
	if n <= 0 {
		panic("murmur2: the number of partitions must be positive")
	}
	// Without its top bit the hash fits an int of 32 bits, too, so that the modulo is the same on every platform.
	return int(Sum(key)&0x7fffffff) % n
}
