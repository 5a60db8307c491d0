package partition

import (
	"time"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

// TakeRole takes the role if nobody holds it. Whoever has it gives it back by HoldRole or PassRole.
func (p *Partition) TakeRole() bool { return p.ring.TakeIdle() }

// HoldRole does what a publisher does that has taken the role: it serves what there is and gives it back.
func (p *Partition) HoldRole() { p.hold() }

// PassRole hands the role to the partition's goroutine.
func (p *Partition) PassRole() { p.wake.Unpark() }

// Queued returns how many slots of the hand-over are claimed.
func (p *Partition) Queued() int { return p.ring.Len() }

// Post has f run under the role.
func (p *Partition) Post(f func()) error { return p.post(&control{run: f}) }

// WaitingForRoom returns how many are registered for room.
func (p *Partition) WaitingForRoom() int { return p.room.Waiting() }

// WaitingReaders returns how many are registered for more records.
func (p *Partition) WaitingReaders() int { return p.committed.Waiting() }

// Pending returns how many callbacks are outstanding.
func (p *Partition) Pending() int64 { return p.calls.pending.Load() }

// MaxPending is how many may be.
const MaxPending = maxPending

// SetExclusive sets or clears the state's bit as an Appender that has not got the role yet.
func (p *Partition) SetExclusive(on bool) {
	if on {
		p.state.Or(stateExclusive)
	} else {
		p.state.And(^stateExclusive)
	}
}

// InlineBytes, FlushAfter and BatchMax are what sizes in tests go by.
const (
	InlineBytes = inlineBytes
	FlushAfter  = flushAfter
	BatchMax    = batchMax
)

// Req is a request by itself.
type Req struct{ *request }

// NewReq returns a new one, with a slice of one record.
func NewReq() Req {
	r := &request{parker: atomicx.NewParker()}
	return Req{r}
}

func (r Req) Take() bool                                       { return r.take() }
func (r Req) Wanted() bool                                     { return r.wanted() }
func (r Req) Finish(off int64, err error)                      { r.finish(off, err) }
func (r Req) Await(cancel <-chan struct{}) bool                { in, _ := r.AwaitSlow(cancel); return in }
func (r Req) Copied()                                          { r.copy() }
func (r Req) Slow()                                            { r.slow = true }
func (r Req) AwaitSlow(cancel <-chan struct{}) (in, late bool) { return r.await(cancel, r.looks()) }
func (r Req) Result() (int64, error)                           { return r.off, r.err }
func (r Req) Reset()                                           { r.state.Store(waiting) }
func (r Req) Leftover(closed <-chan struct{}) int              { return leftover(r.parker, closed) }

func leftover(p atomicx.Parker, closed <-chan struct{}) (tokens int) {
	for range 64 { // with both a token and closed there, either is taken
		if p.Park(closed) {
			tokens++
		}
	}
	return tokens
}

// looks is how it waits: by turns as in memory, and for a long sync.
func (r Req) looks() atomicx.Backoff {
	if r.size++; r.size%3 == 0 {
		return atomicx.Backoff{}
	}
	return atomicx.Backoff{Spins: 4, Yields: 16}
}

// Gathering is one by itself.
type Gathering struct{ g gathering }

// NewGathering returns one.
func NewGathering(want int, took time.Duration, now int64) *Gathering {
	return &Gathering{newGathering(want, took, now)}
}

func (g *Gathering) Again(have int, now int64) bool { return g.g.again(have, now) }

// Layout is where the words of a Partition that must not share a cache line lie, and the size of a slot.
var Layout = struct {
	Slot                                       uintptr
	WakeEnd, State, StuckOnEnd, CtlMu          uintptr
	BlockedEnd, Failed, Appender, PartitionEnd uintptr
}{
	Slot:         unsafe.Sizeof(slot{}),
	WakeEnd:      unsafe.Offsetof(Partition{}.wake) + unsafe.Sizeof(Partition{}.wake),
	State:        unsafe.Offsetof(Partition{}.state),
	StuckOnEnd:   unsafe.Offsetof(Partition{}.stuckOn) + unsafe.Sizeof(Partition{}.stuckOn),
	CtlMu:        unsafe.Offsetof(Partition{}.ctlMu),
	BlockedEnd:   unsafe.Offsetof(Partition{}.blocked) + unsafe.Sizeof(Partition{}.blocked),
	Failed:       unsafe.Offsetof(Partition{}.failed),
	Appender:     unsafe.Offsetof(Partition{}.a),
	PartitionEnd: unsafe.Sizeof(Partition{}),
}

// CallsOver reports whether the partition's callbacks are off the workers.
func (p *Partition) CallsOver() bool {
	select {
	case <-p.calls.task.Done():
		return true
	default:
		return false
	}
}

// TurnAway is the control that latecomers post.
func (p *Partition) TurnAway() { p.turnAway() }

// Gates are those of a partition, by themselves.
type Gates struct{ gates }

func (s *Gates) Add(g *Gate)            { s.add(g) }
func (s *Gates) Remove(g *Gate)         { s.remove(g) }
func (s *Gates) Below(end uint64) *Gate { return s.below(end) }
func (s *Gates) Passed() (int, []*Gate) { return s.passed, s.all }

// EvictAt returns the committed length at which the limits of the gates are looked at next, and how many have one.
func (p *Partition) EvictAt() (at uint64, limited int) {
	p.gateMu.Lock()
	defer p.gateMu.Unlock()
	return p.evictAt.Load(), len(p.limited)
}

// NoEviction is where EvictAt is if no gate has a limit.
const NoEviction = noEviction

// Lend lends the role, which the caller has, to a producer that seems to be alone, while f runs; then the caller has it again.
func (p *Partition) Lend(f func()) {
	p.alone.Store(1)
	p.lent.Store(offered)
	f()
	p.takeBack()
}

// Streak returns what the holder of the role knows of publishers that do not wait. The caller has the role.
func (p *Partition) Streak() (hot, cool, keen int) { return p.a.hot, p.a.cool, p.a.keen }

// SetHotStreak says after how many appends that come close together a publisher hands the role over. It is called before Run.
func (p *Partition) SetHotStreak(n int) { p.hotStreak = n }

// SetAlone says whether one producer seems to have the partition for itself.
func (p *Partition) SetAlone(alone bool) {
	p.alone.Store(0)
	if alone {
		p.alone.Store(1)
	}
}

// Useful is what becomes of a goroutine that has looked so often and found something.
func Useful(worth, keen bool, finds int, came uint64) bool {
	return useful(&stream{worth: worth, finds: finds}, keen, came)
}

// HotStreak, KeenFrom, Coolest, CoolKeen and DirectBatch are what tests of the pace go by.
const (
	HotStreak   = hotStreak
	KeenFrom    = keenFrom
	Coolest     = coolest
	CoolKeen    = coolKeen
	DirectBatch = directBatch
)

// DirectFiles is how many records a producer that is alone makes visible by one write.
const DirectFiles = directFiles
