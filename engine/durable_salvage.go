package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

// What Config.Salvage does. Whatever is damaged stays as it is, under its own name or another one; what takes its place is safe before
// the catalog, or the damaged file's name, says so.

// salvages reports whether an error is one of those that a salvage is for.
func (e *Engine) salvages(err error) bool {
	return errors.Is(err, ErrCorrupt) && e.cfg.Salvage && !e.cfg.ReadOnly
}

// unused returns a name that nothing has: this one with a number behind it.
func (c *catalog) unused(name string) (string, error) {
	for n := 1; ; n++ {
		next := fmt.Sprintf("%s-%d", name, n)
		if _, err := c.fs.Stat(next); errors.Is(err, fs.ErrNotExist) {
			return next, nil
		} else if err != nil {
			return "", err
		}
	}
}

// salvage copies what is sound of a damaged partition into a new directory, and makes that the partition's. The old one stays
// as it is.
func (e *Engine) salvage(entry *topicEntry, id TopicID, i int, c *TopicConfig) (*topicEntry, error) {
	cat := e.catalog
	s := e.storageConfig("", entry.Name, id, i, c, nil)
	from := cat.partitionDir(entry, i)
	to, err := cat.unused(fmt.Sprintf("%s-salvaged", filepath.Join(cat.dir, entry.ID, fmt.Sprintf("%05d", i))))
	if err != nil {
		return entry, err
	}
	done, err := disk.Salvage(from, to, s.Disk)
	if err != nil {
		return entry, storage.Opening(err)
	}
	n := entry.with(func(n *topicEntry) {
		if n.Dirs == nil {
			n.Dirs = map[int]string{}
		}
		n.Dirs[i] = filepath.Base(to)
	})
	if err := cat.change(func(f *catalogFile) { f.put(n) }); err != nil {
		return entry, err
	}
	for _, l := range done.Lost {
		e.log(slog.LevelError, "leat: records lost", "topic", entry.Name, "partition", i, "from", l.From, "to", l.To,
			"file", l.File, "position", l.Pos, "error", l.Err)
	}
	e.log(slog.LevelWarn, "leat: partition salvaged", "topic", entry.Name, "partition", i, "damaged", from, "records", done.Records,
		"first", done.First, "next", done.Next)
	return n, nil
}

// salvagePositions puts other positions into a file that is damaged or missing, and keeps a copy of what is in it. of says whose they
// are.
func (e *Engine) salvagePositions(file string, cause error, positions any, of ...any) error {
	fsys, aside := e.catalog.fs, ""
	b, err := vfs.ReadFile(fsys, file, storage.FileLimit)
	if err == nil {
		if aside, err = e.catalog.unused(file + "-damaged"); err == nil {
			err = vfs.Replace(fsys, aside, b)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := storage.WriteFile(fsys, file, positions); err != nil {
		return err
	}
	e.log(slog.LevelError, "leat: positions lost", append(of, "file", file, "copy", aside, "error", cause)...)
	return nil
}

// firstPositions returns the beginning of each topic for a group that has lost where it was: it gets again what it has had rather than
// miss what it has not.
func (e *Engine) firstPositions(topics []string) groupPositions {
	at := groupPositions{Topics: map[string][]Offset{}, Epochs: map[string][]uint64{}}
	for _, name := range topics {
		t := e.topics[name]
		if t == nil {
			continue // deleted
		}
		id := t.id.String()
		for _, p := range t.made.load() {
			at.Topics[id] = append(at.Topics[id], p.First())
		}
		at.Epochs[id] = t.epochs()
	}
	return at
}
