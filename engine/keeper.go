package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/segment/disk"
)

// keeper writes the positions of groups and named subscriptions of durable topics, when they have moved: every now and then, at
// the end, and when somebody waits for it. No position is written that is beyond what is durable of its partition, so what is
// read back lies within the log, unless the disk has lost what it said was safe.
type keeper struct {
	e    *Engine
	stop chan struct{} // closed to end it
	over chan struct{} // closed when its goroutine has ended; nil if there is none

	stalled map[*Partition]bool // whose files are slow, and it has been told; its goroutine's

	mu    sync.Mutex     // held while positions are written, or their files removed
	saved map[string]any // under mu: what each file says
}

// subPositions is the file of a topic: where its named subscriptions are, by partition. Epochs are those of the partitions in which they
// were there: should a partition turn out to have ended before a position, in that epoch, other records are there now.
type subPositions struct {
	Subscriptions map[string][]Offset
	Epochs        []uint64 `json:",omitempty"`
}

// groupPositions is the file of a group: where it is in each of its topics, by ID and partition, and in which epochs.
type groupPositions struct {
	Topics map[string][]Offset
	Epochs map[string][]uint64 `json:",omitempty"`
}

// start begins to write.
func (k *keeper) start(e *Engine) {
	k.e, k.stop = e, make(chan struct{})
	if k.saved == nil {
		k.saved = map[string]any{}
	}
	if e.cfg.ReadOnly {
		return
	}
	k.over, k.stalled = make(chan struct{}), map[*Partition]bool{}
	go k.run()
}

func (k *keeper) run() {
	defer close(k.over)
	every := time.NewTicker(k.e.cfg.PositionsEvery)
	defer every.Stop()
	for failing := false; ; {
		select {
		case <-k.stop:
			return
		case <-every.C:
		}
		k.lookForStalls()
		err := k.saveAll(k.e.all(), k.e.allGroups())
		if err != nil && !failing {
			k.e.log(slog.LevelError, "leat: positions cannot be written", "error", err)
		}
		failing = err != nil
	}
}

// stalledAfter is how long files may take.
const stalledAfter = time.Second

// lookForStalls tells of partitions that have been waiting for their files for long, once each time.
func (k *keeper) lookForStalls() {
	for _, t := range k.e.all() {
		for _, p := range t.made.load() {
			s := p.p.Store()
			if s == nil {
				continue
			}
			switch d := s.Stalled(); {
			case d < stalledAfter:
				delete(k.stalled, p)
			case !k.stalled[p]:
				k.stalled[p] = true
				k.e.log(slog.LevelWarn, "leat: files are slow", "topic", t.name, "partition", p.Index(), "for", d)
				if f := k.e.cfg.Hooks.FilesSlow; f != nil {
					k.e.guard(func() { f(t.name, p.Index(), d) })
				}
			}
		}
	}
	for p := range k.stalled { // topics that have ended
		if p.p.Ended() {
			delete(k.stalled, p)
		}
	}
}

// end writes all for the last time. The engine has nothing going on any more.
func (k *keeper) end() {
	if k.over == nil {
		return
	}
	close(k.stop)
	<-k.over
	if err := k.saveAll(k.e.last, k.e.lastGroups); err != nil {
		k.e.noteClose(fmt.Errorf("leat: writing positions: %w", err))
	}
}

// saveAll writes what has changed.
func (k *keeper) saveAll(topics []*Topic, groups []*Group) (err error) {
	for _, t := range topics {
		err = errors.Join(err, k.saveTopic(t))
	}
	for _, g := range groups {
		err = errors.Join(err, k.saveGroup(g))
	}
	return err
}

// saveTopic writes where the named subscriptions of a topic are.
func (k *keeper) saveTopic(t *Topic) error {
	if t.cfg.Durable == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	all, ok := t.namedPositions()
	if !ok {
		return nil
	}
	return k.save(k.e.catalog.positionsFile(t.id), subPositions{all, t.epochs()}, len(all) == 0)
}

// saveGroup writes where a group is.
func (k *keeper) saveGroup(g *Group) error {
	if g.entry == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	all, ok := g.durablePositions()
	if !ok {
		return nil
	}
	return k.save(k.e.catalog.groupFile(g.entry.Serial), all, false)
}

// save writes a file if that changes it, or if it is not there and there is something to say. The caller holds mu.
func (k *keeper) save(name string, v any, empty bool) error {
	old, known := k.saved[name]
	if known && reflect.DeepEqual(old, v) || !known && empty {
		return nil
	}
	if err := storage.WriteFile(k.e.catalog.fs, name, v); err != nil {
		delete(k.saved, name) // nobody knows what it says
		return err
	}
	k.saved[name] = v
	return nil
}

// namedPositions returns where the named subscriptions are, the living and those that are remembered. It reports false for a
// topic that is deleted.
func (t *Topic) namedPositions() (map[string][]Offset, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(t.cause, ErrTopicDeleted) {
		return nil, false
	}
	all := map[string][]Offset{}
	for id, r := range t.positions {
		all[id] = t.safe(r.at)
	}
	for id, s := range t.subs {
		if s.named {
			all[id] = t.safe(s.positions())
		}
	}
	return all, true
}

// safe returns positions that do not lie beyond what is durable.
func (t *Topic) safe(at []Offset) []Offset {
	parts := t.made.load()
	at = slices.Clone(at)
	for i := range at {
		if i < len(parts) {
			at[i] = min(at[i], parts[i].Durable())
		}
	}
	return at
}

// epochs returns those of the partitions. It is called after the positions have been looked at, which are of these epochs or earlier ones.
func (t *Topic) epochs() (all []uint64) {
	for _, p := range t.made.load() {
		all = append(all, p.p.Store().Files().Epoch())
	}
	return all
}

// endsIn returns where the partitions ended in certain epochs, or end now if that is not known.
func endsIn(files []*disk.Log, epochs []uint64) (at []Offset) {
	for i, l := range files {
		end := l.Next()
		if i < len(epochs) {
			end = l.EndOf(epochs[i])
		}
		at = append(at, Offset(end))
	}
	return at
}

// durablePositions returns where the group is, by topic. It reports false for a group that is deleted.
func (g *Group) durablePositions() (all groupPositions, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if errors.Is(g.cause, ErrGroupDeleted) {
		return all, false
	}
	all = groupPositions{Topics: maps.Clone(g.final), Epochs: map[string][]uint64{}}
	if all.Topics == nil {
		all.Topics = map[string][]Offset{}
	}
	for _, gt := range g.topics {
		id := gt.t.id.String()
		all.Topics[id] = gt.t.safe(gt.positions())
		all.Epochs[id] = gt.t.epochs()
	}
	return all, true
}

// positions returns where the group is in a topic. The caller holds g.mu.
func (gt *groupTopic) positions() []Offset {
	at := make([]Offset, len(gt.parts))
	for i, p := range gt.parts {
		at[i] = p.position()
	}
	return at
}

// commitSync makes the positions of a group safe, as they are now.
func (k *keeper) commitSync(ctx context.Context, g *Group) error {
	if k.e.cfg.ReadOnly {
		return ErrReadOnly
	}
	type need struct {
		store *storage.Log
		upTo  uint64
	}
	var needs []need
	g.mu.Lock()
	for _, p := range g.parts() {
		needs = append(needs, need{p.p.p.Store(), uint64(p.position())})
	}
	g.mu.Unlock()
	for _, n := range needs { // what is committed must not be ahead of what is durable
		if err := n.store.Sync(ctx, n.upTo); err != nil {
			return err
		}
	}
	if err := k.e.enterFiles(); err != nil {
		return err
	}
	saved := make(chan error, 1)
	go func() {
		defer k.e.files.Done()
		saved <- k.saveGroup(g)
	}()
	select {
	case err := <-saved:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// loadPositions reads where the named subscriptions of a topic were, and cuts back what lies beyond the end of the log.
func (e *Engine) loadPositions(name string, id TopicID, files []*kept) (map[string]remembered, error) {
	file, at := e.catalog.positionsFile(id), subPositions{}
	switch err := storage.ReadFile(e.catalog.fs, file, &at); {
	case errors.Is(err, fs.ErrNotExist):
		return map[string]remembered{}, nil
	case e.salvages(err):
		at = subPositions{}
		if err := e.salvagePositions(file, err, at, "topic", name); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	}
	e.keeper.saved[file] = subPositions{maps.Clone(at.Subscriptions), at.Epochs}
	var logs []*disk.Log
	for _, k := range files {
		logs = append(logs, k.store.Files())
	}
	ends := endsIn(logs, at.Epochs)
	all := map[string]remembered{}
	for sub, offs := range at.Subscriptions {
		offs = slices.Clone(offs)
		e.cutBack(name, sub, offs, ends)
		all[sub] = remembered{at: offs}
	}
	return all, nil
}

// cutBack sees to it that no position is beyond the end of its partition, and tells of each that was.
func (e *Engine) cutBack(topic, consumer string, at, ends []Offset) (cut []*TruncatedError) {
	for i, next := range ends[:min(len(at), len(ends))] {
		if at[i] > next {
			cut = append(cut, &TruncatedError{Topic: topic, Partition: i, Committed: at[i], Next: next})
			at[i] = next
		}
	}
	for _, err := range cut {
		e.log(slog.LevelError, "leat: position cut back to the end of the log", "topic", topic, "consumer", consumer, "partition",
			err.Partition, "committed", err.Committed, "next", err.Next)
		if f := e.cfg.Hooks.Truncated; f != nil {
			e.guard(func() { f(topic, consumer, err) })
		}
	}
	return cut
}
