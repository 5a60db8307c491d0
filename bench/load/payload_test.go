package load_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/bench/load"
)

func TestMessage_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := load.Scenario{
			Size:       rapid.IntRange(load.MinSize, 300).Draw(t, "size"),
			Partitions: rapid.IntRange(1, 5).Draw(t, "partitions"),
			Seed:       rapid.Uint64().Draw(t, "seed"),
		}
		producer := rapid.IntRange(0, 1<<16-1).Draw(t, "producer")
		m := load.NewTestMessage(s, producer)
		for range 3 {
			partition := rapid.IntRange(0, s.Partitions-1).Draw(t, "partition")
			seq := rapid.Uint64Range(0, 1<<48-1).Draw(t, "seq")
			stamp := rapid.Int64Range(0, 1<<62).Draw(t, "stamp")
			p := m.Set(partition, seq, stamp)
			require.Len(t, p, s.Size)
			gotStamp, gotProducer, gotSeq, ok := load.Parse(p, s.Size, partition)
			require.True(t, ok)
			require.Equal(t, stamp, gotStamp)
			require.Equal(t, producer, gotProducer)
			require.Equal(t, seq, gotSeq)
		}
	})
}

func TestMessage_DamageIsSeen(t *testing.T) {
	for _, size := range []int{load.MinSize, load.MinSize + 1, 31, 32, 64, 100, 1000} {
		t.Run(fmt.Sprint("size=", size), func(t *testing.T) {
			s := load.Scenario{Size: size, Partitions: 2, Seed: 5}
			good := bytes.Clone(load.NewTestMessage(s, 3).Set(1, 1000, 123456789))
			intact := func(p []byte, partition int) bool {
				_, _, _, ok := load.Parse(p, size, partition)
				return ok
			}
			require.True(t, intact(good, 1))
			assert.False(t, intact(good, 0), "another partition's message")
			assert.False(t, intact(good[:size-1], 1), "cut short")
			assert.False(t, intact(append(bytes.Clone(good), 0), 1), "too long")
			assert.False(t, intact(make([]byte, size), 1), "zeroes")
			assert.False(t, intact(nil, 1), "nothing")
			for bit := range size * 8 {
				bad := bytes.Clone(good)
				bad[bit/8] ^= 1 << (bit % 8)
				require.False(t, intact(bad, 1), "bit %d flipped", bit)
			}
			for i := 0; i+16 <= size; i += 8 {
				bad := bytes.Clone(good)
				copy(bad[i:], good[i+8:i+16])
				copy(bad[i+8:], good[i:i+8])
				require.False(t, intact(bad, 1), "words at %d swapped", i)
			}
			for i := 0; i+8 <= size; i += 8 {
				bad := bytes.Clone(good)
				clear(bad[i : i+8])
				require.False(t, intact(bad, 1), "word at %d zeroed", i)
			}
		})
	}
}

func TestMessage_SameSeedSameStream(t *testing.T) {
	s := load.Scenario{Size: 100, Partitions: 1, Seed: 9}
	a := bytes.Clone(load.NewTestMessage(s, 0).Set(0, 1, 2))
	assert.Equal(t, a, load.NewTestMessage(s, 0).Set(0, 1, 2))
	s.Seed = 10
	assert.NotEqual(t, a, load.NewTestMessage(s, 0).Set(0, 1, 2))
}

// TestParse_Fuzz lives as a seed corpus and more under go test -fuzz: no bytes may make the parser panic, and what it accepts
// has the size it should have.
func FuzzParse(f *testing.F) {
	s := load.Scenario{Size: 64, Partitions: 1, Seed: 1}
	f.Add(bytes.Clone(load.NewTestMessage(s, 0).Set(0, 7, 8)), 64)
	f.Add([]byte{}, 0)
	f.Add(make([]byte, 30), 30)
	f.Fuzz(func(t *testing.T, p []byte, size int) {
		if _, _, _, ok := load.Parse(p, size, 0); ok && len(p) != size {
			t.Fatalf("accepted %d bytes as %d", len(p), size)
		}
	})
}

// TestSchedule checks that At is even and ascending and that Before counts it.
func TestSchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Range(1, 1<<50).Draw(t, "start")
		rate := rapid.Float64Range(0.01, 1e9).Draw(t, "rate")
		of := rapid.IntRange(1, 20).Draw(t, "producers")
		span := rapid.Int64Range(1, int64(1000/rate*1e9)+2).Draw(t, "span")
		var total int64
		for p := range of {
			s := load.NewSchedule(start, rate, p, of)
			n := s.Before(start + span)
			total += n
			require.Zero(t, s.Before(start))
			require.GreaterOrEqual(t, s.At(n), start+span)
			if n > 0 {
				require.Less(t, s.At(n-1), start+span)
				require.LessOrEqual(t, s.At(n-1), s.At(n))
			}
		}
		require.InDelta(t, float64(span)*rate/1e9, float64(total), 1.01, "all producers together keep the rate")
	})
}
