package disk_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// BenchmarkWrite measures a batch on its way to the file, with and without a sync, beside the floor: a bare write of as many
// bytes, and a bare fdatasync, into a file of which the space was taken.
func BenchmarkWrite(b *testing.B) {
	for _, syncs := range []bool{true, false} {
		for _, records := range []int{1, 64, 1024} {
			name := fmt.Sprintf("sync=%v/value=256B/batch=%d", syncs, records)
			var batch frame.Builder
			fill := func() {
				batch.Reset(0)
				for range records {
					batch.Add(&frame.Record{Value: make([]byte, 256), Appended: 1})
				}
			}
			fill()
			b.Run("impl=disk/"+name, func(b *testing.B) {
				l, err := disk.Open(filepath.Join(b.TempDir(), "log"), disk.Config{})
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(batch.Bytes())
				b.ReportAllocs()
				trim := uint64(0)
				for b.Loop() {
					first, err := l.Write(&batch)
					if err == nil && syncs {
						_, err = l.Sync()
					}
					if err == nil && first > trim+1<<20 {
						trim = first - 1<<19
						err = l.Trim(trim)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
			})
			b.Run("impl=floor/"+name, func(b *testing.B) {
				f, err := vfs.OS{}.Create(filepath.Join(b.TempDir(), "file"))
				if err == nil {
					err = f.Allocate(64 << 20)
				}
				if err == nil {
					err = f.Sync()
				}
				if err != nil {
					b.Fatal(err)
				}
				buf := make([]byte, batch.Bytes())
				b.SetBytes(batch.Bytes())
				pos := int64(0)
				for b.Loop() {
					if pos+int64(len(buf)) > 64<<20 {
						pos = 0
					}
					_, err := f.WriteAt(buf, pos)
					if err == nil && syncs {
						err = f.Sync()
					}
					if err != nil {
						b.Fatal(err)
					}
					pos += int64(len(buf))
				}
				_ = f.Close()
			})
		}
	}
}

// BenchmarkRead measures reading a log of 64 MiB back, frame by frame, beside a bare read of the file.
func BenchmarkRead(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "log")
	l, err := disk.Open(dir, disk.Config{})
	if err != nil {
		b.Fatal(err)
	}
	var batch frame.Builder
	for range 64 {
		batch.Add(&frame.Record{Value: make([]byte, 256), Appended: 1})
	}
	for len(l.Files()) < 2 {
		if _, err := l.Write(&batch); err != nil {
			b.Fatal(err)
		}
	}
	file := l.Files()[0]
	b.Run("impl=disk", func(b *testing.B) {
		b.SetBytes(file.Bytes)
		for b.Loop() {
			r, err := l.NewReader(0)
			if err != nil {
				b.Fatal(err)
			}
			var rec frame.Record
			for {
				f, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					b.Fatal(err)
				}
				it := f.Records()
				for it.Next(&rec) {
				}
			}
			_ = r.Close()
		}
	})
	b.Run("impl=floor", func(b *testing.B) {
		b.SetBytes(file.Bytes)
		buf := make([]byte, 256<<10)
		for b.Loop() {
			f, err := os.Open(file.Name)
			if err != nil {
				b.Fatal(err)
			}
			for err == nil {
				_, err = f.Read(buf)
			}
			_ = f.Close()
		}
	})
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}
