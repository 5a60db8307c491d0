package load

// timing measures one ledger. Its users hold the ledger's mu.
type timing struct {
	clock    *Clock
	measured int64 // what happens earlier belongs to the warm-up
	end      int64 // gaps count until here

	// Of a scenario with churn: the last delivery.
	last   int64
	member uint32
	epoch  uint32
	quiet  int64 // the longest gap without any change of the group

	// Of a scenario with a slow member: what the others saw before and meanwhile.
	before, during *recorder
	slowed         bool // the slow one has had this partition meanwhile
}

// see notes a delivery, the first of its message or another.
func (t *timing) see(l *ledger, m *member, first bool, stamp int64) {
	g := l.g
	if g.c.Churn > 0 {
		t.gap(g, m, t.clock.After())
	}
	slow := g.slowOn.Load()
	if slow && m.slot == 0 {
		t.slowed = true
	}
	if !first || stamp == 0 {
		return
	}
	now := t.clock.After()
	if now < t.measured {
		return
	}
	l.rec.record(now - stamp)
	switch {
	case t.before == nil || m.slot == 0:
	case !slow:
		t.before.record(now - stamp)
	case !t.slowed || g.c.Kind != Assigned:
		t.during.record(now - stamp)
	}
}

// processed notes that a message is processed.
func (t *timing) processed(l *ledger, stamp int64) {
	if l.done == nil || stamp == 0 {
		return
	}
	if now := t.clock.After(); now >= t.measured {
		l.done.record(now - stamp)
	}
}

// gap notes how long the partition stood still before a delivery.
func (t *timing) gap(g *groupRun, m *member, now int64) {
	epoch := g.epoch.Load()
	if t.last >= t.measured && now < t.end {
		switch d := now - t.last; {
		case m.id != t.member && g.c.Kind == Assigned:
			g.gaps.record(&g.gaps.moved, d)
		case epoch != t.epoch:
			g.gaps.record(&g.gaps.stayed, d)
		default:
			t.quiet = max(t.quiet, d)
		}
	}
	t.last, t.member, t.epoch = now, m.id, epoch
}
