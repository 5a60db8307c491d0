package baseline_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/baseline"
)

func TestFan_EveryReaderSeesEveryMessageInOrder(t *testing.T) {
	const readers, n = 3, 5000
	f := baseline.NewFan[baseline.Slot](readers, 16)
	var wg sync.WaitGroup
	got := make([][]uint64, readers)
	for i := range readers {
		wg.Go(func() {
			for m := range f.Reader(i) {
				got[i] = append(got[i], binary.LittleEndian.Uint64(m[:]))
			}
		})
	}
	for i := range uint64(n) {
		var m baseline.Slot
		binary.LittleEndian.PutUint64(m[:], i)
		f.Send(m)
	}
	f.Close()
	wg.Wait()
	for i := range readers {
		require.Len(t, got[i], n)
		assert.True(t, slices.IsSorted(got[i]), "reader %d", i)
	}
}

func TestFan_SendBytesCopies(t *testing.T) {
	f := baseline.NewFan[[]byte](2, 1)
	p := []byte("one")
	baseline.SendBytes(f, p)
	copy(p, "two")
	assert.Equal(t, "one", string(<-f.Reader(0)))
	assert.Equal(t, "one", string(<-f.Reader(1)))
}

func TestLog_AppendReadAt(t *testing.T) {
	l := baseline.NewLog(0)
	p := []byte("a")
	off, err := l.Append(p)
	require.NoError(t, err)
	assert.Equal(t, uint64(0), off)
	p[0] = 'x'
	off, err = l.Append([]byte("b"))
	require.NoError(t, err)
	assert.Equal(t, uint64(1), off)

	m, ok := l.ReadAt(0)
	assert.True(t, ok)
	assert.Equal(t, "a", string(m))
	_, ok = l.ReadAt(2)
	assert.False(t, ok)

	l.Close()
	_, err = l.Append(nil)
	assert.ErrorIs(t, err, baseline.ErrClosed)
}

func TestLog_WithoutReadersDropsTheOldest(t *testing.T) {
	l := baseline.NewLog(2)
	for i := range 5 {
		off, err := l.Append([]byte{byte(i)})
		require.NoError(t, err)
		assert.Equal(t, uint64(i), off)
	}
	assert.Equal(t, 2, l.Len())
	_, ok := l.ReadAt(2)
	assert.False(t, ok)
	m, ok := l.ReadAt(3)
	assert.True(t, ok)
	assert.Equal(t, []byte{3}, m)
}

func TestLog_FullWaitsForTheSlowestReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := baseline.NewLog(2)
		fast, slow := l.NewReader(), l.NewReader()
		for i := range 2 {
			_, err := l.Append([]byte{byte(i)})
			require.NoError(t, err)
		}
		appended := make(chan error, 1)
		go func() {
			_, err := l.Append([]byte{2})
			appended <- err
		}()
		for i := range 2 {
			m, ok := fast.Next()
			require.True(t, ok)
			assert.Equal(t, []byte{byte(i)}, m)
		}
		synctest.Wait()
		assert.Empty(t, appended, "the slow reader has read nothing yet")

		m, ok := slow.Next()
		require.True(t, ok)
		assert.Equal(t, []byte{0}, m)
		assert.NoError(t, <-appended)
		assert.Equal(t, 2, l.Len())
	})
}

func TestLog_CloseEndsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := baseline.NewLog(1)
		stuck, r := l.NewReader(), l.NewReader()
		_, err := l.Append([]byte("last"))
		require.NoError(t, err)
		refused := make(chan error, 1)
		go func() {
			_, err := l.Append([]byte("never"))
			refused <- err
		}()
		ended := make(chan string, 1)
		go func() {
			var all string
			for m, ok := r.Next(); ok; m, ok = r.Next() {
				all += string(m)
			}
			ended <- all
		}()
		synctest.Wait()
		l.Close()
		assert.ErrorIs(t, <-refused, baseline.ErrClosed)
		assert.Equal(t, "last", <-ended)
		m, ok := stuck.Next()
		assert.True(t, ok, "what is there can still be read after Close")
		assert.Equal(t, "last", string(m))
	})
}

// TestLog_Stress has several producers and readers on a log much smaller than the stream: every reader must see every
// producer's messages once and in order, and all readers the same order.
func TestLog_Stress(t *testing.T) {
	const producers, readers, each = 3, 3, 2000
	l := baseline.NewLog(7)
	got := make([][]string, readers)
	var rg, pg sync.WaitGroup
	for i := range readers {
		r := l.NewReader()
		rg.Go(func() {
			for m, ok := r.Next(); ok; m, ok = r.Next() {
				got[i] = append(got[i], string(m))
			}
		})
	}
	for p := range producers {
		pg.Go(func() {
			for n := range each {
				if _, err := l.Append(fmt.Appendf(nil, "%d/%d", p, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	pg.Wait()
	l.Close()
	rg.Wait()
	for i := range readers {
		require.Len(t, got[i], producers*each)
		require.Equal(t, got[0], got[i], "reader %d sees another order than reader 0", i)
	}
	var next [producers]int
	for _, m := range got[0] {
		var p, n int
		_, err := fmt.Sscanf(m, "%d/%d", &p, &n)
		require.NoError(t, err)
		require.Equal(t, next[p], n, "producer %d", p)
		next[p]++
	}
}
