package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/leatlog/leat/engine/internal/names"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// Importer makes a durable topic of records that another one had: they keep their offsets, timestamps and append times. It has the
// directory to itself until it is closed, and is for one goroutine. The topic is there when Close has returned nil, and not
// before: what a crash leaves is removed by the next Open.
type Importer struct {
	cat    *catalog
	entry  *topicEntry
	parts  []importing
	closed bool
}

// importing is a partition that is being filled.
type importing struct {
	log   *disk.Log
	batch frame.Builder
	next  uint64
}

// importBatch is how many bytes an Importer writes at once.
const importBatch = 1 << 20

// Import begins to make a topic in the directory of an engine, which is made if it is not there, and must not be in use. settings
// are TopicContents.Settings of the topic that the records are of; nil means the defaults. first has the offset of the first record of
// each partition. The errors are those of CreateTopic and of Open.
func Import(dir, name string, settings json.RawMessage, first []Offset) (*Importer, error) {
	return importInto(vfs.OS{}, dir, name, settings, first)
}

func importInto(fsys vfs.FS, dir, name string, settings json.RawMessage, first []Offset) (*Importer, error) {
	if err := names.Check(name); err != nil {
		return nil, fmt.Errorf("%w: topic %w", ErrName, err)
	}
	set := (&TopicConfig{Durable: &Durable{}}).settings()
	set.Partitioner = "key"
	if settings != nil {
		if err := json.Unmarshal(settings, &set); err != nil {
			return nil, configError("settings: %v", err)
		}
	}
	c, err := set.config(name, len(first), nil)
	if err != nil {
		return nil, configError("settings: %v", err)
	}
	if len(first) == 0 {
		return nil, configError("a topic without partitions")
	}
	if c, err = c.withDefaults(0); err != nil {
		return nil, err
	}
	c.first = 0
	set = c.settings() // with the defaults
	for p, off := range first {
		if off < 0 {
			return nil, configError("partition %d begins at %d", p, off)
		}
	}
	cat, err := openCatalog(fsys, dir, false)
	if err != nil {
		return nil, err
	}
	for _, other := range cat.now.Topics {
		if other.Name == name {
			return nil, errors.Join(fmt.Errorf("%w: %s", ErrTopicExists, name), cat.close())
		}
	}
	id := newTopicID()
	i := &Importer{cat: cat, entry: &topicEntry{Name: name, ID: id.String(), Config: set}}
	i.entry = i.entry.with(func(n *topicEntry) { n.Making = len(first) })
	if err := i.begin(id, first, c); err != nil {
		return nil, errors.Join(err, i.Abort())
	}
	return i, nil
}

// begin makes the files.
func (i *Importer) begin(id TopicID, first []Offset, c TopicConfig) error {
	if err := i.cat.change(func(f *catalogFile) { f.put(i.entry) }); err != nil {
		return err
	}
	if err := i.cat.fs.Mkdir(filepath.Join(i.cat.dir, i.entry.ID)); err != nil {
		return err
	}
	if err := i.cat.fs.SyncDir(i.cat.dir); err != nil {
		return err
	}
	for p, off := range first {
		c.first = uint64(off)
		l, err := disk.Open(i.cat.partitionDir(i.entry, p), i.cat.diskConfig(id, p, &c))
		if err != nil {
			return err
		}
		i.parts = append(i.parts, importing{log: l, next: uint64(off)})
	}
	return nil
}

// Add adds a record to r.Partition; its Offset must be the next one there. appended is when it was appended, in ns since the Unix
// epoch, and a Timestamp of 0 means that it had none of its own. After an error there is only Abort.
func (i *Importer) Add(r *Record, appended int64) error {
	if i.closed {
		return ErrClosed
	}
	if r.Partition < 0 || int(r.Partition) >= len(i.parts) {
		return fmt.Errorf("%w: %d of a topic with %d", ErrUnknownPartition, r.Partition, len(i.parts))
	}
	p := &i.parts[r.Partition]
	if uint64(r.Offset) != p.next {
		return fmt.Errorf("leat: partition %d: offset %d comes after %d", r.Partition, r.Offset, int64(p.next)-1)
	}
	if !disk.Add(&p.batch, r, appended) {
		if err := p.write(); err != nil {
			return err
		}
		if !disk.Add(&p.batch, r, appended) {
			return ErrTooLarge
		}
	}
	p.next++
	if p.batch.Bytes() < importBatch {
		return nil
	}
	return p.write()
}

// write writes what has been added.
func (p *importing) write() error {
	if p.batch.Count() == 0 {
		return nil
	}
	_, err := p.log.Write(&p.batch)
	p.batch.Reset(2 * importBatch)
	return err
}

// Close makes the topic, and gives the directory back. If it fails there is no topic.
func (i *Importer) Close() error {
	if i.closed {
		return nil
	}
	for p := range i.parts {
		if err := errors.Join(i.parts[p].write(), i.parts[p].log.Close()); err != nil {
			return errors.Join(err, i.Abort())
		}
	}
	there := i.entry.with(func(n *topicEntry) { n.Partitions, n.Making = n.Making, 0 })
	if err := i.cat.change(func(f *catalogFile) { f.put(there) }); err != nil {
		return errors.Join(err, i.Abort())
	}
	i.closed = true
	return i.cat.close()
}

// Abort removes what there is so far, and gives the directory back. After Close it does nothing.
func (i *Importer) Abort() error {
	if i.closed {
		return nil
	}
	i.closed = true
	var err error
	for _, p := range i.parts {
		err = errors.Join(err, p.log.Abandon())
	}
	if err == nil {
		err = i.cat.change(func(f *catalogFile) { f.drop(i.entry) })
	}
	if err == nil {
		err = i.cat.removeTopic(i.entry)
	}
	return errors.Join(err, i.cat.close())
}
