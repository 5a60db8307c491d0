package murmur2_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine/internal/murmur2"
)

// model is murmur2 as the algorithm is described, one byte at a time, in numbers that are wide enough never to overflow, so
// that nothing rests on how a machine truncates or shifts: a shift is a division and "32 bits" is a remainder.
func model(key []byte) uint64 {
	const word = 1 << 32
	times := func(a uint64) uint64 { return a * 0x5bd1e995 % word } // both below 2^32: the product fits 64 bits
	h := (0x9747b28c ^ uint64(len(key))) % word
	whole := len(key) / 4 * 4
	for i := 0; i < whole; i += 4 {
		k := uint64(0)
		for j := 3; j >= 0; j-- {
			k = k*256 + uint64(key[i+j])
		}
		k = times(k)
		k = times(k ^ k/(1<<24))
		h = times(h) ^ k
	}
	if whole < len(key) {
		rest := uint64(0)
		for i := len(key) - 1; i >= whole; i-- {
			rest = rest*256 + uint64(key[i])
		}
		h = times(h ^ rest)
	}
	h = times(h ^ h/(1<<13))
	return h ^ h/(1<<15)
}

func TestSum_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "key")
		n := rapid.IntRange(1, 1<<31-1).Draw(t, "n")
		require.Equal(t, model(key), uint64(murmur2.Sum(key)))
		require.Equal(t, int64(model(key)%(1<<31)%uint64(n)), int64(murmur2.Partition(key, n)))
	})
}

// TestModel_Golden checks the model itself.
func TestModel_Golden(t *testing.T) {
	for _, v := range vectors {
		require.Equal(t, v.hash, int32(uint32(model([]byte(v.key)))), "key %q", v.key)
	}
}
