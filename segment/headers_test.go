package segment_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

// TestParseHeaders cuts and changes an encoded list at every byte: it is refused, or a list that can be walked.
func TestParseHeaders(t *testing.T) {
	want := segment.MakeHeaders(segment.Header{Name: "a", Value: []byte("x")}, segment.Header{Name: ""}, segment.Header{Name: "bc", Value: []byte{}})
	raw := want.Encoded()
	got, err := segment.ParseHeaders(raw)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	got, err = segment.ParseHeaders(nil)
	require.NoError(t, err)
	assert.Zero(t, got.Len())
	refused := 0
	for i := range raw {
		for _, b := range [][]byte{raw[:i], append(append([]byte(nil), raw[:i]...), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)} {
			h, err := segment.ParseHeaders(b)
			if err != nil {
				require.ErrorIs(t, err, segment.ErrHeaders)
				refused++
				continue
			}
			for range h.All() {
			}
			require.Equal(t, len(b), h.Size())
		}
	}
	assert.Greater(t, refused, len(raw))
}
