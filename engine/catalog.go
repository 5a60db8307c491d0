package engine

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/segment/vfs"
)

// catalog is the directory of an engine with durable topics:
//
//	LOCK                       one engine at a time
//	catalog                    which durable topics and groups there are, and what they are like
//	<topic id>/<partition>     the files of one partition: see package disk
//	<topic id>/positions       where its named subscriptions are
//	group-<id>                 where a group is
//	*-salvaged-<n>             a partition that takes the place of a damaged one, which stays
//	*-damaged-<n>              what was in a file of positions that a salvage has replaced
//
// The catalog is one file that is replaced as a whole (storage.WriteFile), so after a crash it is as before or after a change.
// What it does not name does not exist. The order of changes sees to it that nothing it names is missing, and that nothing is
// removed that it names:
//
//	create, grow   note that partitions are being made; make them; note that they are there
//	delete         note that the topic is gone; remove its files; forget it
//
// Open finishes what a crash has left half done: partitions that were being made are removed, no publisher has had them yet;
// and so are the files of topics and groups that are gone.
type catalog struct {
	// Immutable.
	fs       vfs.FS
	dir      string
	readOnly bool
	lock     io.Closer

	mu     sync.Mutex
	now    catalogFile // under mu: what the file says
	serial uint64      // under mu: of the last group that was made
}

// catalogFile is what is in the file.
type catalogFile struct {
	Topics  []*topicEntry
	Groups  []*groupEntry
	Deleted []*topicEntry // whose files are to be removed
	Serial  uint64        // of the last group
}

// topicEntry is a durable topic. Entries are not changed once they are in the catalog.
type topicEntry struct {
	Name       string
	ID         string
	Partitions int
	Making     int `json:",omitempty"` // so many partitions were to be made
	Config     topicSettings
	Dirs       map[int]string `json:",omitempty"` // directories of partitions that were salvaged
}

// topicSettings is a TopicConfig in the file.
type topicSettings struct {
	MaxBytes, MaxRecords int64
	MaxAge               time.Duration
	OnFull               uint8
	MaxRecordBytes       int
	SegmentBytes         int
	SegmentRecords       int
	HandoverSlots        int
	Partitioner          string
	Sync                 uint8
	Interval             time.Duration `json:",omitempty"`
	FileBytes            int64
	First                uint64 `json:",omitempty"`
}

// groupEntry is a group of durable topics.
type groupEntry struct {
	Name   string
	Serial uint64 // names its file
	Config groupSettings
}

// groupSettings is a GroupConfig in the file. Functions are not kept.
type groupSettings struct {
	Topics             []string
	Kind               GroupKind
	Start              startSettings
	Mode               Mode
	AckWait            []time.Duration `json:",omitempty"`
	MaxInFlight        int             `json:",omitempty"`
	Backoff            []time.Duration
	MaxDeliveries      int
	DeadLetter         string `json:",omitempty"`
	DeadLetterRejected bool   `json:",omitempty"`
	Assignor           Assignor
	RevokeTimeout      time.Duration
	ProgressTimeout    time.Duration
	Grace              time.Duration
	ExpireAfter        time.Duration
	NonGating          bool      `json:",omitempty"`
	Gap                GapPolicy `json:",omitempty"`
}

type startSettings struct {
	Kind startKind
	N    int64 `json:",omitempty"`
}

const (
	catalogName   = "catalog"
	lockName      = "LOCK"
	positionsName = "positions"
	groupPrefix   = "group-"
)

// openCatalog opens the directory, or makes it.
func openCatalog(fsys vfs.FS, dir string, readOnly bool) (*catalog, error) {
	c := &catalog{fs: fsys, dir: dir, readOnly: readOnly}
	if !readOnly {
		if err := vfs.MkdirAll(fsys, dir); err != nil {
			return nil, err
		}
		lock, err := fsys.Lock(c.path(lockName))
		if err != nil {
			if errors.Is(err, vfs.ErrLocked) {
				err = fmt.Errorf("%w: %s: %w", ErrLocked, dir, err)
			}
			return nil, err
		}
		c.lock = lock
	}
	err := storage.ReadFile(fsys, c.path(catalogName), &c.now)
	if errors.Is(err, fs.ErrNotExist) && !readOnly {
		err = c.begin()
	}
	if err != nil {
		_ = c.close()
		return nil, err
	}
	return c, nil
}

// begin makes the catalog of a new directory. One with topics in it has lost its catalog.
func (c *catalog) begin() error {
	names, err := c.fs.List(c.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if id, err := hex.DecodeString(name); err == nil && len(id) == len(TopicID{}) {
			return fmt.Errorf("%w: %s has topics and no catalog", ErrCorrupt, c.dir)
		}
	}
	return c.write(&c.now)
}

func (c *catalog) close() error {
	if c.lock == nil {
		return nil
	}
	return c.lock.Close()
}

func (c *catalog) path(name string) string { return filepath.Join(c.dir, name) }

func (c *catalog) write(f *catalogFile) error {
	if err := storage.WriteFile(c.fs, c.path(catalogName), f); err != nil {
		return storage.Opening(err)
	}
	return nil
}

// change makes a change safe, or nothing has changed as far as this process knows.
func (c *catalog) change(f func(*catalogFile)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readOnly {
		return ErrReadOnly
	}
	n := c.now
	n.Topics, n.Groups, n.Deleted = slices.Clone(n.Topics), slices.Clone(n.Groups), slices.Clone(n.Deleted)
	f(&n)
	if err := c.write(&n); err != nil {
		return err
	}
	c.now = n
	return nil
}

// put makes e the entry of its topic.
func (f *catalogFile) put(e *topicEntry) {
	f.Topics = append(slices.DeleteFunc(f.Topics, e.same), e)
	slices.SortFunc(f.Topics, func(a, b *topicEntry) int { return cmp.Compare(a.Name, b.Name) })
}

// drop makes e a topic that is gone, and forget one that never was.
func (f *catalogFile) drop(e *topicEntry) {
	f.Topics = slices.DeleteFunc(f.Topics, e.same)
	f.Deleted = append(f.Deleted, e)
}

func (f *catalogFile) forget(e *topicEntry) { f.Deleted = slices.DeleteFunc(f.Deleted, e.same) }

func (e *topicEntry) same(other *topicEntry) bool { return e.ID == other.ID }

// topic returns the entry of a topic as it is now.
func (c *catalog) topic(id string) *topicEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.now.Topics {
		if e.ID == id {
			return e
		}
	}
	return nil
}

// topics returns the entries as they are now.
func (c *catalog) topics() []*topicEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Topics
}

// with returns a copy of e that was changed.
func (e *topicEntry) with(f func(*topicEntry)) *topicEntry {
	n := *e
	n.Dirs = maps.Clone(e.Dirs)
	f(&n)
	return &n
}

// partitionDir returns the directory of a partition.
func (c *catalog) partitionDir(e *topicEntry, i int) string {
	if name, ok := e.Dirs[i]; ok {
		return filepath.Join(c.dir, e.ID, name)
	}
	return filepath.Join(c.dir, e.ID, fmt.Sprintf("%05d", i))
}

func (c *catalog) positionsFile(id TopicID) string {
	return filepath.Join(c.dir, id.String(), positionsName)
}

func (c *catalog) groupFile(serial uint64) string {
	return c.path(groupPrefix + strconv.FormatUint(serial, 10))
}

// settings returns c for the file.
func (c *TopicConfig) settings() topicSettings {
	s := topicSettings{
		MaxBytes:       c.Retention.MaxBytes,
		MaxRecords:     c.Retention.MaxRecords,
		MaxAge:         c.Retention.MaxAge,
		OnFull:         uint8(c.OnFull),
		MaxRecordBytes: c.MaxRecordBytes,
		SegmentBytes:   c.SegmentBytes,
		SegmentRecords: c.SegmentRecords,
		HandoverSlots:  c.HandoverSlots,
		Partitioner:    "custom",
		Sync:           uint8(c.Durable.Sync.policy),
		Interval:       c.Durable.Sync.interval,
		FileBytes:      c.Durable.FileBytes,
		First:          c.first,
	}
	switch c.Partitioner.(type) {
	case *byKey:
		s.Partitioner = "key"
	case *roundRobin:
		s.Partitioner = "round-robin"
	case explicit:
		s.Partitioner = "explicit"
	}
	return s
}

// config is the inverse. custom is the user's partitioner for the topic, or nil.
func (s *topicSettings) config(name string, partitions int, custom Partitioner) (TopicConfig, error) {
	c := TopicConfig{
		Partitions:     partitions,
		Retention:      Retention{MaxBytes: s.MaxBytes, MaxRecords: s.MaxRecords, MaxAge: s.MaxAge},
		OnFull:         OnFull(s.OnFull),
		MaxRecordBytes: s.MaxRecordBytes,
		SegmentBytes:   s.SegmentBytes,
		SegmentRecords: s.SegmentRecords,
		HandoverSlots:  s.HandoverSlots,
		Durable:        &Durable{Sync: Sync{storage.Policy(s.Sync), s.Interval}, FileBytes: s.FileBytes},
		first:          s.First,
	}
	switch s.Partitioner {
	case "key":
		c.Partitioner = ByKey()
	case "round-robin":
		c.Partitioner = RoundRobin()
	case "explicit":
		c.Partitioner = Explicit()
	case "custom":
		c.Partitioner = custom
		if custom == nil {
			c.Partitioner = PartitionerFunc(func(*Record, int) int {
				panic(fmt.Sprintf("topic %s has a Partitioner of yours: it has to be in Config.Partitioners", name))
			})
		}
	default:
		return c, fmt.Errorf("%w: partitioner %q of topic %s", ErrCorrupt, s.Partitioner, name)
	}
	if s.Sync > uint8(storage.Never) {
		return c, fmt.Errorf("%w: sync policy %d of topic %s", ErrCorrupt, s.Sync, name)
	}
	return c, nil
}

// settings returns c for the file.
func (c *GroupConfig) settings() groupSettings {
	return groupSettings{
		Topics: c.Topics, Kind: c.Kind, Start: startSettings{c.Start.kind, c.Start.n}, Mode: c.Mode,
		AckWait: c.Settling.AckWait, MaxInFlight: c.Settling.MaxInFlight, Backoff: c.Backoff, MaxDeliveries: c.MaxDeliveries,
		DeadLetter: c.DeadLetter, DeadLetterRejected: c.DeadLetterRejected, Assignor: c.Assignor,
		RevokeTimeout: c.RevokeTimeout, ProgressTimeout: c.ProgressTimeout, Grace: c.Grace, ExpireAfter: c.ExpireAfter,
		NonGating: c.NonGating, Gap: c.Gap,
	}
}

// config is the inverse.
func (s *groupSettings) config() GroupConfig {
	return GroupConfig{
		Topics: s.Topics, Kind: s.Kind, Start: Start{s.Start.Kind, s.Start.N}, Mode: s.Mode,
		Settling: Settling{AckWait: s.AckWait, MaxInFlight: s.MaxInFlight}, Backoff: s.Backoff, MaxDeliveries: s.MaxDeliveries,
		DeadLetter: s.DeadLetter, DeadLetterRejected: s.DeadLetterRejected, Assignor: s.Assignor,
		RevokeTimeout: s.RevokeTimeout, ProgressTimeout: s.ProgressTimeout, Grace: s.Grace, ExpireAfter: s.ExpireAfter,
		NonGating: s.NonGating, Gap: s.Gap,
	}
}
