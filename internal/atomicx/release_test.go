package atomicx_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/atomicx"
)

func TestStoreRelease_StoresAllBits(t *testing.T) {
	x := [3]atomicx.Uint64{}
	x[0].Store(1)
	x[2].Store(2)
	for _, v := range []uint64{0, 1, 1 << 31, 1 << 32, 1<<64 - 1, 0x0123456789ABCDEF} {
		atomicx.StoreRelease(&x[1], v)
		assert.Equal(t, v, x[1].Load())
	}
	assert.EqualValues(t, 1, x[0].Load(), "a neighbour was touched")
	assert.EqualValues(t, 2, x[2].Load(), "a neighbour was touched")
}

// TestStoreRelease_StressPublishes makes sure that whoever loads a value sees what was written before its store. The words
// are used in both directions, so that writer and reader take turns.
func TestStoreRelease_StressPublishes(t *testing.T) {
	rounds := uint64(200_000)
	if testing.Short() {
		rounds = 20_000
	}
	var (
		ready, taken atomicx.PaddedUint64
		data         [4]uint64 // plain on purpose: the race detector checks the claim
		wrong        uint64
	)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := uint64(1); i <= rounds; i++ {
			for turn := uint32(0); ready.Load() != i; turn++ {
				atomicx.Relax(turn)
			}
			for j := range data {
				if data[j] != i+uint64(j) {
					wrong++
				}
			}
			atomicx.StoreRelease(&taken.Uint64, i)
		}
	}()
	for i := uint64(1); i <= rounds; i++ {
		for j := range data {
			data[j] = i + uint64(j)
		}
		atomicx.StoreRelease(&ready.Uint64, i)
		for turn := uint32(0); taken.Load() != i; turn++ {
			atomicx.Relax(turn)
		}
	}
	<-done
	require.Zero(t, wrong)
}

// TestStoreRelease_KeepsWordsOnTheStack makes sure that the assembly does not make words escape to the heap.
func TestStoreRelease_KeepsWordsOnTheStack(t *testing.T) {
	if atomicx.Exploring || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("the shims and 64-bit atomics on 32-bit platforms let words escape")
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		var x atomicx.Uint64
		atomicx.StoreRelease(&x, 1)
		atomicx.Pause(1)
	}))
}

// What is fetched may be anywhere, and stays as it is.
func TestPrefetch_ReadsAndWritesNothing(t *testing.T) {
	memory := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}
	for i := range memory {
		p := unsafe.Pointer(&memory[i])
		atomicx.Prefetch(p)
		atomicx.PrefetchWrite(p, len(memory)-i)
	}
	assert.Equal(t, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, memory)
	assert.NotPanics(t, func() {
		atomicx.Prefetch(nil)
		atomicx.PrefetchWrite(nil, 1<<12)
	})
	const text = "it cannot be written"
	atomicx.PrefetchWrite(unsafe.Pointer(unsafe.StringData(text)), len(text))
	atomicx.PrefetchWrite(unsafe.Pointer(unsafe.StringData(text)), 0)
}
