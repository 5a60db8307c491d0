package delivery_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/partition"
)

// world is a share with its seats, and what is to be said of each record: a reference that knows nothing of queues and turns,
// but only who may be given which record when.
type world struct {
	*rapid.T
	s   *share
	p   *part
	cfg delivery.ShareConfig

	seats []*worldSeat
	recs  map[int64]*worldRecord
	next  int64
	taken int64 // what pull seats have taken lies below
	lost  int64

	mu    sync.Mutex
	begun []*worldHold // not looked at yet
	holds []*worldHold // all
}

type worldRecord struct {
	settled bool
	attempt int
	due     int64 // when it may be delivered again
	hold    *worldHold
}

// worldHold is one delivery.
type worldHold struct {
	seat     *worldSeat
	off      int64
	attempt  int
	value    int64
	token    delivery.Token
	out      chan func() error // of a push seat, while its handler runs
	deadline int64
}

type worldSeat struct {
	push                     *delivery.Seat
	pull                     *pull
	started, paused, stopped bool
	waits                    bool
	running, ends            int
}

func (x *worldSeat) seat() *delivery.Seat {
	if x.pull != nil {
		return x.pull.Seat
	}
	return x.push
}

func (x *worldSeat) able() bool { return x.started && !x.paused && !x.stopped }

func (w *world) now() int64 { return w.p.clock.Now() }

func of(list []time.Duration, attempt int) int64 {
	if len(list) == 0 {
		return 0
	}
	return int64(list[min(attempt, len(list))-1])
}

// live returns the record of a hold that has not ended.
func (w *world) live(h *worldHold) *worldRecord {
	if r := w.recs[h.off]; r != nil && r.hold == h {
		return r
	}
	return nil
}

func (w *world) floor() int64 {
	for off := int64(0); off < w.next; off++ {
		if !w.recs[off].settled {
			return off
		}
	}
	return w.next
}

// fails is what becomes of a record whose hold ends without success.
func (w *world) fails(r *worldRecord, due int64) {
	r.hold, r.due = nil, due
	if limit := w.cfg.Window.MaxDeliveries; limit > 0 && r.attempt >= limit {
		r.settled = true // nothing is buried here
	}
}

func (w *world) settles(r *worldRecord) { r.hold, r.settled = nil, true }

// handle is the handler of push seats.
func (w *world) handle(x *worldSeat, m *Message) error {
	h := &worldHold{seat: x, off: m.Offset, attempt: m.Attempt, value: int64(binary.LittleEndian.Uint64(m.Value)), token: m.Token(), out: make(chan func() error)}
	w.mu.Lock()
	w.begun = append(w.begun, h)
	w.mu.Unlock()
	return (<-h.out)()
}

// look lets everything come to rest and checks what has begun.
func (w *world) look() {
	synctest.Wait()
	begun := w.begun
	w.begun = nil
	for _, h := range begun {
		require.True(w, h.seat.able(), "offset %d begins at a seat that may not", h.off)
		h.seat.running++
		require.Equal(w, 1, h.seat.running, "handlers of one seat")
		w.begins(h)
	}
	require.NoError(w, w.s.Check(true))
	position, floor := w.s.Position(), w.floor()
	require.LessOrEqual(w, position, floor)
	idle, waits := false, false
	for _, x := range w.seats {
		if x.running == 0 && x.able() && x.push != nil {
			idle = true
		}
		waits = waits || x.waits
	}
	if !idle {
		return
	}
	require.Equal(w, floor, position, "all that is finished is settled")
	held, limit, window := 0, w.cfg.Window.MaxInFlight, int64(w.cfg.Window.MaxWindow)
	for off := floor; off < w.next; off++ {
		if w.recs[off].hold != nil {
			held++
		}
	}
	if held >= limit || waits {
		return
	}
	for off := floor; off < min(w.next, floor+window); off++ {
		if r := w.recs[off]; !r.settled && r.hold == nil && r.due <= w.now() {
			require.Fail(w, "stuck", "offset %d is available, and there is a seat", off)
		}
	}
}

// begins checks a delivery.
func (w *world) begins(h *worldHold) {
	r := w.recs[h.off]
	require.NotNil(w, r)
	require.Equal(w, h.off, h.value)
	require.False(w, r.settled, "offset %d is settled", h.off)
	require.Nil(w, r.hold, "offset %d is held", h.off)
	require.LessOrEqual(w, r.due, w.now(), "offset %d is not due", h.off)
	require.Equal(w, r.attempt+1, h.attempt, "offset %d", h.off)
	r.attempt++
	w.holds = append(w.holds, h)
	if w.cfg.AtMostOnce {
		r.settled = true
		return
	}
	r.hold = h
	h.deadline = h.token.Deadline().UnixNano()
	require.Greater(w, h.deadline, w.now())
	require.LessOrEqual(w, h.deadline, w.now()+of(w.cfg.Window.AckWait, r.attempt))
}

// pass lets time pass until a time, and looks whenever something is due; and in between, since it does not see when what lies in
// a seat's queue goes to another one.
func (w *world) pass(until int64) {
	for {
		now := w.now()
		at := min(until, now+int64(ms(250)))
		for off := w.floor(); off < w.next; off++ {
			r := w.recs[off]
			if r.hold != nil {
				at = min(at, r.hold.deadline)
			} else if !r.settled && r.due > now {
				at = min(at, r.due)
			}
		}
		time.Sleep(time.Duration(at - now))
		for off := w.floor(); off < w.next; off++ {
			if r := w.recs[off]; r.hold != nil && r.hold.deadline <= at {
				w.fails(r, r.hold.deadline+max(0, of(w.cfg.Window.Backoff, r.attempt)-of(w.cfg.Window.AckWait, r.attempt)))
			}
		}
		w.look()
		if at == until {
			return
		}
	}
}

// ends ends a handler in one of the ways that there are.
func (w *world) ends(h *worldHold, how string) {
	r := w.live(h)
	h.seat.running--
	now := w.now()
	again := func() int64 { return now + of(w.cfg.Window.Backoff, r.attempt) }
	if r == nil || how == "nil" && w.cfg.Manual {
		r = &worldRecord{attempt: 1}
	}
	switch how {
	case "nil":
		h.out <- func() error { return nil }
		w.settles(r)
	case "error":
		h.out <- func() error { return errPoison }
		w.fails(r, again())
	case "panic":
		h.out <- func() error { panic("handler") }
		w.fails(r, again())
	case "goexit":
		h.out <- func() error { runtime.Goexit(); return nil }
		w.fails(r, again())
	case "reject":
		h.out <- func() error { return fmt.Errorf("bad: %w", delivery.ErrRejected) }
		w.settles(r)
	case "crowded":
		h.out <- func() error { return partition.ErrWorkersBlocked }
		r.hold, r.due = nil, now+int64(ms(10))
		r.attempt--
	}
	h.out = nil
}

// abandon lets everything end.
func (w *world) abandon() {
	for _, x := range w.seats {
		x.seat().Stop(errOver)
		x.seat().Start()
	}
	for range 2 {
		synctest.Wait()
		for _, h := range append(w.holds, w.begun...) {
			if h.out != nil {
				select {
				case h.out <- func() error { return nil }:
				default:
				}
			}
		}
	}
}
