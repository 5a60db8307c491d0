package storage_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

type content struct {
	Name string
	At   map[string][]int64
}

// TestFile_Damage flips and cuts at every byte: it is always noticed.
func TestFile_Damage(t *testing.T) {
	m := vfs.NewMem()
	var got content
	require.ErrorIs(t, storage.ReadFile(m, "f", &got), fs.ErrNotExist)
	want := content{"x", map[string][]int64{"a": {1, 1 << 60}, "b": nil}}
	require.NoError(t, storage.WriteFile(m, "f", want))
	require.NoError(t, storage.ReadFile(m, "f", &got))
	assert.Equal(t, want, got)

	whole, err := vfs.ReadFile(m, "f", 1<<20)
	require.NoError(t, err)
	for i := range whole {
		for _, bit := range []byte{1, 0x80} {
			b := append([]byte(nil), whole...)
			b[i] ^= bit
			require.NoError(t, vfs.Replace(m, "f", b))
			err := storage.ReadFile(m, "f", &got)
			if i >= 8 && i < 12 {
				require.ErrorIs(t, err, frame.ErrVersion, "byte %d", i)
				continue
			}
			require.ErrorIs(t, err, storage.ErrCorrupt, "byte %d", i)
		}
		require.NoError(t, vfs.Replace(m, "f", whole[:i]))
		require.ErrorIs(t, storage.ReadFile(m, "f", &got), storage.ErrCorrupt, "%d bytes", i)
	}
	require.NoError(t, vfs.Replace(m, "f", append(whole, 0)))
	require.ErrorIs(t, storage.ReadFile(m, "f", &got), storage.ErrCorrupt)
}
