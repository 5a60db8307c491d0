package arena_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/rivals/arena"
)

func TestMessage_RoundTrip(t *testing.T) {
	for _, size := range []int{16, 24, 64, 128, 1024} {
		for producer := range 3 {
			for _, seq := range []uint64{0, 1, 255, 1<<48 - 1} {
				p, s, ok := arena.Parse(arena.Message(producer, size, seq), size)
				require.True(t, ok)
				assert.Equal(t, uint64(producer), p)
				assert.Equal(t, seq, s)
			}
		}
	}
}

// TestMessage_EveryByteCounts changes each byte, exchanges each two neighbouring words, and takes each 64 bytes from the message
// before: nothing of that may pass.
func TestMessage_EveryByteCounts(t *testing.T) {
	for _, size := range arena.Sizes() {
		m, before := arena.Message(1, size, 77), arena.Message(1, size, 76)
		for i := range m {
			m[i] ^= 1
			_, _, ok := arena.Parse(m, size)
			assert.False(t, ok, "size %d, byte %d", size, i)
			m[i] ^= 1
		}
		for i := 0; i+16 <= size; i += 8 {
			x := append([]byte(nil), m...)
			copy(x[i:], m[i+8:i+16])
			copy(x[i+8:], m[i:i+8])
			_, _, ok := arena.Parse(x, size)
			assert.False(t, ok, "size %d, words at %d", size, i)
		}
		for i := 0; i+64 <= size && size > 64; i += 64 {
			x := append([]byte(nil), m...)
			copy(x[i:i+64], before[i:])
			_, _, ok := arena.Parse(x, size)
			assert.False(t, ok, "size %d, the 64 bytes at %d", size, i)
		}
		_, _, ok := arena.Parse(m[:size-8], size)
		assert.False(t, ok)
		_, _, ok = arena.Parse(make([]byte, size), size)
		assert.False(t, ok, "zeroes")
	}
}

// TestFeed_FillAndNextAgree checks both ways to get a message, over whatever was in the memory before.
func TestFeed_FillAndNextAgree(t *testing.T) {
	for _, size := range arena.Sizes() {
		dirty := make([]byte, size)
		for i := range dirty {
			dirty[i] = 0xAA
		}
		a, b := feed(t, size, 10), feed(t, size, 10)
		for seq := range uint64(10) {
			require.Positive(t, a.Due(1))
			require.Positive(t, b.Due(1))
			a.Fill(dirty)
			next := b.Next()
			assert.Equal(t, dirty, next)
			_, s, ok := arena.Parse(next, size)
			assert.True(t, ok)
			assert.Equal(t, seq, s)
		}
		assert.Zero(t, a.Due(1))
	}
}
