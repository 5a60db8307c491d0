package partition

// Stats is a snapshot; package engine says what the fields mean.
type Stats struct {
	Partition   int
	First, Next int64
	Bytes       int64
	Segments    int
	Reclaimed   int64
	AsyncFailed int64
	InHandover  int
	Callbacks   int
	Blocked     int
	Full        bool
	HeldBy      string
	Exclusive   bool
	Durable     int64
	ReadOnly    error
}

// Stats returns a snapshot.
func (p *Partition) Stats() Stats {
	s := Stats{
		Partition:   p.cfg.Index,
		Bytes:       p.log.Bytes(),
		Segments:    p.log.Segments(),
		Reclaimed:   p.reclaimed.Load(),
		AsyncFailed: p.failed.Load(),
		InHandover:  p.ring.Len(),
		Callbacks:   int(p.calls.pending.Load()),
		Blocked:     int(p.blocked.Load()),
		Full:        p.full.Load() != 0,
		Exclusive:   p.exclusive.Load() != nil,
		Durable:     p.Durable(),
		ReadOnly:    p.unwritable(),
	}
	s.First, s.Next = p.Snapshot()
	if g := p.stuckOn.Load(); g != nil {
		s.HeldBy = g.Name
	}
	return s
}
