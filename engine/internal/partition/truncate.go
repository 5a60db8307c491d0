package partition

import "context"

// TruncateBefore drops all records below off.
func (p *Partition) TruncateBefore(ctx context.Context, off int64) error {
	if err := p.unwritable(); err != nil {
		return err // the next Open would bring back what is dropped now
	}
	var bad error
	err := p.do(ctx, func() {
		first, next := p.Snapshot()
		if off < 0 || off > next {
			bad = &OffsetError{Asked: off, First: first, Next: next}
			return
		}
		p.gateMu.Lock()
		before, _, _ := p.log.Retained()
		p.log.TruncateBefore(uint64(off))
		after, _, _ := p.log.Retained()
		p.gateMu.Unlock()
		p.a.roomRecords = 0 // there is more than we thought
		p.reclaimed.Add(before - after)
		p.room.Broadcast()
	})
	switch {
	case err != nil:
		return err
	case bad == nil && p.store != nil:
		return p.store.Trim(p.log.First())
	}
	return bad
}
