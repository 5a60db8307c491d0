package disk

import (
	"bytes"
	"errors"
	"io"
	"math"

	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// chunkBytes is how much is read at once.
const chunkBytes = 256 << 10

// chunks reads a file from front to back through a buffer.
type chunks struct {
	f    vfs.File
	size int64 // where the file ends, or what is to be seen of it
	buf  []byte
	at   int64 // position of buf
}

// get returns n bytes at pos, which must be within size. They are valid until the next call.
func (c *chunks) get(pos int64, n int) ([]byte, error) {
	if pos < c.at || pos+int64(n) > c.at+int64(len(c.buf)) {
		want := int(min(max(int64(n), chunkBytes), c.size-pos))
		if cap(c.buf) < want {
			c.buf = make([]byte, want)
		}
		c.buf, c.at = c.buf[:want], pos
		got, err := c.f.ReadAt(c.buf, pos)
		c.buf = c.buf[:got]
		if got < n {
			if err == nil || errors.Is(err, io.EOF) {
				err = frame.ErrShort
			}
			return nil, err
		}
	}
	return c.buf[pos-c.at:][:n:n], nil
}

// header returns the header of the frame at pos. An error is of package frame, or of the file system.
func (c *chunks) header(seed frame.Seed, pos int64) (frame.Header, error) {
	b, err := c.get(pos, int(min(frame.HeaderBytes, max(c.size-pos, 0))))
	if err != nil {
		return frame.Header{}, err
	}
	return frame.DecodeHeader(b, seed, pos)
}

// frame returns the frame at pos. Its memory is bounded by what is left of the file.
func (c *chunks) frame(seed frame.Seed, pos int64) (frame.Batch, error) {
	h, err := c.header(seed, pos)
	if err != nil {
		return frame.Batch{}, err
	}
	if h.Bytes() > c.size-pos {
		return frame.Batch{Header: h}, frame.ErrShort
	}
	b, err := c.get(pos, int(h.Bytes()))
	if err != nil {
		return frame.Batch{Header: h}, err
	}
	return frame.Decode(b, seed, pos)
}

// damage reports whether an error says that the bytes are wrong, rather than that they could not be read.
func damage(err error) bool {
	return errors.Is(err, frame.ErrShort) || errors.Is(err, frame.ErrMagic) || errors.Is(err, frame.ErrChecksum) ||
		errors.Is(err, frame.ErrFormat) || errors.Is(err, frame.ErrVersion) || errors.Is(err, errOrder)
}

// scan is what is found in a file that is not sealed, beside its frames.
type scan struct {
	bad    error  // what is wrong where the frames end; nil if that is the end of the file, or a seal
	proven uint64 // offsets below this have been safe: some frame says so
	beyond int64  // bytes up to the last one that is not zero after the frames
	read   int64  // bytes read
}

// scanFrames goes through the frames of f, counts them, and looks at what follows. Frames from limit on do not count.
func (l *Log) scanFrames(f *file, in vfs.File, limit uint64) (s scan, err error) {
	c := chunks{f: in}
	if c.size, err = in.Size(); err != nil {
		return s, err
	}
	s.read = c.size
	if !f.temp { // otherwise what comes before is not known to have been safe
		s.proven = f.head.Base
	}
	for f.size < c.size && f.end < limit {
		b, err := c.frame(f.seed, f.size)
		if l.cfg.broken.has(flawNoChecksum) && errors.Is(err, frame.ErrChecksum) && b.Kind != 0 {
			err = nil
		}
		if err == nil && (b.First != f.end || b.Epoch != f.head.Epoch) {
			err = errOrder
		}
		if l.cfg.broken.has(flawSkipFrame) && err != nil && b.Kind == frame.Records {
			err = nil
		}
		if err != nil {
			if !damage(err) {
				return s, err
			}
			s.bad = err
			break
		}
		s.proven = max(s.proven, b.SyncedTo)
		if b.Kind == frame.Seal {
			return s, nil // the crash came before the file was made shorter
		}
		f.add(&b.Header, sumOf(&b))
	}
	err = l.searchBeyond(f, &c, &s)
	return s, err
}

// sumOf returns the sum of the records of a frame, or nil if there is none.
func sumOf(b *frame.Batch) *frame.Sum {
	if b.Kind != frame.Records {
		return nil
	}
	sum, err := b.Sum()
	if err != nil {
		return nil // whoever reads the records finds it
	}
	return &sum
}

// searchBeyond looks at what follows the frames of f, for frames that say that something had been safe.
func (l *Log) searchBeyond(f *file, c *chunks, s *scan) error {
	for pos := f.size; pos < c.size; {
		n := int(min(c.size-pos, chunkBytes))
		b, err := c.get(pos, n)
		if err != nil {
			return err
		}
		if end := len(bytes.TrimRight(b, "\x00")); end > 0 {
			s.beyond = pos + int64(end) - f.size
		}
		for i := 0; ; i++ {
			k := bytes.Index(b[i:], []byte(frame.Magic))
			if k < 0 {
				break
			}
			i += k
			if (pos+int64(i))%frame.Align != 0 || len(b)-i < frame.HeaderBytes {
				continue
			}
			if h, err := frame.DecodeHeader(b[i:], f.seed, pos+int64(i)); err == nil && h.Epoch == f.head.Epoch {
				s.proven = max(s.proven, h.SyncedTo)
			}
		}
		pos += int64(n)
		if pos < c.size {
			pos -= frame.HeaderBytes - frame.Align // a header may lie across
		}
	}
	return nil
}

// loadSeal looks for the seal at the end of a file, and takes from it what the file holds.
func (f *file) loadSeal(in vfs.File) (ok bool, read int64, err error) {
	size, err := in.Size()
	if err != nil {
		return false, 0, err
	}
	tail := make([]byte, min(size, frame.SealBytes))
	if n, err := in.ReadAt(tail, size-int64(len(tail))); n < len(tail) {
		if err == nil || errors.Is(err, io.EOF) {
			return false, int64(n), nil
		}
		return false, 0, err
	}
	read = int64(len(tail))
	pos, ok := frame.FindSeal(tail, size)
	if !ok {
		return false, read, nil
	}
	b, err := frame.Decode(tail[int64(len(tail))-(size-pos):], f.seed, pos)
	if err != nil || b.Kind != frame.Seal || b.Epoch != f.head.Epoch || b.First <= f.head.Base || pos+b.Bytes() != size {
		return false, read, nil
	}
	list, sum, err := b.Index(nil, f.head.Base, pos)
	if err != nil || len(list) == 0 || list[0].Offset != f.head.Base || list[0].Pos != frame.SegmentBytes {
		return false, read, nil
	}
	f.end, f.size, f.index = b.First, pos, index{list: list, every: math.MaxInt64}
	f.time, f.newest, f.sealed = b.Time, b.Newest, true
	if f.summed = sum != nil; f.summed {
		f.sum = *sum
	}
	return true, read, nil
}
