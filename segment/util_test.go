package segment_test

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

// put appends one record with that value at time now, and publishes it.
func put(t testing.TB, l *segment.Log, now int64, value string) {
	t.Helper()
	require.NoError(t, l.Append(&segment.Record{Value: []byte(value)}, now))
	require.NoError(t, l.Publish())
}

// puts appends n records, whose values are their offsets and whose times are their offsets, one Publish each.
func puts(t testing.TB, l *segment.Log, n int) {
	t.Helper()
	for range n {
		put(t, l, int64(l.Staged()), fmt.Sprint(l.Staged()))
	}
}

// read returns the values from the reader's position to where Refill says anything but Ready, and what it says.
func read(r *segment.Reader) (values []string, s segment.State) {
	var rec segment.Record
	for {
		if s = r.Refill(); s != segment.Ready {
			return values, s
		}
		for r.Next(&rec) {
			values = append(values, string(rec.Value))
		}
	}
}

// retain drops segments until at most n are left.
func retain(l *segment.Log, n int) {
	for {
		if _, _, segments := l.Retained(); segments <= n || !l.DropOldest() {
			return
		}
	}
}

// cutSometimes drops segments, or records to anywhere, or nothing.
func cutSometimes(l *segment.Log, rng *rand.Rand) {
	switch rng.IntN(4) {
	case 0:
		retain(l, 1+rng.IntN(4))
	case 1:
		first, next := l.Snapshot()
		l.TruncateBefore(first + rng.Uint64N(next-first+1))
	}
}

// drain drops everything, as the end of a log does.
func drain(l *segment.Log) {
	l.Unstage()
	for l.DropOldest() {
	}
}

// A signed payload says which record it belongs to and proves it: offset, hash of offset and filling, filling. Whoever
// reads it can check it alone.
const signedHead = 16

func signedSize(off uint64) int { return signedHead + int(off*37%101) }

func sign(dst []byte, off uint64) {
	binary.LittleEndian.PutUint64(dst, off)
	for i := signedHead; i < len(dst); i++ {
		dst[i] = byte(off) + byte(i)
	}
	binary.LittleEndian.PutUint64(dst[8:], signature(dst))
}

func signature(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b[:8])
	h.Write(b[signedHead:])
	return h.Sum64()
}

// verify returns what is wrong with a record that was written by appendSigned.
func verify(rec *segment.Record, off uint64) error {
	if rec.Offset != int64(off) {
		return fmt.Errorf("offset %d, want %d", rec.Offset, off)
	}
	if len(rec.Value) != signedSize(off) {
		return fmt.Errorf("offset %d: %d bytes, want %d", off, len(rec.Value), signedSize(off))
	}
	if got := binary.LittleEndian.Uint64(rec.Value); got != off {
		return fmt.Errorf("offset %d: the bytes are those of %d", off, got)
	}
	if binary.LittleEndian.Uint64(rec.Value[8:]) != signature(rec.Value) {
		return fmt.Errorf("offset %d: bad signature", off)
	}
	if rec.Timestamp != int64(off) {
		return fmt.Errorf("offset %d: timestamp %d", off, rec.Timestamp)
	}
	return nil
}

// appendSigned stages the record that verify expects.
func appendSigned(l *segment.Log) error {
	off := l.Staged()
	s := segment.Shape{Key: -1, Value: signedSize(off)}
	if off%3 == 0 {
		s.Timestamp = int64(off) // sometimes its own, which is stored among the record's bytes
	}
	dst, err := l.Reserve(s, int64(off))
	if err == nil {
		sign(dst, off)
	}
	return err
}
