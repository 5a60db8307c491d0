package partition

import "github.com/leatlog/leat/internal/atomicx"

// Pace is what publishers of a topic that do not wait for results say about their appends: whether they come close together, and
// whether the publishers do anything else in between. That shows only over all of the topic's partitions.
//
// # Shared state
//
//	last   when a record was last appended, in nanoseconds of the engine's clock
//	ended  when the publisher of a record had done with it, or 0 if somebody has looked at that
//
// Both are stored by publishers that have the role of one of the topic's partitions, or have just given it back, and loaded by those
// that have it. They are hints: they publish no memory, and which of two stores at the same time stays does not matter.
type Pace struct {
	_ atomicx.Pad
	// last is stored and loaded by publishers. It publishes no memory.
	last atomicx.Uint64
	// ended is stored and loaded by publishers. It publishes no memory.
	ended atomicx.Uint64
	_     atomicx.Pad
}

const (
	paceGap  = 2000 // ns: appends closer together than this are a stream
	paceLoss = 8    // so many of them a longer gap makes up for: anybody is interrupted now and then

	keenGap  = 600  // ns: who comes again so soon after an append has nothing else to do, but to wait for lines that others have
	keenEach = 8    // one of so many appends is looked at
	keenFrom = 2048 // looks that find that, and publishers are keen: more than one who was kept waiting needs to catch up
	keenLoss = 8    // so many of them a look makes up for that finds more
	keenMost = keenFrom + 32*keenLoss
)

// pace notes that a publisher has appended a record by itself just now, and whether such appends come close together. It reports
// whether to note when the publisher has done with it.
func (p *Partition) pace() (look bool) {
	a, topic := &p.a, p.cfg.Pace
	if ended := topic.ended.Load(); ended != 0 {
		if a.now-int64(ended) < keenGap {
			a.keen = min(a.keen+1, keenMost)
		} else {
			a.keen = max(a.keen-keenLoss, 0)
		}
		atomicx.StoreRelease(&topic.ended, 0)
	}
	if a.now-int64(topic.last.Load()) < paceGap {
		a.hot++
		look = a.hot%keenEach == 0
	} else if a.hot > 0 {
		a.hot = max(0, a.hot-paceLoss)
	}
	atomicx.StoreRelease(&topic.last, uint64(a.now))
	return look
}

// letGo is hold for publishers that have appended and do not wait for their result: when they come in a stream the goroutine takes
// over, since it appends many records with one publication where they would pay for one each. It may take milliseconds until it
// gets a processor, if others want them as well. So what it is given is the role on offer, as if it had lent it already.
func (p *Partition) letGo() {
	look := p.pace()
	if p.a.hot >= p.hotStreak {
		p.a.hot, p.a.from = 0, p.log.Published()
		p.lent.Store(offered)
		p.wake.Unpark()
		return
	}
	p.hold()
	if look {
		atomicx.StoreRelease(&p.cfg.Pace.ended, uint64(p.cfg.Clock.Now()))
	}
}

// rest gives the role back like release, at the end of the goroutine's turn. If that was of no use, publishers will append twice
// as many by themselves as the last time until it tries again.
func (p *Partition) rest(s *stream) bool {
	a := &p.a
	hot, cool := a.hot, a.cool
	keen := a.keen >= keenFrom && !s.slow
	if a.hot, a.cool = 0, 0; !useful(s, keen, p.log.Published()-a.from) {
		most := coolest
		if keen {
			most = coolKeen
		}
		a.cool = min(cool, most)
		a.hot, a.cool = -(hotStreak << a.cool), min(a.cool+1, most)
	}
	if p.release() {
		return true
	}
	a.hot, a.cool = hot, cool
	return false
}

// useful reports whether it was of use that the goroutine had the role, for so many records. It was if they came fast while it lent
// the role. Or, if publishers have had nothing to do but publish lately, if they are many for each time that it looked: where it has to
// wait for a processor it finds them all at once, and nothing more until it has to give it back.
func useful(s *stream, keen bool, came uint64) bool {
	return s.worth || keen && came >= slowWorth*uint64(max(s.finds, slowLends))
}
