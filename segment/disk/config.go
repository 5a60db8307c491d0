package disk

import (
	"fmt"
	"time"

	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

const (
	// DefaultSegmentBytes is the size of a file if the config does not say.
	DefaultSegmentBytes = 64 << 20

	// MinSegmentBytes is the least size of a file: it leaves room for a frame or two.
	MinSegmentBytes = 4 << 10

	// MaxSegmentBytes is the largest size of a file.
	MaxSegmentBytes = 1 << 40
)

// Config says what log is meant. The zero value is a log of the operating system's files that belongs to topic 0, partition 0.
type Config struct {
	// FS is where the files are. Nil means vfs.OS.
	FS vfs.FS

	// Topic and Partition say to what the log belongs. They are written into each file, and files of something else are
	// refused. Opened for reading only, a log of any topic and partition is read if Topic is zero.
	Topic     frame.ID
	Partition int32

	// First is the offset of the first record of a log that is not there yet. It is at most frame.MaxOffset.
	First uint64

	// SegmentBytes is how large files get, and how much space is taken for each at once; a batch that is larger gets a file for
	// itself. 0 means DefaultSegmentBytes.
	SegmentBytes int64

	// ReadOnly says to look and to change nothing: no lock is taken, nothing is cut, and damage is told by Recovery instead of
	// being an error of Open. It may be used while the log is open elsewhere, and shows it as it was.
	ReadOnly bool

	// Existing says that there must be a log already: if there is none, not even the rest of an attempt to make one, that is damage.
	Existing bool

	// NoLock says that the caller holds a lock that keeps others out of the directory.
	NoLock bool

	// Now is the clock for the time at which files were made, in ns since the Unix epoch. Nil means the system's.
	Now func() int64

	// Behind has the rest of a roll run, on another goroutine and soon: Write goes on in the next file meanwhile, instead of waiting
	// until the one that is full has been sealed. Sync, Close, the next roll, and a Trim that needs it do it themselves if they come first.
	// Nil means that Write does it.
	Behind func(rest func())

	// epoch is what the epochs of a log that is not there yet begin after.
	epoch uint64

	// broken makes the log wrong on purpose, for tests of the tests.
	broken flaw

	_ struct{}
}

// withDefaults returns c with what is not set, or what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	if c.FS == nil {
		c.FS = vfs.OS{}
	}
	if c.SegmentBytes == 0 {
		c.SegmentBytes = DefaultSegmentBytes
	}
	if c.Now == nil {
		c.Now = func() int64 { return time.Now().UnixNano() }
	}
	if c.SegmentBytes < MinSegmentBytes || c.SegmentBytes > MaxSegmentBytes {
		return c, fmt.Errorf("disk: SegmentBytes is %d: it must be from %d to %d", c.SegmentBytes, MinSegmentBytes, int64(MaxSegmentBytes))
	}
	if c.First > frame.MaxOffset {
		return c, fmt.Errorf("disk: First is %d: it must be at most %d", c.First, uint64(frame.MaxOffset))
	}
	return c, nil
}
