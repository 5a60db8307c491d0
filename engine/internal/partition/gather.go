package partition

import (
	"time"

	"github.com/leatlog/leat/internal/atomicx"
)

// gathering says how long the holder waits for publishers who have just been told of a commit and are about to publish again, so that
// they share the next one: otherwise the first of them would have it for himself, and all others wait twice.
//
// It is over when all are there that are known of: those that were told, and those that came meanwhile. Before that it goes by what
// pays. To wait makes everybody later who is there; one more who comes in time is earlier by a whole sync. So the next one may take as
// long as a sync divided by how many wait; half of that, since records that come in all the time, each from somebody else, come just
// so fast, and gain nothing by it. And after half a sync they are better off taking every other one each.
type gathering struct {
	want  int   // slots
	took  int64 // how long the last sync took
	until int64 // when it is over at the latest
	have  int   // slots that were in use at the last look
	since int64 // when the last of them was found
	quiet int   // looks since then
}

const (
	fewWait   = 4   // fewer count as so many: who has to be woken first takes a while
	quietMost = 256 // looks that find nobody, about 40 us: long enough also where a sync takes long, or the clock stands still
)

// newGathering returns one that begins now.
func newGathering(want int, took time.Duration, now int64) gathering {
	return gathering{want: want, took: int64(took), until: now + int64(took/2), since: now}
}

// again reports whether to let others run and look again; have is how many slots are in use.
func (g *gathering) again(have int, now int64) bool {
	switch {
	case have >= g.want || now >= g.until:
		return false
	case have > g.have:
		g.have, g.since, g.quiet = have, now, 0
		return true
	}
	g.quiet++
	return g.quiet < quietMost && now-g.since < g.took/int64(2*max(have, fewWait)) && !atomicx.OneProc() // there all have had their turn
}

// gatherUp waits for publishers that come again, if that pays. The caller holds the role, and has found one.
func (p *Partition) gatherUp() {
	if p.a.known < 2 || !p.a.waited || !p.store.Syncs() || atomicx.Exploring {
		return
	}
	g := newGathering(min(p.a.known, p.ring.Cap()/2), p.store.SyncTime(), p.cfg.Clock.Now())
	for g.again(p.ring.Len(), p.cfg.Clock.Now()) {
		atomicx.Yield()
	}
}
