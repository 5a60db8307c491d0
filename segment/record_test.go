package segment_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

func TestHeaders(t *testing.T) {
	list := []segment.Header{
		{Name: "a", Value: []byte("1")},
		{Name: "", Value: []byte{}},
		{Name: "b", Value: nil},
		{Name: "a", Value: []byte("2")},
		{Name: fmt.Sprintf("%200d", 1), Value: make([]byte, 300)},
	}
	h := segment.MakeHeaders(list...)
	require.Equal(t, 5, h.Len())
	require.Equal(t, list, headerList(h))
	v, ok := h.Get("a")
	require.True(t, ok)
	require.Equal(t, "1", string(v), "the first of that name")
	require.Equal(t, len(v), cap(v))
	v, ok = h.Get("")
	require.True(t, ok)
	require.NotNil(t, v)
	require.Empty(t, v)
	v, ok = h.Get("b")
	require.True(t, ok)
	require.Nil(t, v)
	_, ok = h.Get("c")
	require.False(t, ok)
	require.Zero(t, testing.AllocsPerRun(100, func() { h.Get("c") }))

	n := 0
	for range h.All() {
		if n++; n == 2 {
			break
		}
	}
	require.Equal(t, 2, n)

	var none segment.Headers
	require.Zero(t, none.Len())
	require.Zero(t, none.Size())
	_, ok = none.Get("")
	require.False(t, ok)
	require.Empty(t, headerList(none))
	require.Equal(t, none, segment.MakeHeaders())
	require.Equal(t, list[:1], headerList(none.Add("a", []byte("1"))))
}

func TestHeaders_Copies(t *testing.T) {
	value := []byte("value")
	h := segment.MakeHeaders(segment.Header{Name: "n", Value: value}).Add("m", value)
	copy(value, "xxxxx")
	for _, name := range []string{"n", "m"} {
		v, _ := h.Get(name)
		require.Equal(t, "value", string(v))
	}
}

func TestHeaders_AddToAView(t *testing.T) {
	l := segment.NewLog(segment.Config{})
	for range 2 {
		require.NoError(t, l.Append(&segment.Record{Value: []byte("v"), Headers: segment.MakeHeaders(segment.Header{Name: "n"})}, 1))
	}
	require.NoError(t, l.Publish())
	var dst [2]segment.Record
	_, err := l.ReadAt(0, dst[:])
	require.NoError(t, err)
	more := dst[0].Headers.Add("added to the copy, not to the log", []byte("x"))
	require.Equal(t, 2, more.Len())
	require.Equal(t, 1, dst[0].Headers.Len())
	require.Equal(t, "v", string(dst[0].Value))
}

func TestRecord_Clone(t *testing.T) {
	for _, r := range []segment.Record{
		{},
		{Key: []byte{}, Value: nil, Offset: 3, Partition: 4, Timestamp: 5},
		{Key: nil, Value: []byte{}},
		{Key: []byte("key"), Value: []byte("value"), Headers: segment.MakeHeaders(segment.Header{Name: "n", Value: []byte("h")})},
	} {
		c := r.Clone()
		require.Equal(t, r.Key, c.Key)
		require.Equal(t, r.Value, c.Value)
		require.Equal(t, headerList(r.Headers), headerList(c.Headers))
		require.Equal(t, [3]int64{r.Timestamp, r.Offset, int64(r.Partition)}, [3]int64{c.Timestamp, c.Offset, int64(c.Partition)})
		require.Equal(t, r.Size(), c.Size())
		require.Equal(t, len(c.Key), cap(c.Key))
		require.Equal(t, len(c.Value), cap(c.Value))
		for i := range r.Key {
			r.Key[i] = 'x'
		}
		for i := range r.Value {
			r.Value[i] = 'x'
		}
		require.NotContains(t, string(c.Key)+string(c.Value), "x")
	}
	r := segment.Record{Key: []byte("key"), Value: []byte("value"), Headers: segment.MakeHeaders(segment.Header{Name: "n"})}
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { r.Clone() }), 1.0)
}

func TestRecord_Time(t *testing.T) {
	at := time.Date(1969, 12, 31, 23, 59, 59, 7, time.UTC)
	r := segment.Record{Timestamp: at.UnixNano()}
	require.True(t, at.Equal(r.Time()))
}

func TestRecord_CopyTo(t *testing.T) {
	r := segment.Record{Key: []byte("key"), Value: []byte("value"), Headers: segment.MakeHeaders(segment.Header{Name: "n"})}
	dst := make([]byte, r.Size())
	require.Equal(t, r.Size(), r.CopyTo(dst))
	require.Equal(t, "keyvalue", string(dst[r.Headers.Size():]))
	require.Panics(t, func() { r.CopyTo(dst[1:]) })
	require.Panics(t, func() { r.CopyTo(nil) })
}
