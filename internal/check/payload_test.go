package check_test

import (
	"testing"

	"github.com/leatlog/leat/internal/check"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPayload(t *testing.T) {
	rec := check.NewRecorder(1)
	one, two := rec.Producer(), rec.Producer()
	assert.Equal(t, 1, one.Number())
	for size := check.MinPayload; size < 100; size++ {
		p := two.NextKey(uint64(size), size)
		require.Len(t, p, size)
		v, key, whole := check.ParsePayload(p)
		require.True(t, whole)
		assert.Equal(t, 2, v.Producer())
		assert.EqualValues(t, size-check.MinPayload, v.Seq())
		assert.EqualValues(t, size, key)
	}
	assert.Equal(t, "p1:0", one.NextVal().String())
	v, _, _ := check.ParsePayload(one.Next(40))
	assert.EqualValues(t, 1, v.Seq())
	assert.Panics(t, func() { one.Next(check.MinPayload - 1) })
}

// TestPayload_Damage flips each bit, and cuts at each byte.
func TestPayload_Damage(t *testing.T) {
	good := check.Payload(5<<40|7, 9, 61)
	for i := range good {
		for bit := range 8 {
			bad := append([]byte(nil), good...)
			bad[i] ^= 1 << bit
			_, _, whole := check.ParsePayload(bad)
			require.False(t, whole, "bit %d of byte %d", bit, i)
		}
		_, _, whole := check.ParsePayload(good[:i])
		require.False(t, whole, "%d bytes", i)
	}
	_, _, whole := check.ParsePayload(append(good, 0))
	assert.False(t, whole)
	_, _, whole = check.ParsePayload(make([]byte, 64))
	assert.False(t, whole, "zeroes")
	v, key, whole := check.ParsePayload(good[:16])
	assert.False(t, whole)
	assert.Equal(t, "p5:7", v.String(), "as far as it says so")
	assert.EqualValues(t, 9, key)
}
