//go:build unix && !386 && !arm

package engine_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestBUG035: a record of 2 GiB, whose length no 32-bit counter holds, is refused by every way in, and so is one of 4 GiB,
// whose length wraps to 0. Nobody looks at the bytes: they are of memory that is only reserved.
func TestBUG035_TwoGigabytes(t *testing.T) {
	b, err := syscall.Mmap(-1, 0, 2<<30, syscall.PROT_READ, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(b)) }()
	topic := newTopic(t, engine.TopicConfig{MaxRecordBytes: 1<<30 - 64, Retention: engine.Retention{MaxBytes: engine.Unlimited}})
	for _, r := range []engine.Record{{Value: b}, {Key: b}, {Key: b, Value: b}, {Value: b[:1<<30-63]}} {
		for _, way := range publishers {
			var large *engine.TooLargeError
			err := way.publish(background, topic, r)
			require.ErrorAs(t, err, &large, way.name)
			require.ErrorIs(t, err, engine.ErrTooLarge)
			require.EqualValues(t, len(r.Key)+len(r.Value), large.Size)
			require.EqualValues(t, 1<<30-64, large.Limit)
		}
	}
	require.Zero(t, part(t, topic, 0).Next())
}
