package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

// durableTopics reports whether a group is kept in the directory: its topics are durable, all of them or none, and so is its
// dead-letter topic.
func (e *Engine) durableTopics(c *GroupConfig, topics []*Topic) (bool, error) {
	if e.catalog == nil {
		return false, nil
	}
	durable := 0
	for _, t := range topics {
		if t.cfg.Durable != nil {
			durable++
		}
	}
	switch {
	case durable == 0:
		return false, nil
	case durable < len(topics):
		return false, configError("of the group's topics some are durable and some are not")
	}
	if c.DeadLetter != "" {
		t, err := e.Topic(c.DeadLetter)
		if err != nil {
			return false, err
		}
		if t.cfg.Durable == nil {
			return false, configError("the group's topics are durable, and DeadLetter is not")
		}
	}
	if e.cfg.ReadOnly {
		return false, ErrReadOnly
	}
	return true, nil
}

// putGroup adds a group, in the place of one of its name that could not be dropped when it was deleted.
func (f *catalogFile) putGroup(e *groupEntry) {
	f.Groups = append(slices.DeleteFunc(f.Groups, func(other *groupEntry) bool { return other.Name == e.Name }), e)
	f.Serial = max(f.Serial, e.Serial)
}

func (f *catalogFile) dropGroup(e *groupEntry) {
	f.Groups = slices.DeleteFunc(f.Groups, func(other *groupEntry) bool { return other.Serial == e.Serial })
}

// newGroupEntry returns the entry of a new group.
func (c *catalog) newGroupEntry(name string, cfg *GroupConfig) *groupEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial = max(c.serial, c.now.Serial) + 1
	return &groupEntry{Name: name, Serial: c.serial, Config: cfg.settings()}
}

// writeGroup makes a new group safe: first its positions, then that it is there.
func (e *Engine) writeGroup(g *Group) error {
	if err := e.enterFiles(); err != nil {
		return err
	}
	defer e.files.Done()
	if err := e.keeper.saveGroup(g); err != nil {
		return err
	}
	return e.catalog.change(func(f *catalogFile) { f.putGroup(g.entry) })
}

// deleteRefusedGroup deletes a group that could not be opened. If there is none the error is the given one.
func (e *Engine) deleteRefusedGroup(name string, err error) error {
	e.mu.Lock()
	refused := e.refusedGroups[name] != nil
	e.mu.Unlock()
	if !refused {
		return err
	}
	e.catalog.mu.Lock()
	entries := e.catalog.now.Groups
	e.catalog.mu.Unlock()
	for _, entry := range entries {
		if entry.Name == name {
			if err := e.forgetGroup(&Group{e: e, name: name, entry: entry}); err != nil {
				return err
			}
		}
	}
	e.mu.Lock()
	delete(e.refusedGroups, name)
	e.mu.Unlock()
	return nil
}

// forgetGroup removes what there is in the directory of a group that has been deleted.
func (e *Engine) forgetGroup(g *Group) error {
	if g.entry == nil {
		return nil
	}
	if err := e.enterFiles(); err != nil {
		return err
	}
	defer e.files.Done()
	if err := e.catalog.change(func(f *catalogFile) { f.dropGroup(g.entry) }); err != nil {
		return err
	}
	e.keeper.mu.Lock()
	defer e.keeper.mu.Unlock()
	name := e.catalog.groupFile(g.entry.Serial)
	delete(e.keeper.saved, name)
	for _, name := range []string{name, name + vfs.TempExt} {
		if err := e.catalog.fs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			e.log(slog.LevelWarn, "leat: file of a deleted group is left", "group", g.name, "file", name, "error", err)
		}
	}
	return nil
}

// removeStrayGroups removes files of groups that the catalog does not name: they were deleted, or never there. What cannot be removed
// is left to the next Open.
func (e *Engine) removeStrayGroups(groups []*groupEntry) {
	known := map[string]bool{}
	for _, entry := range groups {
		known[filepath.Base(e.catalog.groupFile(entry.Serial))] = true
	}
	names, err := e.catalog.fs.List(e.catalog.dir)
	for _, name := range names {
		serial, ours := strings.CutPrefix(strings.TrimSuffix(name, vfs.TempExt), groupPrefix)
		if _, notANumber := strconv.ParseUint(serial, 10, 64); !ours || notANumber != nil || known[name] {
			continue
		}
		err = errors.Join(err, e.catalog.fs.Remove(e.catalog.path(name)))
	}
	if err != nil {
		e.log(slog.LevelWarn, "leat: files of deleted groups are left", "error", err)
	}
}

// restoreGroup brings a group back with its positions.
func (e *Engine) restoreGroup(entry *groupEntry) error {
	if e.groups[entry.Name] != nil { // deleted and made anew when that could not be written
		return fmt.Errorf("%w: two groups of the name", ErrCorrupt)
	}
	c, err := entry.Config.config().withDefaults()
	if err != nil {
		return err
	}
	for _, name := range c.Topics {
		if err := e.refused[name]; err != nil {
			return err
		}
	}
	at, err := e.loadGroupPositions(entry, c.Topics)
	if err != nil {
		return err
	}
	g, err := e.newGroup(entry.Name, c)
	if err != nil {
		return err
	}
	g.entry = entry
	e.groups[entry.Name] = g
	for _, name := range c.Topics {
		t := e.topics[name]
		if t == nil || at.Topics[t.id.String()] == nil {
			continue // deleted, and maybe another one of its name is there
		}
		floors := slices.Clone(at.Topics[t.id.String()])
		g.cut = append(g.cut, e.cutBack(t.name, g.name, floors, endsIn(t.files(), at.Epochs[t.id.String()]))...)
		if err := g.attach(t, floors); err != nil {
			delete(e.groups, entry.Name)
			g.end(err)
			return err
		}
	}
	g.mu.Lock()
	g.emptied()
	g.mu.Unlock()
	g.ready = true
	return nil
}

// loadGroupPositions reads where a group was in its topics.
func (e *Engine) loadGroupPositions(entry *groupEntry, topics []string) (at groupPositions, err error) {
	file := e.catalog.groupFile(entry.Serial)
	err = storage.ReadFile(e.catalog.fs, file, &at)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %s is missing", ErrCorrupt, file)
	}
	if e.salvages(err) {
		at = e.firstPositions(topics)
		err = e.salvagePositions(file, err, at, "group", entry.Name)
	}
	if err == nil {
		e.keeper.saved[file] = at
	}
	return at, err
}

// files returns those of the partitions.
func (t *Topic) files() (all []*disk.Log) {
	for _, p := range t.made.load() {
		all = append(all, p.p.Store().Files())
	}
	return all
}

// truncated returns, once, that the group was cut back, if its members are to know.
func (g *Group) truncated() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.cut) == 0 || g.cfg.Gap != FailOnGap {
		return nil
	}
	var errs []error
	for _, err := range g.cut {
		errs = append(errs, err)
	}
	g.cut = nil
	return errors.Join(errs...)
}
