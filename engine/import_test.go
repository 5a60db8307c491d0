package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/vfs"
)

// TestImport_Anything imports what no export has written: it is refused, or there is a topic that works.
func TestImport_Anything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := vfs.NewMem()
		number := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3, 5), rapid.SampledFrom([]int64{0, 0, 0, 1 << 10, 16 << 10, 1 << 20, 1 << 31, 1 << 40,
			math.MaxInt64, math.MinInt64}))
		settings := map[string]any{}
		for _, name := range []string{"MaxBytes", "MaxRecords", "MaxAge", "OnFull", "MaxRecordBytes", "SegmentBytes", "SegmentRecords",
			"HandoverSlots", "Sync", "Interval", "FileBytes", "First"} {
			if rapid.IntRange(0, 3).Draw(t, "has "+name) == 0 {
				n := number.Draw(t, name)
				if 1<<20 < n && n <= 1<<50 {
					n = 1 << 16 // that would be taken at once
				}
				settings[name] = n
			}
		}
		if rapid.Bool().Draw(t, "has a partitioner") {
			settings["Partitioner"] = rapid.SampledFrom([]string{"key", "round-robin", "explicit", "custom", ""}).Draw(t, "partitioner")
		}
		raw, err := json.Marshal(settings)
		require.NoError(t, err)
		first := make([]engine.Offset, rapid.IntRange(0, 3).Draw(t, "partitions"))
		for p := range first {
			first[p] = rapid.SampledFrom([]engine.Offset{0, 0, 0, 5, 1 << 40, math.MaxInt64 - 2, math.MaxInt64 - 1, math.MaxInt64, -1}).Draw(t, "first")
		}
		imp, err := engine.ImportOn(m, dir, "t", raw, first)
		if err == nil {
			for range rapid.IntRange(0, 5).Draw(t, "records") {
				p := rapid.IntRange(-1, len(first)).Draw(t, "partition")
				r := engine.Record{Partition: int32(p), Value: []byte("v"), Timestamp: number.Draw(t, "timestamp")}
				if p >= 0 && p < len(first) {
					r.Offset = first[p]
					first[p]++
				}
				if err = imp.Add(&r, number.Draw(t, "appended")); err != nil {
					require.NoError(t, imp.Abort())
					break
				}
			}
			if err == nil {
				err = imp.Close()
			}
		}
		e, openErr := engine.Open(engine.Config{Dir: dir, PositionsEvery: time.Hour}.WithFS(m))
		require.NoError(t, openErr)
		defer e.Close()
		if err != nil {
			require.Empty(t, e.Topics())
			return
		}
		top, err := e.Topic("t")
		require.NoError(t, err)
		for p, next := range first {
			part, err := top.Partition(p)
			require.NoError(t, err)
			require.Equal(t, next, part.Next())
			if next < math.MaxInt64 && part.TryPublish(engine.Record{Value: []byte("w")}) == nil {
				require.NoError(t, part.Flush(background))
				require.Equal(t, next+1, part.Next())
			}
		}
	})
}

// TestImport_LeaksNothing fails each operation of an import in turn.
func TestImport_LeaksNothing(t *testing.T) {
	boom := errors.New("boom")
	for n := 1; ; n++ {
		m := vfs.NewMem()
		fsys, failed := vfs.FailNth(n, m, boom)
		err := importSome(fsys)
		require.Empty(t, fsys.Left(), "operation %d", n)
		e := on(t, m, engine.Config{PositionsEvery: time.Hour})
		if !failed() {
			require.NoError(t, err)
			holds(t, topicOf(t, e, "t"), 100)
			return
		}
		if err == nil {
			holds(t, topicOf(t, e, "t"), 100)
			require.NoError(t, e.DeleteTopic("t"))
		}
		require.Empty(t, e.Topics(), "operation %d", n)
		require.NoError(t, e.Close())
		for _, name := range must(m.List(dir)) {
			require.False(t, must(m.Stat(dir+"/"+name)).Dir, "operation %d: %s is left", n, name)
		}
	}
}

func importSome(fsys vfs.FS) error {
	imp, err := engine.ImportOn(fsys, dir, "t", nil, make([]engine.Offset, 2))
	if err != nil {
		return err
	}
	for i := range 200 {
		r := engine.Record{Partition: int32(i % 2), Offset: engine.Offset(i / 2), Key: []byte("k"), Value: fmt.Append(nil, i/2)}
		if err := imp.Add(&r, int64(i)); err != nil {
			return errors.Join(err, imp.Abort())
		}
	}
	return imp.Close()
}
