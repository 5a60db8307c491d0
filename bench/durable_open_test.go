package bench_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

var (
	openGiB   = flag.Int("open.gib", 0, "of how many GiB TestDurableOpen measures an Open")
	openBytes = flag.Int("open.bytes", 1024, "how large its records are")
	openAll   = flag.Bool("open.all", false, "to read all records in the end, which brings them all into memory")
	openDir   = flag.String("open.dir", "", "where its files are made, and left; empty means the tests' temporary directory")
)

// TestDurableOpen prints what an Open of one partition of that size takes after it was closed properly: until it returns, how much it
// has read (the heads and ends of the files, and the newest records) and keeps; then the first record of all, one in the middle, a
// search by time, and with -open.all all records one after the other, which needs as much memory. Each time is that of one run; the system's memory may have all of the
// files, unless there is less of it than of them, or it is dropped between making and opening them (-open.dir, two runs). It asserts
// nothing about times.
//
//	go test ./bench -run 'TestDurableOpen$' -open.gib 10 -open.all -open.dir /where/there/is/room -v
func TestDurableOpen(t *testing.T) {
	if *openGiB == 0 {
		t.Log("give -open.gib to measure")
		return
	}
	dir := *openDir
	if dir == "" {
		dir = t.TempDir()
	}
	dir = filepath.Join(dir, "data")
	size := int64(*openGiB) << 30
	if _, err := os.Stat(dir); err != nil {
		makeFiles(t, dir, size, *openBytes)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "00000", "*.leat"))
	require.NoError(t, err)
	before := readBytes()
	var e *engine.Engine
	took := clocked(func() { e, err = engine.Open(engine.Config{Dir: dir}) })
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	read := readBytes() - before
	top, err := e.Topic("t")
	require.NoError(t, err)
	p, err := top.Partition(0)
	require.NoError(t, err)
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	fmt.Printf("%d GiB, %d records, %d files: open %v, %.1f MB read, %.1f MB in memory\n", *openGiB, p.Next()-p.First(), len(files), took,
		float64(read)/1e6, float64(mem.HeapAlloc)/1e6)

	one := make([]engine.Record, 1)
	at := func(off engine.Offset) time.Duration {
		return clocked(func() {
			n, err := p.ReadAt(off, one)
			require.NoError(t, err)
			require.Equal(t, 1, n)
		})
	}
	newest := at(p.Next() - 1)
	first := at(p.First())
	middle := (p.First() + p.Next()) / 2
	half := at(middle)
	when := time.Unix(0, one[0].Timestamp)
	var r *engine.Reader
	search := clocked(func() { r, err = p.Reader(engine.ReaderConfig{Start: engine.Since(when)}) })
	require.NoError(t, err)
	r.Close()
	fmt.Printf("newest record %v, first %v, middle %v, search by time %v\n", newest, first, half, search)

	if !*openAll {
		return
	}
	records, bytes := 0, int64(0)
	all := clocked(func() {
		for _, rec := range p.Records(p.First()) {
			records++
			bytes += int64(len(rec.Value))
		}
	})
	require.EqualValues(t, p.Next()-p.First(), records)
	fmt.Printf("all %d records: %v, %.2f GB/s\n", records, all, float64(bytes)/1e9/all.Seconds())
}

// makeFiles makes files of a partition of so many bytes of values.
func makeFiles(t *testing.T, dir string, size int64, each int) {
	e, err := engine.Open(engine.Config{Dir: dir})
	require.NoError(t, err)
	c := engine.TopicConfig{Retention: engine.Retention{MaxBytes: engine.Unlimited}, Durable: &engine.Durable{Sync: engine.Never, FileBytes: 64 << 20}}
	top, err := e.CreateTopic("t", c)
	require.NoError(t, err)
	batch := make([]engine.Record, 64)
	for i := range batch {
		batch[i].Value = make([]byte, each)
	}
	began := time.Now()
	for n := int64(0); n < size; n += int64(len(batch) * each) {
		require.NoError(t, top.PublishBatch(context.Background(), batch))
		if n%(1<<30) < int64(len(batch)*each) && n > 0 { // and begin with little memory again
			require.NoError(t, e.Close())
			e, err = engine.Open(engine.Config{Dir: dir})
			require.NoError(t, err)
			top, err = e.Topic("t")
			require.NoError(t, err)
		}
	}
	require.NoError(t, e.Close())
	fmt.Printf("made in %v\n", time.Since(began))
}

// clocked returns how long f takes.
func clocked(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// readBytes returns how many bytes this process has read from files, if the system says it.
func readBytes() (n int64) {
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	_, _ = fmt.Sscanf(string(b), "rchar: %d", &n)
	return n
}
