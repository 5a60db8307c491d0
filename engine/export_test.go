package engine

import (
	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/segment/vfs"
)

// FirstAt returns c for a topic whose partitions begin at that offset, as if so many records had been there before.
func FirstAt(c TopicConfig, off Offset) TopicConfig {
	c.first = uint64(off)
	return c
}

// Coming is SetPartitions up to where publishers do not see the partitions yet; appear does the rest.
func (t *Topic) Coming(n int) (appear func(), err error) {
	t.growing.Lock()
	defer t.growing.Unlock()
	before := t.parts.load()
	parts := t.newPartitions(before, n, nil)
	if err := t.add(parts, len(before)); err != nil {
		return nil, err
	}
	return func() { t.parts.store(parts) }, nil
}

// WithFS returns c with another file system.
func (c Config) WithFS(fsys vfs.FS) Config { c.fs = fsys; return c }

// WithWarm returns c for an engine that reads so many bytes of each partition when it opens, and leaves what is older in the files;
// negative means that it reads all.
func (c Config) WithWarm(bytes int64) Config { c.warm = bytes; return c }

// Cold returns how many segments of the partition are in the files only.
func (p *Partition) Cold() int { return p.p.Log().Cold() }

// SavePositions writes positions now.
func (e *Engine) SavePositions() error { return e.keeper.saveAll(e.all(), e.allGroups()) }

// SavePositionsUnsafely writes positions of groups as if everything was durable.
func (e *Engine) SavePositionsUnsafely() error {
	for _, g := range e.allGroups() {
		all, _ := g.durablePositions()
		g.mu.Lock()
		for _, gt := range g.topics {
			all.Topics[gt.t.id.String()] = gt.positions()
		}
		g.mu.Unlock()
		if err := storage.WriteFile(e.catalog.fs, e.catalog.groupFile(g.entry.Serial), all); err != nil {
			return err
		}
	}
	return nil
}

// InspectOn and ImportOn are Inspect and Import on another file system.
var (
	InspectOn = inspect
	ImportOn  = importInto
)
