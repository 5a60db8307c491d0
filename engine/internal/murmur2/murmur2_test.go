package murmur2_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/engine/internal/murmur2"
)

// vectors are what other clients say. Java prints the hash as a signed number, and so do these.
var vectors = []struct {
	key  string
	hash int32
}{
	// Kafka's own UtilsTest.testMurmur2.
	{"21", -973932308},
	{"foobar", -790332482},
	{"a-little-bit-long-string", -985981536},
	{"a-little-bit-longer-string", -1486304829},
	{"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
	{"abc", 479470107},
	// From a Java client 1.0.0: not text.
	{"\x0c\x2a\x38\x18\x6d\x6f", 274204207},
	// librdkafka's unit test, which was checked against the Java client.
	{"", 275646681},
	{"4", 1514888353},
	{"34", -2026295078},
	{"234", -406844982},
	{"1234", -1614185708},
	{"kafka", -798503068},
	{"giberish123456789", -1890243828},
	{"PreAmbleWillBeRemoved,ThePrePartThatIs", 2017611548},
	{"reAmbleWillBeRemoved,ThePrePartThatIs", 1247982455},
	{"eAmbleWillBeRemoved,ThePrePartThatIs", -521871202},
	{"AmbleWillBeRemoved,ThePrePartThatIs", 1656271935},
	// The Java client, as the tests of KafkaJS and of Akka quote it.
	{"0", 971027396},
	{"1", -1993445489},
	{"12", 126087238},
	{"123", -267702483},
	{"12345", -1188365604},
	{"128", -326012175},
	{"2187", -1508407203},
	{"16384", -325739742},
	{"78125", -1654490814},
	{"279936", 1462227128},
	{"823543", -2014198330},
	{"2097152", 607668903},
	{"4782969", -1182699775},
	{"10000000", -1830336757},
	{"19487171", -1603849305},
	{"170859375", -1658323481},
	{"100:48069", 1009543857},
}

// TestBUG077_GoldenVectors: a hash that differs from Kafka's in one bit puts keys elsewhere.
func TestBUG077_GoldenVectors(t *testing.T) {
	topBit := 0
	for _, v := range vectors {
		assert.Equal(t, v.hash, int32(murmur2.Sum([]byte(v.key))), "key %q", v.key)
		if v.hash < 0 {
			topBit++
		}
	}
	assert.Greater(t, topBit, 10, "the vectors must have hashes with the top bit set")
}

// TestBUG077_EveryLength has keys of 0 to 17 bytes, most of them above 0x7f, so that each tail is taken with each number of
// whole words, and signed bytes would show. The answers are franz-go's (v1.22.3, its sticky key partitioner), which gives
// no more than the partition: the one for 2^31 partitions is the hash without its top bit.
func TestBUG077_EveryLength(t *testing.T) {
	for length, want := range []struct {
		hash              uint32
		of4, of12, of1000 int
	}{
		{0x106e08d9, 1, 9, 681},
		{0x6d6f615b, 3, 3, 963},
		{0x26c85386, 2, 2, 790},
		{0x2221c243, 3, 7, 763},
		{0x0d046dea, 2, 6, 90},
		{0x656d5fe2, 2, 6, 786},
		{0x702761da, 2, 10, 146},
		{0x503a278b, 3, 7, 491},
		{0x3a34608e, 2, 6, 118},
		{0x7d28c6bb, 3, 7, 315},
		{0x59766573, 3, 3, 443},
		{0x5173d622, 2, 6, 954},
		{0x2a9bac5f, 3, 11, 279},
		{0x0a1a6b22, 2, 6, 522},
		{0x3a790457, 3, 3, 495},
		{0x4dc010cc, 0, 0, 844},
		{0x53f829d9, 1, 1, 569},
		{0x4124ed03, 3, 11, 11},
	} {
		key := make([]byte, length)
		for i := range key {
			key[i] = byte(0xff - 7*i)
		}
		assert.Equal(t, want.hash, murmur2.Sum(key)&0x7fffffff, "length %d", length)
		assert.Equal(t, want.of4, murmur2.Partition(key, 4), "length %d", length)
		assert.Equal(t, want.of12, murmur2.Partition(key, 12), "length %d", length)
		assert.Equal(t, want.of1000, murmur2.Partition(key, 1000), "length %d", length)
	}
}

// TestBUG077_Checksum is Kafka's UtilsTest.testMurmur2Checksum: the sum over 100 keys of each length from 0 to 1000, drawn
// from Java's SplittableRandom with seed 0.
func TestBUG077_Checksum(t *testing.T) {
	rnd := splittable{}
	sum := uint64(0)
	for length := range 1001 {
		key := make([]byte, length)
		for range 100 {
			rnd.fill(key)
			sum += uint64(murmur2.Sum(key))
		}
	}
	assert.Equal(t, uint64(0xc3b8cf7c99fc), sum)
}

// splittable is Java's SplittableRandom (the SplitMix64 generator).
type splittable struct{ state uint64 }

func (s *splittable) next() uint64 {
	s.state += 0x9e3779b97f4a7c15
	z := s.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fill is its nextBytes: each word gives eight bytes, the lowest first, and the last word as many as are still wanted.
func (s *splittable) fill(b []byte) {
	for i := 0; i < len(b); {
		for w, n := s.next(), 0; n < 8 && i < len(b); n++ {
			b[i] = byte(w)
			w >>= 8
			i++
		}
	}
}

// TestBUG077_TopBitIsCleared: the top bit is cleared, neither negated away nor kept as unsigned.
func TestBUG077_TopBitIsCleared(t *testing.T) {
	for _, v := range vectors {
		for _, n := range []int{1, 2, 3, 4, 7, 10, 12, 50, 64, 1000, 1 << 20, 1<<31 - 1} {
			got := murmur2.Partition([]byte(v.key), n)
			assert.Equal(t, int(int64(v.hash&0x7fffffff)%int64(n)), got, "key %q, %d partitions", v.key, n)
			assert.True(t, got >= 0 && got < n, "key %q, %d partitions: %d", v.key, n, got)
		}
	}
	// foobar hashes to -790332482. A client that takes the absolute value gets 2 of 10, one that stays unsigned gets 4.
	assert.Equal(t, 6, murmur2.Partition([]byte("foobar"), 10))
}

func TestPartition_NotPositive(t *testing.T) {
	for _, n := range []int{0, -1, -1 << 31} {
		assert.PanicsWithValue(t, "murmur2: the number of partitions must be positive", func() { murmur2.Partition([]byte("key"), n) }, "%d partitions", n)
	}
}

func TestSum_NilIsEmpty(t *testing.T) {
	assert.Equal(t, murmur2.Sum([]byte{}), murmur2.Sum(nil))
}

// TestSum_OnlyItsBytes: what lies around the key in memory does not count, nor how the key is aligned.
func TestSum_OnlyItsBytes(t *testing.T) {
	const text = "some-key-of-19-bytes"
	for length := range len(text) {
		want := murmur2.Sum([]byte(text[:length]))
		for shift := range 8 {
			room := []byte(strings.Repeat("\xa5", shift) + text[:length] + strings.Repeat("\xa5", 8))
			assert.Equal(t, want, murmur2.Sum(room[shift:shift+length]), "length %d, shifted by %d", length, shift)
		}
	}
}

func TestPartition_DoesNotAllocate(t *testing.T) {
	key, sum := []byte("some-key-of-19-bytes"), 0
	assert.Zero(t, testing.AllocsPerRun(100, func() { sum += murmur2.Partition(key, 12) }))
}
