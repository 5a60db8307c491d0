package atomicx_test

import (
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/internal/atomicx"
)

// TestWords_AreLikeSyncAtomic makes sure that in each build every word has the methods of the type of sync/atomic that it is
// or stands for, and its size and alignment. (sync.Mutex is among them.)
func TestWords_AreLikeSyncAtomic(t *testing.T) {
	for _, x := range []struct{ got, want reflect.Type }{
		{reflect.TypeFor[atomicx.Uint64](), reflect.TypeFor[atomic.Uint64]()},
		{reflect.TypeFor[atomicx.Int64](), reflect.TypeFor[atomic.Int64]()},
		{reflect.TypeFor[atomicx.Uint32](), reflect.TypeFor[atomic.Uint32]()},
		{reflect.TypeFor[atomicx.Bool](), reflect.TypeFor[atomic.Bool]()},
		{reflect.TypeFor[atomicx.Pointer[string]](), reflect.TypeFor[atomic.Pointer[string]]()},
		{reflect.TypeFor[atomicx.Mutex](), reflect.TypeFor[sync.Mutex]()},
	} {
		assert.Equal(t, methods(x.want), methods(x.got), x.want)
		assert.Equal(t, x.want.Size(), x.got.Size(), x.want)
		assert.Equal(t, x.want.Align(), x.got.Align(), x.want)
	}
}

// methods returns the methods of a pointer to a type and their signatures, without the receiver.
func methods(typ reflect.Type) map[string]string {
	set := map[string]string{}
	p := reflect.PointerTo(typ)
	for m := range p.Methods() {
		signature := ""
		for i := range m.Type.NumIn() - 1 {
			signature += m.Type.In(i+1).String() + " "
		}
		signature += "->"
		for out := range m.Type.Outs() {
			signature += " " + out.String()
		}
		set[m.Name] = signature
	}
	return set
}

// TestNames_OfBothBuilds uses every other name that both builds must have, in the way in which it is meant to be used.
func TestNames_OfBothBuilds(t *testing.T) {
	var (
		_                                  = atomicx.Exploring
		_    sync.Locker                   = &atomicx.Mutex{}
		_    func(*atomicx.Uint64, uint64) = atomicx.StoreRelease
		_    func(uint32)                  = atomicx.Pause
		_    func(uint32)                  = atomicx.Relax
		_    func()                        = atomicx.Yield
		_    func(unsafe.Pointer)          = atomicx.Reads
		_    func(unsafe.Pointer)          = atomicx.Writes
		_    func() atomicx.Clock          = atomicx.NewClock
		_    func() atomicx.Parker         = atomicx.NewParker
		word atomicx.Uint64
		cell atomicx.Cell[string]
	)
	assert.Equal(t, map[string]string{"Get": "-> string", "Set": "string ->"}, methods(reflect.TypeOf(cell)))
	assert.Equal(t, map[string]string{"Now": "-> int64"}, methods(reflect.TypeFor[atomicx.Clock]()))
	assert.Equal(t, map[string]string{"Park": "<-chan struct {} -> bool", "Unpark": "->"}, methods(reflect.TypeFor[atomicx.Parker]()))
	assert.Equal(t, unsafe.Sizeof(""), unsafe.Sizeof(cell), "a cell is as large as what it holds")

	cell.Set("x")
	assert.Equal(t, "x", cell.Get())
	atomicx.StoreRelease(&word, 3)
	assert.EqualValues(t, 3, word.Load())
	atomicx.Reads(unsafe.Pointer(&word))
	atomicx.Writes(unsafe.Pointer(&word))
	for turn := range uint32(6) {
		atomicx.Relax(turn)
	}
	atomicx.Yield()
	atomicx.Pause(0)
	atomicx.Pause(3)
}

// TestWords_Behave makes sure that the words do what those of sync/atomic do; in the explore build they are our own.
func TestWords_Behave(t *testing.T) {
	var (
		u atomicx.Uint64
		h atomicx.Uint32
		i atomicx.Int64
		b atomicx.Bool
		p atomicx.Pointer[int]
		m atomicx.Mutex
	)
	u.Store(5)
	assert.Equal(t, []uint64{5, 5, 7, 10, 10, 2}, []uint64{u.Load(), u.Swap(7), u.Load(), u.Add(3), u.And(6), u.Or(1)})
	assert.False(t, u.CompareAndSwap(1, 2))
	assert.True(t, u.CompareAndSwap(3, 2))

	h.Store(5)
	assert.Equal(t, []uint32{5, 5, 7, 10, 10, 2}, []uint32{h.Load(), h.Swap(7), h.Load(), h.Add(3), h.And(6), h.Or(1)})
	assert.False(t, h.CompareAndSwap(1, 2))
	assert.True(t, h.CompareAndSwap(3, 2))
	assert.Equal(t, ^uint32(0), h.Add(^uint32(2)))

	i.Store(-5)
	assert.Equal(t, []int64{-5, -5, 7, 4, 4, 4}, []int64{i.Load(), i.Swap(7), i.Load(), i.Add(-3), i.And(6), i.Or(1)})
	assert.False(t, i.CompareAndSwap(1, 2))
	assert.True(t, i.CompareAndSwap(5, 2))

	b.Store(true)
	assert.True(t, b.Load())
	assert.True(t, b.Swap(false))
	assert.False(t, b.CompareAndSwap(true, false))
	assert.True(t, b.CompareAndSwap(false, true))

	x, y := 1, 2
	assert.Nil(t, p.Load())
	p.Store(&x)
	assert.Same(t, &x, p.Swap(&y))
	assert.False(t, p.CompareAndSwap(&x, nil))
	assert.True(t, p.CompareAndSwap(&y, &x))
	assert.Same(t, &x, p.Load())

	m.Lock()
	assert.False(t, m.TryLock())
	m.Unlock()
	assert.True(t, m.TryLock())
	m.Unlock()
}
