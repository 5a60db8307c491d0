package partition

import "github.com/leatlog/leat/internal/atomicx"

// Pace is when a record was last appended by a publisher of a topic who does not wait for results: whether such publishers have
// nothing else to do shows only over all of their partitions.
//
// # Shared state
//
//	last  nanoseconds of the engine's clock; stored by holders of the roles of the topic's partitions, loaded by them. A
//	      hint: it publishes no memory, and which of two stores at the same time stays does not matter.
type Pace struct {
	// last is stored and loaded by holders of the roles of the topic's partitions. It publishes no memory.
	last atomicx.PaddedUint64
}

const (
	paceGap  = 2000 // ns: appends closer together than this are a stream
	paceLoss = 8    // so many of them a longer gap makes up for: anybody is interrupted now and then
)

// pace notes that a publisher has appended a record by itself just now, and whether such appends come close together.
func (p *Partition) pace() {
	a, last := &p.a, &p.cfg.Pace.last
	if a.now-int64(last.Load()) < paceGap {
		a.hot++
	} else if a.hot > 0 {
		a.hot = max(0, a.hot-paceLoss)
	}
	atomicx.StoreRelease(&last.Uint64, uint64(a.now))
}

// letGo is hold for publishers that do not wait for their result: when they come in a stream the goroutine takes over,
// since it appends many records with one publication where they would pay for one each.
func (p *Partition) letGo() {
	if p.a.hot >= hotStreak {
		p.a.hot = 0
		p.wake.Unpark()
		return
	}
	p.hold()
}

// rest gives the role back like release, at the end of the goroutine's turn. If records came too slowly for it to be of use,
// publishers will append twice as many by themselves as the last time until it tries again.
func (p *Partition) rest(s *stream) bool {
	a := &p.a
	hot, cool := a.hot, a.cool
	if a.hot, a.cool = 0, 0; !s.worth {
		a.hot, a.cool = -(hotStreak << cool), min(cool+1, coolest)
	}
	if p.release() {
		return true
	}
	a.hot, a.cool = hot, cool
	return false
}
