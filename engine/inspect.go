package engine

import (
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/segment/vfs"
)

// Contents is what the directory of an engine says about itself: see Inspect.
type Contents struct {
	Topics []TopicContents // by name
	Groups []GroupContents
}

// TopicContents is a durable topic in a directory.
type TopicContents struct {
	Name string
	ID   TopicID

	// Config is what it was created with, and Partitions how many there are now. A Partitioner of the user's is not kept; the one
	// that is in its place panics.
	Config TopicConfig

	// Settings is Config as the directory keeps it, for Import.
	Settings json.RawMessage

	// Dirs are the directories of the partitions, which disk.Open opens.
	Dirs []string

	// Salvaged says that one of them was made by Config.Salvage, so that offsets may be missing in it.
	Salvaged bool

	// Subscriptions are the positions of named subscriptions, by partition.
	Subscriptions map[string][]Offset

	// Err says why Subscriptions could not be read.
	Err error

	_ struct{}
}

// GroupContents is a group in a directory.
type GroupContents struct {
	Name   string
	Config GroupConfig

	// Positions is where it is, by topic and partition.
	Positions map[string][]Offset

	// Err says why they could not be read.
	Err error

	_ struct{}
}

// Inspect says what there is in Config.Dir of an engine, and reads no record. It changes nothing, takes no lock, and may be called
// while an engine has the directory; it then tells what is in the files, which is behind that engine. It is for tools: see
// cmd/leatdump. The error is ErrCorrupt, fs.ErrNotExist, or another one of the file system.
func Inspect(dir string) (*Contents, error) { return inspect(vfs.OS{}, dir) }

func inspect(fsys vfs.FS, dir string) (*Contents, error) {
	cat, err := openCatalog(fsys, dir, true)
	if err != nil {
		return nil, err
	}
	all, names := &Contents{}, map[string]string{}
	for _, entry := range cat.now.Topics {
		if entry.Partitions == 0 {
			continue // it was being made
		}
		t, err := cat.inspectTopic(entry)
		if err != nil {
			return nil, err
		}
		names[entry.ID] = entry.Name
		all.Topics = append(all.Topics, t)
	}
	for _, entry := range cat.now.Groups {
		g := GroupContents{Name: entry.Name, Config: entry.Config.config(), Positions: map[string][]Offset{}}
		var at groupPositions
		g.Err = storage.ReadFile(fsys, cat.groupFile(entry.Serial), &at)
		for id, offs := range at.Topics {
			if name, ok := names[id]; ok {
				g.Positions[name] = offs
			}
		}
		all.Groups = append(all.Groups, g)
	}
	return all, nil
}

// inspectTopic says what there is of one topic.
func (c *catalog) inspectTopic(entry *topicEntry) (t TopicContents, err error) {
	t.Name = entry.Name
	if t.ID, err = parseTopicID(entry.ID); err != nil {
		return t, err
	}
	if t.Config, err = entry.Config.config(entry.Name, entry.Partitions, nil); err != nil {
		return t, err
	}
	if t.Settings, err = json.Marshal(entry.Config); err != nil {
		return t, err
	}
	for i := range entry.Partitions {
		t.Dirs = append(t.Dirs, c.partitionDir(entry, i))
	}
	t.Salvaged = len(entry.Dirs) > 0
	var at subPositions
	if t.Err = storage.ReadFile(c.fs, c.positionsFile(t.ID), &at); errors.Is(t.Err, fs.ErrNotExist) {
		t.Err = nil // none has a name
	}
	t.Subscriptions = at.Subscriptions
	return t, nil
}
