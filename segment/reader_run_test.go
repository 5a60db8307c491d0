package segment_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

// NextRun ends where a record has a value of another size, or more than that, and at the end of a segment.
func TestReader_NextRun(t *testing.T) {
	value := func(v string) segment.Record { return segment.Record{Value: []byte(v)} }
	headers := value("aa")
	headers.Headers = segment.MakeHeaders(segment.Header{Name: "h"})
	stamped := value("aa")
	stamped.Timestamp = 1
	for _, c := range []struct {
		records []segment.Record
		runs    string
	}{
		{[]segment.Record{value("aa"), value("bb"), value("cc")}, `3"aabbcc" `},
		{[]segment.Record{value("aa"), value("bb"), value("c"), value("d"), value("")}, `2"aabb" 2"cd" 1"" `},
		{[]segment.Record{value(""), value(""), value("a")}, `2"" 1"a" `},
		{[]segment.Record{{Key: []byte("k"), Value: []byte("a")}, {Key: []byte("k"), Value: []byte("b")}, value("cc")}, `1"a" 1"b" 1"cc" `},
		{[]segment.Record{value("aa"), {Key: []byte("k"), Value: []byte("b")}, value("cc")}, `1"aa" 1"b" 1"cc" `},
		{[]segment.Record{value("aa"), headers, value("bb"), stamped, value("cc")}, `1"aa" 1"aa" 1"bb" 1"aa" 1"cc" `},
		{[]segment.Record{{}, {}, value("")}, `1nil 1nil 1"" `},
		{[]segment.Record{value("1"), value("2"), value("3"), value("4"), value("5"), value("6")}, `4"1234" 1"5" 1"6" `},
	} {
		l := segment.NewLog(segment.Config{SegmentRecords: 5})
		for i := range c.records {
			require.NoError(t, l.Append(&c.records[i], 5))
		}
		require.NoError(t, l.Publish())
		r, got := l.NewReader(), ""
		for r.Refill() == segment.Ready {
			for values, n := r.NextRun(4); n > 0; values, n = r.NextRun(4) {
				if values == nil {
					got += fmt.Sprintf("%dnil ", n)
				} else {
					got += fmt.Sprintf("%d%q ", n, values)
				}
			}
		}
		require.Equal(t, c.runs, got)
		require.EqualValues(t, len(c.records), r.Position())
		values, n := r.NextRun(4)
		require.Nil(t, values)
		require.Zero(t, n, "behind all that is there")
		r.Close()
	}
}
