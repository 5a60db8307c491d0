package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// kept is what a partition of a durable topic has beside its memory.
type kept struct {
	store *storage.Log
	mem   *segment.Log // as it was filled; the partition's once there is one
	part  *partition.Partition
}

// storageConfig says how a partition's records are kept.
func (e *Engine) storageConfig(dir, topic string, id TopicID, i int, c *TopicConfig, k *kept) storage.Config {
	return storage.Config{
		Dir:      dir,
		Disk:     e.catalog.diskConfig(id, i, c),
		Policy:   c.Durable.Sync.policy,
		Interval: c.Durable.Sync.interval,
		Failed: func(err error) { // whoever calls may have the partition's role
			k.part.Broken(err)
			e.spawn(func() { e.filesFailed(topic, i, err) })
		},
	}
}

// diskConfig says how the files of a partition are kept.
func (c *catalog) diskConfig(id TopicID, i int, t *TopicConfig) disk.Config {
	return disk.Config{
		FS:           c.fs,
		Topic:        frame.ID(id),
		Partition:    int32(i),
		First:        t.first,
		SegmentBytes: t.Durable.FileBytes,
		ReadOnly:     c.readOnly,
		NoLock:       true, // there is one for the whole directory
	}
}

// filesFailed tells that a partition has become read-only.
func (e *Engine) filesFailed(topic string, i int, err error) {
	e.log(slog.LevelError, "leat: partition is read-only", "topic", topic, "partition", i, "error", err)
	if f := e.cfg.Hooks.FilesFailed; f != nil {
		e.guard(func() { f(topic, i, err) })
	}
}

// keep opens the files of a partition that is there, or is to be made, and fills a log with what they hold.
func (e *Engine) keep(entry *topicEntry, id TopicID, i int, c *TopicConfig, existing bool) (k *kept, err error) {
	for range mostLooks {
		k, err = e.keepOnce(entry, id, i, c, existing)
		if !e.cfg.ReadOnly || !errors.Is(err, fs.ErrNotExist) {
			break
		}
		// The owner has trimmed it, most likely, and then what there is now can be read.
	}
	return k, err
}

// mostLooks is how often a partition is looked at of which files are missing, if somebody else has it.
const mostLooks = 10

func (e *Engine) keepOnce(entry *topicEntry, id TopicID, i int, c *TopicConfig, existing bool) (*kept, error) {
	k := &kept{}
	s := e.storageConfig(e.catalog.partitionDir(entry, i), entry.Name, id, i, c, k)
	s.Disk.Existing = existing
	var err error
	if k.store, err = storage.Open(s); err != nil {
		return nil, err
	}
	loading := storage.Loading{Log: segment.Config{SegmentBytes: c.SegmentBytes, SegmentRecords: c.SegmentRecords,
		Partition: int32(i), Pool: e.pool}, Warm: e.cfg.warm, SkipLost: e.cfg.Salvage || entry.Dirs[i] != ""}
	loading.RollAfter = int64(c.limits().MaxAge / 4)
	if c.OnFull == DropOldest { // otherwise a record may be there that a group has not read yet
		loading.Over = c.limits().Over
	}
	if k.mem, err = k.store.Load(loading); err != nil {
		return nil, errors.Join(err, k.store.Abandon())
	}
	return k, nil
}

// makeFiles makes the files of the partitions from one on, and says so in the catalog. If it fails nothing of them counts.
func (e *Engine) makeFiles(entry *topicEntry, id TopicID, from, to int, c *TopicConfig) (all []*kept, err error) {
	cat := e.catalog
	making := entry.with(func(n *topicEntry) { n.Making = max(to, entry.Making) })
	if err := cat.change(func(f *catalogFile) { f.put(making) }); err != nil {
		return nil, err
	}
	defer func() {
		if err == nil {
			return
		}
		for _, k := range all {
			_ = k.store.Abandon()
		}
		all = nil
		// They go if the catalog certainly does not name them. Otherwise the next Open removes them, or finds them empty.
		if from > 0 && cat.change(func(f *catalogFile) { f.put(making) }) == nil {
			_ = e.catalog.removePartitions(entry, from, making.Making)
		}
	}()
	if entry.Making > 0 { // left by an attempt that failed, and might be more than are made now
		if err = cat.removePartitions(entry, from, entry.Making); err != nil {
			return nil, err
		}
	}
	top := filepath.Join(cat.dir, entry.ID)
	if err = cat.fs.Mkdir(top); err == nil {
		err = cat.fs.SyncDir(cat.dir)
	}
	for i := from; i < to && err == nil; i++ {
		var k *kept
		if k, err = e.keep(entry, id, i, c, false); err == nil {
			all = append(all, k)
		}
	}
	if err == nil {
		there := entry.with(func(n *topicEntry) { n.Partitions, n.Making = to, 0 })
		err = cat.change(func(f *catalogFile) { f.put(there) })
	}
	return all, err
}

// removePartitions removes the files of partitions.
func (c *catalog) removePartitions(entry *topicEntry, from, to int) error {
	for i := from; i < to; i++ {
		if err := disk.Remove(c.partitionDir(entry, i), c.fs); err != nil {
			return err
		}
	}
	return nil
}

// removeTopic removes the files of a topic that is gone, and forgets it. What else is in its directories stays there.
func (c *catalog) removeTopic(entry *topicEntry) error {
	if err := c.removePartitions(entry, 0, max(entry.Partitions, entry.Making)); err != nil {
		return err
	}
	dir := filepath.Join(c.dir, entry.ID)
	for _, name := range []string{positionsName, positionsName + vfs.TempExt} {
		if err := c.fs.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	names, err := c.fs.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && len(names) == 0 {
		if err := c.fs.Remove(dir); err != nil {
			return err
		}
		// Nobody looks for it any more once it is forgotten, and a file system may make safe that it is before that it has gone.
		if err := c.fs.SyncDir(c.dir); err != nil {
			return err
		}
	}
	return c.change(func(f *catalogFile) { f.forget(entry) })
}

// createDurable makes the files of a new topic, and then the topic. Its name is reserved.
func (e *Engine) createDurable(name string, c TopicConfig) (*Topic, error) {
	id := newTopicID()
	entry := &topicEntry{Name: name, ID: id.String(), Config: c.settings()}
	all, err := e.makeFiles(entry, id, 0, c.Partitions, &c)
	if err != nil {
		gone := entry.with(func(n *topicEntry) { n.Making = c.Partitions })
		if e.catalog.change(func(f *catalogFile) { f.drop(gone) }) == nil {
			_ = e.catalog.removeTopic(gone) // or the next Open does
		}
		return nil, err
	}
	return newTopic(e, name, c, id, all), nil
}

// restore brings back what there was.
func (e *Engine) restore() error {
	cat := e.catalog
	cat.mu.Lock()
	file := cat.now
	cat.mu.Unlock()
	if !cat.readOnly {
		for _, entry := range file.Deleted {
			if err := e.catalog.removeTopic(entry); err != nil {
				return err
			}
		}
	}
	for _, entry := range file.Topics {
		if entry.Making > 0 && !cat.readOnly {
			var err error
			if entry, err = e.unmake(entry); err != nil {
				return err
			}
		}
		if entry == nil || entry.Partitions == 0 {
			continue
		}
		t, err := e.restoreTopic(entry)
		if err != nil {
			e.refused[entry.Name] = fmt.Errorf("leat: topic %s cannot be opened: %w", entry.Name, err)
			e.log(slog.LevelError, "leat: topic cannot be opened", "topic", entry.Name, "id", entry.ID, "error", err)
			continue
		}
		e.topics[entry.Name] = t
	}
	if !cat.readOnly {
		e.removeStrayGroups(file.Groups)
	}
	for _, entry := range file.Groups {
		if err := e.restoreGroup(entry); err != nil {
			e.refusedGroups[entry.Name] = fmt.Errorf("leat: group %s cannot be opened: %w", entry.Name, err)
			e.log(slog.LevelError, "leat: group cannot be opened", "group", entry.Name, "error", err)
		}
	}
	return nil
}

// unmake removes partitions that were being made when the last engine ended: no publisher has had them. It returns the entry of
// what is left, or nil.
func (e *Engine) unmake(entry *topicEntry) (*topicEntry, error) {
	if entry.Partitions == 0 {
		if err := e.catalog.change(func(f *catalogFile) { f.drop(entry) }); err != nil {
			return nil, err
		}
		return nil, e.catalog.removeTopic(entry)
	}
	if err := e.catalog.removePartitions(entry, entry.Partitions, entry.Making); err != nil {
		return nil, err
	}
	n := entry.with(func(n *topicEntry) { n.Making = 0 })
	return n, e.catalog.change(func(f *catalogFile) { f.put(n) })
}

// restoreTopic opens a topic that is in the catalog.
func (e *Engine) restoreTopic(entry *topicEntry) (t *Topic, err error) {
	id, err := parseTopicID(entry.ID)
	if err != nil {
		return nil, err
	}
	c, err := entry.Config.config(entry.Name, entry.Partitions, e.cfg.Partitioners[entry.Name])
	if err != nil {
		return nil, err
	}
	if c, err = c.withDefaults(e.cfg.MaxMemory); err != nil {
		return nil, err
	}
	var all []*kept
	defer func() {
		if err != nil {
			for _, k := range all {
				free(k.mem)
				_ = k.store.Abandon()
			}
		}
	}()
	opened, errs := make([]*kept, entry.Partitions), make([]error, entry.Partitions)
	var wg sync.WaitGroup
	turns := make(chan struct{}, runtime.GOMAXPROCS(0)) // so many at a time
	for i := range opened {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			opened[i], errs[i] = e.keep(entry, id, i, &c, true)
		})
	}
	wg.Wait()
	for _, k := range opened {
		if k != nil {
			all = append(all, k) // to be closed if it fails
		}
	}
	for i := range opened {
		k, err := opened[i], errs[i]
		if e.salvages(err) {
			if entry, err = e.salvage(entry, id, i, &c); err == nil {
				if k, err = e.keep(entry, id, i, &c, true); err == nil {
					all = append(all, k)
				}
			}
		}
		if err != nil {
			return nil, fmt.Errorf("partition %d: %w", i, err)
		}
		opened[i] = k
	}
	positions, err := e.loadPositions(entry.Name, id, opened)
	if err != nil {
		return nil, err
	}
	t = newTopic(e, entry.Name, c, id, opened)
	t.positions = positions
	for i, k := range opened {
		if files := k.store.Files().First(); k.mem.First() > files {
			e.log(slog.LevelWarn, "leat: what the files hold does not fit the limits of memory: it begins later", "topic", entry.Name,
				"partition", i, "files", files, "memory", k.mem.First())
		}
		if r := k.store.Files().Recovery(); r.Cut != nil {
			e.log(slog.LevelWarn, "leat: torn end cut off", "topic", entry.Name, "partition", i, "file", r.Cut.File,
				"position", r.Cut.Pos, "bytes", r.Cut.Bytes, "next", r.Next)
		}
	}
	return t, nil
}

// free gives the memory of a log back that nobody has seen.
func free(mem *segment.Log) {
	for mem.DropOldest() {
	}
}

// closeFiles closes the files of a topic that has ended, or removes them if it was deleted.
func (t *Topic) closeFiles(cause error) {
	if t.cfg.Durable == nil {
		return
	}
	e := t.e
	deleted := errors.Is(cause, ErrTopicDeleted)
	for _, p := range t.made.load() {
		var err error
		switch s := p.p.Store(); {
		case s == nil:
		case deleted || e.cfg.ReadOnly:
			err = s.Abandon()
		default:
			err = s.Close()
		}
		if err != nil {
			e.noteClose(fmt.Errorf("leat: closing topic %s, partition %d: %w", t.name, p.Index(), err))
		}
	}
}

// noteClose notes what went wrong with files at the end; Close returns it.
func (e *Engine) noteClose(err error) {
	e.mu.Lock()
	e.closeErr = errors.Join(e.closeErr, err)
	e.mu.Unlock()
	e.log(slog.LevelError, "leat: closing files failed", "error", err)
}
