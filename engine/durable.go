package engine

import (
	"fmt"
	"time"

	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/segment/disk"
)

// Durable says that a topic keeps its records in files, in Config.Dir, and how. The zero value is the safest: Always. Reading is
// from memory, as from any other topic, and Retention bounds memory and files alike; files go as a whole, so there is up to
// one more of each partition.
//
// Open reads the newest 16 MiB of each partition. What is older comes into memory when somebody reads it, and stays there until it is
// dropped: who reads it waits for the disk, and gets a *LoadError if that fails. Config.MaxMemory counts it from Open on.
//
// Two words are never mixed. A record is committed when readers see it. It is durable when it survives a power cut.
type Durable struct {
	// Sync says which of the two comes first, and by how much they may be apart.
	Sync Sync

	// FileBytes is how large a file gets, and how much space is taken for it at once. 0 means an eighth of MaxBytes, between
	// 1 MiB and 64 MiB, or 16 MiB without MaxBytes. A larger batch gets a file of its own.
	FileBytes int64

	_ struct{}
}

// Sync says when records become durable. It is Always, Never, or what Interval returns.
type Sync struct {
	policy   storage.Policy
	interval time.Duration
}

var (
	// Always makes a record durable before anybody sees it and before its publisher is told. All publishers that wait share one
	// sync of the file. What is lost by a crash was never acknowledged. The default.
	Always = Sync{}

	// Never leaves it to the operating system when records become durable, and to Flush. A record that is acknowledged survives
	// the end of the process, and not a power cut.
	Never = Sync{policy: storage.Never}
)

// Interval makes records durable at the latest so long after they were acknowledged, plus the time that a sync takes, beside
// the publishers. They survive the end of the process at once.
func Interval(d time.Duration) Sync { return Sync{policy: storage.Every, interval: d} }

// String says which it is.
func (s Sync) String() string {
	switch s.policy {
	case storage.Always:
		return "always"
	case storage.Never:
		return "never"
	}
	return fmt.Sprintf("interval %v", s.interval)
}

// withDefaults returns a copy with every zero field set, or what is wrong with it.
func (d *Durable) withDefaults(c *TopicConfig) (*Durable, error) {
	if d == nil {
		return nil, nil
	}
	n := *d
	switch {
	case n.Sync.policy == storage.Every && n.Sync.interval <= 0:
		return nil, configError("the interval of Sync is %v", n.Sync.interval)
	case n.FileBytes != 0 && (n.FileBytes < disk.MinSegmentBytes || n.FileBytes > disk.MaxSegmentBytes):
		return nil, configError("FileBytes is %d, not %d to %d", n.FileBytes, disk.MinSegmentBytes, int64(disk.MaxSegmentBytes))
	}
	if n.FileBytes == 0 {
		n.FileBytes = anyFileBytes
		if c.Retention.MaxBytes > 0 {
			n.FileBytes = min(max(c.Retention.MaxBytes/8, minFileBytes), maxFileBytes)
		}
	}
	return &n, nil
}

const (
	minFileBytes = 1 << 20
	maxFileBytes = 64 << 20
	anyFileBytes = 16 << 20 // without a bound of bytes
)
