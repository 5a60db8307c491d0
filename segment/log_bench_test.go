package segment_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

// BenchmarkAppend measures one appender with nobody reading, in recycled memory that stays within the hot window of a few
// MiB, published every 256 records. The floor is copying the same bytes to the same kind of memory.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{64, 1024} {
		payload := make([]byte, size)
		run := func(impl string, stage func(l *segment.Log) error) {
			b.Run(fmt.Sprintf("impl=%s/size=%dB", impl, size), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(size))
				l := segment.NewLog(segment.Config{})
				warm(l)
				n := 0
				b.ResetTimer()
				for range b.N {
					if err := stage(l); err != nil {
						b.Fatal(err)
					}
					if n++; n&255 == 0 {
						l.Publish()
						retain(l, 3)
					}
				}
			})
		}
		run("reserve", func(l *segment.Log) error {
			dst, err := l.Reserve(segment.Shape{Key: -1, Value: len(payload)}, 1)
			copy(dst, payload)
			return err
		})
		rec := segment.Record{Value: payload}
		run("append", func(l *segment.Log) error { return l.Append(&rec, 1) })
		keyed := segment.Record{Key: payload[:8], Value: payload[8:], Headers: segment.MakeHeaders(segment.Header{Name: "n"}), Timestamp: 1}
		run("append-all", func(l *segment.Log) error { return l.Append(&keyed, 1) })
		batch := func(impl string, fill func(r *segment.Record, i int)) {
			b.Run(fmt.Sprintf("impl=%s/size=%dB", impl, size), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(size))
				l := segment.NewLog(segment.Config{})
				warm(l)
				batch := make([]segment.Record, 64)
				for i := range batch {
					fill(&batch[i], i)
				}
				b.ResetTimer()
				for n := 0; n < b.N; n += len(batch) {
					if _, err := l.AppendEach(batch, int64(n)); err != nil {
						b.Fatal(err)
					}
					if n&255 == 0 {
						l.Publish()
						retain(l, 3)
					}
				}
			})
		}
		batch("each", func(r *segment.Record, _ int) { r.Value = payload })
		buffer := make([]byte, 64*size)
		batch("each-beside", func(r *segment.Record, i int) { r.Value = buffer[i*size:][:size] })
		batch("each-keyed", func(r *segment.Record, i int) { r.Key, r.Value = payload[:8], payload[8:] })
		b.Run(fmt.Sprintf("impl=floor/size=%dB", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			buf, at := make([]byte, 4<<20), 0
			clear(buf)
			b.ResetTimer()
			for range b.N {
				if at+size > len(buf) {
					at = 0
				}
				copy(buf[at:at+len(payload)], payload)
				at += size
			}
		})
	}
}

// BenchmarkAppendEachLong measures records of a batch that goes over many segments: what one takes must not go by how many come after it.
func BenchmarkAppendEachLong(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			if testing.Short() && n > 10_000 {
				b.Skip("takes long")
			}
			batch, buffer := make([]segment.Record, n), make([]byte, 256*n)
			for i := range batch {
				batch[i].Value = buffer[i*256:][:256]
			}
			l := segment.NewLog(segment.Config{SegmentBytes: 4 << 10})
			b.ResetTimer()
			for done := 0; done < b.N; done += n {
				if _, err := l.AppendEach(batch, 1); err != nil {
					b.Fatal(err)
				}
				l.Publish()
				retain(l, 3)
			}
		})
	}
}

// warm lets the log go round once, so that all its memory has been touched.
func warm(l *segment.Log) {
	for range 6 << 10 {
		l.Append(&segment.Record{Value: make([]byte, 1000)}, 1)
		l.Publish()
		retain(l, 3)
	}
}

// BenchmarkReserve measures the index alone.
func BenchmarkReserve(b *testing.B) {
	b.ReportAllocs()
	l := segment.NewLog(segment.Config{})
	warm(l)
	n := 0
	b.ResetTimer()
	for range b.N {
		if _, err := l.Reserve(segment.Shape{Key: -1, Value: 64}, 1); err != nil {
			b.Fatal(err)
		}
		if n++; n&255 == 0 {
			l.Publish()
			retain(l, 3)
		}
	}
}

// BenchmarkPublish measures a record and its publication, with nobody looking at the committed word.
func BenchmarkPublish(b *testing.B) {
	b.ReportAllocs()
	l := segment.NewLog(segment.Config{})
	rec := segment.Record{Value: make([]byte, 64)}
	warm(l)
	n := 0
	b.ResetTimer()
	for range b.N {
		l.Append(&rec, 1)
		l.Publish()
		if n++; n&255 == 0 {
			retain(l, 3)
		}
	}
}

func fill(b *testing.B, records, size int) *segment.Log {
	l := segment.NewLog(segment.Config{})
	rec := segment.Record{Value: make([]byte, size)}
	for n := range records {
		require.NoError(b, l.Append(&rec, int64(n)))
	}
	require.NoError(b, l.Publish())
	return l
}

var sink byte

// BenchmarkReaderNext walks over a few MiB again and again; touch=yes reads the first byte of each value.
func BenchmarkReaderNext(b *testing.B) {
	for _, size := range []int{64, 1024} {
		for _, touch := range []string{"no", "yes"} {
			b.Run(fmt.Sprintf("size=%dB/touch=%s", size, touch), func(b *testing.B) {
				b.ReportAllocs()
				l := fill(b, 3<<20/size, size)
				r := l.NewReader()
				var rec segment.Record
				b.ResetTimer()
				for range b.N {
					for !r.Next(&rec) {
						if r.Refill() != segment.Ready {
							r.Seek(0)
						}
					}
					if touch == "yes" {
						sink += rec.Value[0]
					}
				}
			})
		}
	}
}

// fillRuns is fill with so many records in each run.
func fillRuns(b *testing.B, records, size, run int) *segment.Log {
	l := segment.NewLog(segment.Config{})
	for n := 0; n < records; n += run {
		var r segment.Reservation
		require.NoError(b, l.ReserveRun(&r, run, run*size, size, int64(n)))
		clear(r.NextRun(run, size))
		require.True(b, l.StageRun(&r))
	}
	require.NoError(b, l.Publish())
	return l
}

// walk benchmarks a way to read records of each size again and again, 256 at a time: what way returns reads some and looks at each. They
// were appended one by one, or in runs.
func walk(b *testing.B, way func(size int) func(r *segment.Reader) int) {
	for _, c := range []struct{ size, run int }{{64, 1}, {64, 16}, {64, 256}, {1024, 1}, {1024, 256}} {
		b.Run(fmt.Sprintf("size=%dB/run=%d", c.size, c.run), func(b *testing.B) {
			b.ReportAllocs()
			r, read := fillRuns(b, 3<<20/c.size, c.size, c.run).NewReader(), way(c.size)
			b.ResetTimer()
			for n := 0; n < b.N; {
				k := read(r)
				if k == 0 && r.Refill() != segment.Ready {
					r.Seek(0)
				}
				n += k
			}
		})
	}
}

// BenchmarkReaderNextEach reads windows of records and looks at each.
func BenchmarkReaderNextEach(b *testing.B) {
	recs := make([]segment.Record, 256)
	walk(b, func(int) func(*segment.Reader) int {
		return func(r *segment.Reader) int {
			n := r.NextEach(recs)
			for i := range recs[:n] {
				sink += recs[i].Value[0]
			}
			return n
		}
	})
}

// BenchmarkReaderNextValues is BenchmarkReaderNextEach for values alone.
func BenchmarkReaderNextValues(b *testing.B) {
	values := make([][]byte, 256)
	walk(b, func(int) func(*segment.Reader) int {
		return func(r *segment.Reader) int {
			n := r.NextValues(values)
			for i := range values[:n] {
				sink += values[i][0]
			}
			return n
		}
	})
}

// BenchmarkReaderNextRun is BenchmarkReaderNextValues for values of one size, as they lie.
func BenchmarkReaderNextRun(b *testing.B) {
	walk(b, func(size int) func(*segment.Reader) int {
		return func(r *segment.Reader) int {
			run, n := r.NextRun(256)
			for i := 0; i < len(run); i += size {
				sink += run[i]
			}
			return n
		}
	})
}

// BenchmarkRefill measures a look that finds nothing new, and a look at a window.
func BenchmarkRefill(b *testing.B) {
	l := fill(b, 100, 64)
	for _, off := range []uint64{100, 50} {
		r := l.NewReader()
		r.Seek(off)
		b.Run(fmt.Sprintf("state=%v", r.Refill()), func(b *testing.B) {
			for range b.N {
				r.Refill()
			}
		})
	}
}

// BenchmarkReadAt reads one record at a random offset among so many.
func BenchmarkReadAt(b *testing.B) {
	for _, records := range []int{100_000, 10_000_000} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			b.ReportAllocs()
			l := fill(b, records, 64)
			offs := make([]uint64, 1<<16)
			for i := range offs {
				offs[i] = rand.Uint64N(uint64(records))
			}
			dst := make([]segment.Record, 1)
			b.ResetTimer()
			for n := range b.N {
				if got, err := l.ReadAt(offs[n&(1<<16-1)], dst); got != 1 || err != nil {
					b.Fatal(got, err)
				}
			}
		})
	}
}

// BenchmarkOffsetAt searches for a random time among 10^6 records.
func BenchmarkOffsetAt(b *testing.B) {
	b.ReportAllocs()
	const records = 1_000_000
	l := fill(b, records, 64)
	b.ResetTimer()
	for n := range b.N {
		at := int64(uint64(n) * 2654435761 % records)
		if got := l.Since(at); got != uint64(at) {
			b.Fatal(got, at)
		}
	}
}
