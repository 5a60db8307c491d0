package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/group"
	"github.com/leatlog/leat/internal/atomicx"
)

// Consumer is a member of a group that asks for its records: it polls. Its methods may be called from any goroutine, but one
// Poll at a time.
type Consumer struct {
	*Member

	news   atomicx.Event // broadcast when there may be something to return, or to be told
	busy   atomic.Bool   // there is a Poll: set and cleared by it, publishes what it leaves to the next
	polled atomic.Int64  // when the last Poll began or ended, or 0 while one waits: stored by Poll, loaded by the group's alarm; publishes no memory
	waiter *atomicx.Waiter

	// Of the Poll in progress, and reused by the next.
	turn  int // whose turn it is among the seats
	list  []pullSeat
	waits []*delivery.Seat
	ms    []Message

	// mu comes after g.mu. It guards the seats' side of the consumer's goroutine.
	mu      sync.Mutex
	pending []*claim         // to be given back when their records have been handed in
	stale   []*delivery.Seat // not the consumer's any more; to be left when their records are not looked at any more
	telling *delivery.Seat   // of whose gap OnGap is being told; its partition is given back after that
	handed  []pullSeat       // reused by handIn
	lost    error            // what has been returned and cannot be committed
	closed  bool             // by Close
}

// pollSlots is how many records of one partition one Poll returns at the most.
const pollSlots = 512

// Consumer makes a new member of the group that polls.
func (g *Group) Consumer(c MemberConfig) (*Consumer, error) {
	pull := &Consumer{waiter: atomicx.NewWaiter()}
	m, err := g.newMember(c, delivery.Handler{}, pull)
	if err != nil {
		return nil, err
	}
	pull.Member = m
	pull.polled.Store(g.now())
	if err := g.join(m); err != nil {
		return nil, err
	}
	return pull, nil
}

// Poll returns the next records of the partitions that the consumer has, up to max, of which those of one partition come in
// order, but for what comes again in a shared group; by turns among partitions and topics. It waits until there is at least
// one, or ctx ends. The slice and the records in it, which are views, are valid until the next Poll or Close.
//
// With AtLeastOnce a Poll commits what the one before has returned; so do Commit and Close. With AtMostOnce records are
// committed before they are returned. With Manual nothing is committed but by Commit and the records' own Ack.
//
// A partition that is to move is given back by the Poll, Commit or Close that comes after its records were returned. A consumer that
// has been put out because it did not poll joins again here. Once the consumer has ended the error is that of Err.
func (c *Consumer) Poll(ctx context.Context, max int) ([]Message, error) {
	if max < 1 {
		return nil, configError("max is %d", max)
	}
	if !c.busy.CompareAndSwap(false, true) {
		return nil, ErrConsumerBusy
	}
	defer c.busy.Store(false)
	c.polled.Store(c.g.now())
	_ = c.handIn(c.g.cfg.Mode != Manual) // OnLost tells of what was lost
	c.leaveStale()
	for {
		c.news.Prepare(c.waiter)
		ms, err := c.take(max)
		if len(ms) > 0 || err != nil {
			c.news.Cancel(c.waiter)
			c.rest()
			return ms, err
		}
		c.polled.Store(0)
		woken := c.news.Wait(c.waiter, ctx.Done())
		c.polled.Store(c.g.now())
		if !woken {
			// It may have come just now.
			ms, err = c.take(max)
			c.rest()
			if len(ms) == 0 && err == nil {
				err = context.Cause(ctx)
			}
			return ms, err
		}
	}
}

// rest says that nobody waits at the seats any more.
func (c *Consumer) rest() {
	for _, s := range c.waits {
		s.Rest()
	}
	c.waits = c.waits[:0]
}

// pullSeat is a place where a Poll looks.
type pullSeat struct {
	seat *delivery.Seat
	at   group.Partition
}

// take takes what there is, and notes the seats that it has asked, where somebody waits from then on.
func (c *Consumer) take(max int) ([]Message, error) {
	seats, err := c.sitting()
	if err != nil {
		return nil, err
	}
	asked := 0
	if len(c.waits) > 0 { // all that there were, in vain
		c.waits, asked = c.waits[:0], len(seats)
		for _, s := range seats {
			c.waits = append(c.waits, s.seat)
		}
	}
	ms := c.ms[:0]
	defer func() { c.ms = ms }()
	for {
		var gap delivery.Gap
		var at group.Partition
		var cold *delivery.Seat
		c.mu.Lock()
		for i := range seats {
			s := &seats[(c.turn+i)%len(seats)]
			if i >= asked {
				c.waits, asked = append(c.waits, s.seat), i+1
			}
			if ms, gap, err = s.seat.Take(ms, max-len(ms)); gap != (delivery.Gap{}) || isReadError(err) {
				if at = s.at; err == nil {
					c.telling = s.seat
				}
				break
			}
			if errors.Is(err, delivery.ErrFrozen) {
				cold, err = s.seat, nil
				break
			}
			err = nil // it is being taken away
			if len(ms) == max {
				c.turn = (c.turn + i + 1) % len(seats)
				break
			}
		}
		c.mu.Unlock()
		if cold != nil && len(ms) == 0 { // otherwise the next Poll does it
			if err = cold.Thaw(); err == nil {
				continue
			} else if !isReadError(err) {
				return ms, nil // it is being taken away
			}
		}
		switch {
		case err != nil && len(ms) > 0:
			return ms, nil // the next Poll finds it as well
		case err != nil:
			c.g.leave(c.Member, err)
			return nil, err
		case gap == (delivery.Gap{}):
			return ms, nil
		}
		c.tell(at, gap)
		if len(ms) > 0 {
			return ms, nil
		}
	}
}

// tell tells of a gap, and then gives the partition back if somebody has asked for it meanwhile.
func (c *Consumer) tell(at group.Partition, gap delivery.Gap) {
	defer func() { // also if OnGap ends the goroutine
		c.g.mu.Lock()
		defer c.g.mu.Unlock()
		c.mu.Lock()
		var now []*claim
		c.pending = slices.DeleteFunc(c.pending, func(x *claim) bool {
			over := x.seat == c.telling && x.seat.Out() == 0
			if over {
				now = append(now, x)
			}
			return over
		})
		c.telling = nil
		c.mu.Unlock()
		giveBack(now)
	}()
	c.g.onGap(at, gap.From, gap.To)
}

// giveBack gives back what has waited for its records, or for a notice. The caller holds g.mu.
func giveBack(pending []*claim) {
	for _, x := range pending {
		if x.phase == phaseFreezing && !x.ended {
			x.ended = true
			x.give()
		}
	}
}

// isReadError reports whether err says that a seat cannot read on, rather than that it is being taken away.
func isReadError(err error) bool {
	var off *OffsetError
	var load *LoadError
	return errors.As(err, &off) || errors.As(err, &load)
}

// sitting returns where the consumer can look, and lets it in again if it was put out.
func (c *Consumer) sitting() ([]pullSeat, error) {
	g := c.g
	g.mu.Lock()
	defer g.mu.Unlock()
	g.enterAgain(c.Member)
	if c.err != nil {
		return nil, c.err
	}
	c.list = c.list[:0]
	for x := range c.claims.all() {
		if x.seat != nil && x.phase == phaseDelivering {
			c.list = append(c.list, pullSeat{x.seat, x.part.at})
		}
	}
	for s := range c.seats.all() {
		if !s.ended {
			c.list = append(c.list, pullSeat{s.seat, s.part.at})
		}
	}
	return c.list, nil
}

// Commit commits all records that Polls have returned. If some of them cannot be committed, because their partition or they
// themselves were lost, the error wraps ErrFenced; all others are committed.
func (c *Consumer) Commit() error {
	c.g.mu.Lock()
	err := c.err
	if c.claims.size() > 0 {
		err = nil // it may be leaving, but has something to give back
	}
	c.g.mu.Unlock()
	if err != nil {
		return err
	}
	return c.handIn(true)
}

// CommitSync is Commit that returns when the positions are as safe as the topics are. Those in topics in memory are at once; ctx
// is looked at before, and then nothing is committed. Those in durable topics are when they, and the records below them, are
// durable; if that fails, or ctx ends before, they are committed and will be safe later if they can.
func (c *Consumer) CommitSync(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := c.Commit(); err != nil || c.g.entry == nil {
		return err
	}
	return c.g.e.keeper.commitSync(ctx, c.g)
}

// CommitTo commits the records of one partition that have been returned and lie below an offset, which is the next one to
// process then. If retention has dropped some of them meanwhile, of which nobody has been told yet, the error wraps ErrFenced; the
// others are committed, and the position follows when the gap is told. An offset beyond what has been returned is an
// *OffsetError, a partition that is not the consumer's ErrNotAssigned, which then wraps ErrFenced as well.
func (c *Consumer) CommitTo(topic string, partition int, next Offset) error {
	g := c.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.err != nil && c.claims.size() == 0 {
		return c.err
	}
	p, err := g.find(topic, partition)
	if err != nil {
		return err
	}
	for _, s := range c.places(nil) {
		if s.at == p.at {
			c.mu.Lock()
			defer c.mu.Unlock()
			return s.seat.CommitBelow(next)
		}
	}
	return fmt.Errorf("%w: %v: %w", ErrNotAssigned, p.at, ErrFenced)
}

// places appends all seats that the consumer still has, also those that it is to give back. The caller holds g.mu.
func (c *Consumer) places(all []pullSeat) []pullSeat {
	for x := range c.claims.all() {
		if x.seat != nil {
			all = append(all, pullSeat{x.seat, x.part.at})
		}
	}
	for s := range c.seats.all() {
		if !s.ended {
			all = append(all, pullSeat{s.seat, s.part.at})
		}
	}
	return all
}

// handIn hands in what Polls have returned, and gives back what has waited for that. The error says what could not be
// committed.
func (c *Consumer) handIn(commit bool) error {
	g := c.g
	g.mu.Lock()
	defer g.mu.Unlock()
	c.mu.Lock()
	err := c.lost
	c.lost = nil
	c.handed = c.places(c.handed[:0])
	for _, s := range c.handed {
		if commit {
			s.seat.Commit()
		} else {
			s.seat.HandIn()
		}
	}
	pending := c.pending
	c.pending = nil
	c.mu.Unlock()
	giveBack(pending)
	return err
}

// leaveStale leaves the seats that are not the consumer's any more: nobody looks at their records from now on.
func (c *Consumer) leaveStale() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.stale {
		s.Leave()
	}
	c.stale = nil
}

// revoked notes that a partition is to be given back: at once if none of its records is out, and nobody is being told of a gap.
// The caller holds g.mu.
func (c *Consumer) revoked(x *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.seat.Out() == 0 && x.seat != c.telling {
		x.ended = true
		return
	}
	c.pending = append(c.pending, x)
	c.news.Broadcast()
}

// drop notes that a partition is the consumer's no more. The caller holds g.mu.
func (c *Consumer) drop(x *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.lost && x.seat.Out() > 0 {
		c.lost = &LostError{"records of " + x.part.at.String() + " are another's"}
	}
	c.toLeave(x.seat)
	c.news.Broadcast()
}

// left is drop for a seat of a shared group, which has been stopped: what it holds is others' at once. The caller holds g.mu.
func (c *Consumer) left(s *sharedSeat, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.g.cfg.Mode == AtLeastOnce && c.closed {
		s.seat.Commit()
	}
	s.seat.Fence(cause)
	s.ended = true
	c.toLeave(s.seat)
}

// toLeave leaves a seat, now or when its records are not looked at any more. The caller holds mu.
func (c *Consumer) toLeave(s *delivery.Seat) {
	if c.closed {
		s.Leave()
	} else {
		c.stale = append(c.stale, s)
	}
}

// Close makes the consumer leave: a Poll that waits ends, and the records that the last one returned are valid no more. With
// AtLeastOnce they are committed; so whoever works on them elsewhere has to be through with them before. Then its partitions
// are others'. Closing again does nothing. It does not wait; Done tells.
func (c *Consumer) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.g.leave(c.Member, ErrMemberClosed)
	_ = c.handIn(c.g.cfg.Mode == AtLeastOnce)
	c.leaveStale()
	c.g.mu.Lock()
	c.g.settle(c.Member)
	c.g.mu.Unlock()
}
