package murmur2_test

import (
	"testing"

	"github.com/leatlog/leat/engine/internal/murmur2"
)

// FuzzSum compares with the model, and looks whether the key was left alone.
func FuzzSum(f *testing.F) {
	for _, v := range vectors {
		f.Add([]byte(v.key), int32(12))
	}
	f.Add([]byte{0xff, 0xfe, 0x80, 0x00, 0x7f}, int32(1))
	f.Fuzz(func(t *testing.T, key []byte, n int32) {
		before := string(key)
		if got, want := uint64(murmur2.Sum(key)), model(key); got != want {
			t.Fatalf("Sum(%q) = %#x, want %#x", key, got, want)
		}
		if n > 0 {
			if got, want := uint64(murmur2.Partition(key, int(n))), model(key)%(1<<31)%uint64(n); got != want {
				t.Fatalf("Partition(%q, %d) = %d, want %d", key, n, got, want)
			}
		}
		if string(key) != before {
			t.Fatalf("the key was changed from %q to %q", before, key)
		}
	})
}
