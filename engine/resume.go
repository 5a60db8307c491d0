package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/leatlog/leat/engine/internal/partition"
)

// Resume makes the partitions of a durable topic writable again that are read-only because an operation on a file has failed, if
// the cause has gone: a disk was full, say, and has space again. It looks at the files as Open does and begins new ones. Records
// whose publish ended with ErrIndefinite may become visible by it; visible records that were not durable, and that the disk has
// lost, are written again from memory. Partitions that work are left alone, and a topic in memory has nothing to resume.
//
// The error says for each partition that stays read-only why. If ctx ends, what has been begun goes on.
func (t *Topic) Resume(ctx context.Context) error {
	if t.e.cfg.ReadOnly && t.cfg.Durable != nil {
		return ErrReadOnly
	}
	var errs []error
	for _, p := range t.made.load() {
		if !p.p.ReadOnly() {
			continue
		}
		if err := p.p.Resume(ctx); err != nil {
			errs = append(errs, fmt.Errorf("leat: partition %d: %w", p.Index(), err))
			continue
		}
		t.e.log(slog.LevelInfo, "leat: partition is writable again", "topic", t.name, "partition", p.Index(), "next", p.Next())
	}
	return errors.Join(errs...)
}

// DurableStats is how a partition of a durable topic stands with its files.
type DurableStats struct {
	Durable  Offset // everything below survives a power cut
	Epoch    uint64 // how often the files have been opened or resumed
	Files    int
	Bytes    int64         // what is in the files, without what is only reserved
	Writes   int64         // one for all records that are published together
	Syncs    int64         // those that publishers have waited for
	Stalled  time.Duration // for how long somebody has been waiting for the files; 0 if nobody is
	ReadOnly error         // why it takes no records, or nil
}

// DurableStats returns how the partition stands with its files; the zero value in a topic in memory.
func (p *Partition) DurableStats() DurableStats { return durableStats(p.p) }

func durableStats(p *partition.Partition) DurableStats {
	s := p.Store()
	if s == nil {
		return DurableStats{}
	}
	x := s.Stats()
	return DurableStats{Durable: Offset(x.Durable), Epoch: x.Epoch, Files: x.Files, Bytes: x.Bytes, Writes: x.Writes,
		Syncs: x.Syncs, Stalled: x.Stalled, ReadOnly: p.Unwritable()}
}
