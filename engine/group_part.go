package engine

import (
	"fmt"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/group"
	"github.com/leatlog/leat/engine/internal/partition"
)

// groupTopic is a topic of a group.
type groupTopic struct {
	t     *Topic
	parts []*groupPart
}

// groupPart is one partition of a group.
type groupPart struct {
	g  *Group
	at group.Partition
	p  *Partition

	// Under g.mu.
	gate   *partition.Gate // while the group has members
	floor  uint64          // the position, while nobody owns the partition
	seated bool            // the one who had the partition last had a seat: then the share knows the position
	tried  int             // how often the record there has been delivered, if a lane has done so
	share  *delivery.Share // of a shared group, and once a seat has had the partition
	owner  *claim          // who has the partition; nil of a shared group
}

// close ends what the group has in a partition that is gone. The caller holds g.mu.
func (p *groupPart) close(cause error) {
	if p.share != nil {
		p.share.Close(cause)
	}
	p.removeGate()
}

// part returns a partition of the group, or nil. The caller holds mu.
func (g *Group) part(at group.Partition) *groupPart {
	if gt := g.topics[at.Topic]; gt != nil && at.Index >= 0 && at.Index < len(gt.parts) {
		return gt.parts[at.Index]
	}
	return nil
}

// parts returns all partitions of the group in order. The caller holds mu.
func (g *Group) parts() []*groupPart {
	var all []*groupPart
	for _, name := range g.cfg.Topics {
		if gt := g.topics[name]; gt != nil {
			all = append(all, gt.parts...)
		}
	}
	return all
}

// find returns a partition that the caller names. The caller holds mu.
func (g *Group) find(topic string, index int) (*groupPart, error) {
	if g.cause != nil {
		return nil, g.cause
	}
	gt := g.topics[topic]
	if gt == nil {
		return nil, g.without(fmt.Errorf("%w: %q is none of group %s", ErrUnknownTopic, topic, g.name))
	}
	if index < 0 || index >= len(gt.parts) {
		return nil, gt.t.unknownPartition(index, len(gt.parts))
	}
	return gt.parts[index], nil
}

// position returns the group's position. The caller holds g.mu.
func (p *groupPart) position() Offset {
	switch {
	case p.owner != nil && p.owner.runner != nil:
		return p.owner.runner.Position()
	case p.share != nil && (p.seated || p.g.cfg.Kind == Shared):
		return p.share.Position() // it may still move: what was given up is being buried
	}
	return Offset(p.floor)
}

// addGate lets publishers wait for the group in this partition. The caller holds g.mu.
func (p *groupPart) addGate() {
	p.gate = &partition.Gate{Name: p.g.name, Gating: !p.g.cfg.NonGating}
	at := uint64(p.position())
	_, err := p.p.p.AddGate(p.gate, func(uint64, uint64) (uint64, error) { return at, nil })
	if err != nil {
		panic(err) // only a start can fail, and this one does not
	}
	if p.share != nil {
		p.share.SetGate(p.gate)
	}
}

// removeGate ends that. The caller holds g.mu.
func (p *groupPart) removeGate() {
	if p.gate != nil {
		p.p.p.RemoveGate(p.gate)
		p.gate = nil
	}
}

// sharing returns the partition's share, with its position where the group's is. The caller holds g.mu, and in an assigned
// group nobody has a seat there.
func (p *groupPart) sharing() *delivery.Share {
	g := p.g
	if p.share == nil {
		p.share = delivery.NewShare(delivery.ShareConfig{
			Topic:        p.at.Topic,
			Part:         p.p.p,
			Window:       g.cfg.window(),
			Pool:         g.e.work,
			Alarms:       g.e.alarms,
			Clock:        &g.e.clock,
			Context:      partition.WithOrigin(g.e.ctx, nil, true),
			FailOnGap:    g.cfg.Gap == FailOnGap,
			Manual:       g.cfg.Mode == Manual,
			AtMostOnce:   g.cfg.Mode == AtMostOnce,
			Rested:       &g.e.rested,
			OnGap:        func(_ int, from, to int64) { g.onGap(p.at, from, to) },
			OnDrop:       g.onDrop,
			Bury:         g.bury,
			BuryRejected: g.cfg.DeadLetterRejected,
		}, p.floor)
		p.share.SetGate(p.gate)
	} else if g.assigned != nil && !p.seated && p.share.Position() != Offset(p.floor) { // who had it last had no seat
		p.seek(p.share.Seek)
	}
	return p.share
}

// seek puts something at the group's position.
func (p *groupPart) seek(seek func(delivery.Start) error) {
	floor := p.floor
	if err := seek(func(uint64, uint64) (uint64, error) { return floor, nil }); err != nil {
		panic(err) // only a start can fail, and this one does not
	}
}
