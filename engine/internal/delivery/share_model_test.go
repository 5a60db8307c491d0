package delivery_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/group"
	"github.com/leatlog/leat/engine/internal/partition"
)

// TestShare_Model does everything that can be done with a share and its seats, in any order, and checks that each delivery is
// one that may be, that all tokens are accepted and refused as they should be, and that nothing is stuck or lost.
func TestShare_Model(t *testing.T) {
	watchdog(t)
	rapid.Check(t, func(rt *rapid.T) {
		var failure any
		synctest.Test(t, func(t *testing.T) { // one for each run, since time stands still for rapid as well
			w := &world{T: rt, recs: map[int64]*worldRecord{}}
			defer func() {
				if failure = recover(); failure != nil {
					w.abandon()
				}
			}()
			checkWorld(t, rt, w)
		})
		switch {
		case failure == nil:
		case fmt.Sprintf("%T", failure) == "rapid.invalidData": // on a line of its own: by that rapid tells failures apart
			panic(failure)
		default:
			panic(failure)
		}
	})
}

func checkWorld(t *testing.T, rt *rapid.T, w *world) {
	seconds := func(least int64, label string) (list []time.Duration) {
		for _, n := range rapid.SliceOfN(rapid.Int64Range(least, 8), int(least), 3).Draw(rt, label) {
			list = append(list, time.Duration(n)*time.Second)
		}
		return list
	}
	w.cfg.Window = group.SharedConfig{
		MaxInFlight:   rapid.SampledFrom([]int{1, 2, 3, 50}).Draw(rt, "MaxInFlight"),
		MaxWindow:     rapid.SampledFrom([]int{1, 3, 10, 100}).Draw(rt, "MaxWindow"),
		AckWait:       seconds(1, "AckWait"),
		Backoff:       seconds(0, "Backoff"),
		MaxDeliveries: rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(rt, "MaxDeliveries"),
	}
	mode := rapid.SampledFrom([]string{"AtLeastOnce", "AtMostOnce", "Manual", "Manual in order"}).Draw(rt, "mode")
	w.cfg.AtMostOnce, w.cfg.Manual, w.cfg.Window.InOrder = mode == "AtMostOnce", mode[0] == 'M', mode == "Manual in order"
	w.cfg.OnGap = func(int, int64, int64) {}
	w.p = newPart(t, partitionSetup{workers: 6, segments: rapid.SampledFrom([]int{2, 7, 1000}).Draw(rt, "segment")})
	w.s = newShare(t, w.p, w.cfg)

	choose := func(label string, ok func(x *worldSeat) bool) *worldSeat {
		var all []*worldSeat
		for _, x := range w.seats {
			if ok(x) {
				all = append(all, x)
			}
		}
		if len(all) == 0 {
			return nil
		}
		return all[rapid.IntRange(0, len(all)-1).Draw(rt, label)]
	}
	present := func(x *worldSeat) bool { return x.ends == 0 }
	pulls := func(x *worldSeat) bool { return x.pull != nil && x.ends == 0 }
	most := 4
	if w.cfg.Window.InOrder {
		most = 1
	}
	newSeat := func(pulls bool) *worldSeat {
		x := &worldSeat{}
		if pulls {
			x.pull = &pull{}
			x.pull.Seat = w.s.NewSeat(delivery.SeatConfig{Slots: 32, Notify: func() {}})
		} else {
			x.push = w.s.NewSeat(delivery.SeatConfig{
				Context: background,
				Handler: delivery.Handler{One: func(_ context.Context, m *Message) error { return w.handle(x, m) }},
				OnEnd:   func(error) { x.ends++ },
			})
		}
		w.seats = append(w.seats, x)
		return x
	}
	release := func(x *worldSeat, but bool) {
		for _, h := range w.holds {
			if r := w.live(h); r != nil && h.seat == x && (!but || h.out == nil) {
				w.fails(r, 0)
			}
		}
	}
	handIn := func(x *worldSeat) {
		x.pull.HandIn()
		for _, h := range w.holds {
			if r := w.live(h); r != nil && h.seat == x && !w.cfg.Manual {
				w.settles(r)
			}
		}
	}
	token := func() *worldHold {
		if len(w.holds) == 0 {
			return nil
		}
		if rapid.IntRange(0, 4).Draw(rt, "any") > 0 {
			if all := slices.DeleteFunc(slices.Clone(w.holds), func(h *worldHold) bool { return w.live(h) == nil }); len(all) > 0 {
				return rapid.SampledFrom(all).Draw(rt, "live token")
			}
		}
		return rapid.SampledFrom(w.holds).Draw(rt, "token")
	}
	// use is a use of a token that settles its record, if it is good for that.
	use := func(call func(k delivery.Token) error, then func(h *worldHold, r *worldRecord)) func(*rapid.T) {
		return func(*rapid.T) {
			h := token()
			if h == nil {
				return
			}
			r, err := w.live(h), call(h.token)
			switch {
			case !w.cfg.Manual:
				require.ErrorIs(rt, err, delivery.ErrNoToken)
			case r == nil:
				require.ErrorIs(rt, err, group.ErrFenced)
			default:
				require.NoError(rt, err)
				then(h, r)
			}
		}
	}
	publish := func(n int) {
		w.p.publish(t, n)
		for range n {
			w.recs[w.next] = &worldRecord{}
			w.next++
		}
	}

	actions := map[string]func(*rapid.T){
		"publish": func(*rapid.T) { publish(rapid.IntRange(1, 12).Draw(rt, "n")) },
		"seat": func(*rapid.T) {
			n := 0
			for _, x := range w.seats {
				if x.ends == 0 {
					n++
				}
			}
			if n < most {
				x := newSeat(rapid.IntRange(0, 2).Draw(rt, "pull") == 0)
				if rapid.IntRange(0, 4).Draw(rt, "held") > 0 {
					x.started = true
					x.seat().Start()
				}
			}
		},
		"change": func(*rapid.T) {
			x := choose("whom", present)
			if x == nil {
				return
			}
			switch rapid.SampledFrom([]string{"start", "start", "pause", "resume", "resume", "stop", "fence", "release"}).Draw(rt, "what") {
			case "start":
				x.started = true
				x.seat().Start()
			case "pause":
				x.seat().Pause()
				x.paused = true
			case "resume":
				x.paused = false
				x.seat().Resume()
			case "stop":
				x.seat().Stop(errOver)
				x.stopped = true
			case "fence":
				x.seat().Fence(errOver)
				x.stopped = true
				release(x, false)
			case "release":
				if x.pull == nil {
					x.seat().Release()
					release(x, true)
				}
			}
		},
		"take": func(*rapid.T) {
			x := choose("whom", pulls)
			if x == nil {
				return
			}
			if x.pull.Out() > 0 {
				handIn(x)
			}
			n := rapid.SampledFrom([]int{1, 2, 7, 50}).Draw(rt, "max")
			for {
				ms, gap, err := x.pull.Take(nil, n)
				if x.stopped {
					require.Equal(rt, errOver, err)
					require.Empty(rt, ms)
					x.waits = false
					return
				}
				require.NoError(rt, err)
				require.True(rt, len(ms) == 0 || x.able())
				for i := range ms {
					w.begins(&worldHold{seat: x, off: ms[i].Offset, attempt: ms[i].Attempt, value: int64(binary.LittleEndian.Uint64(ms[i].Value)), token: ms[i].Token()})
					w.taken = max(w.taken, ms[i].Offset+1)
				}
				if x.waits = len(ms) == 0; gap == (delivery.Gap{}) {
					return
				}
				x.waits = false
			}
		},
		"hand in": func(*rapid.T) {
			if x := choose("whom", pulls); x != nil && x.pull.Out() > 0 {
				handIn(x)
			}
		},
		"rest": func(*rapid.T) {
			if x := choose("whom", pulls); x != nil {
				x.pull.Rest()
				x.waits = false
			}
		},
		"commit": func(*rapid.T) {
			x := choose("whom", pulls)
			if x == nil {
				return
			}
			below := int64(1 << 62)
			if rapid.Bool().Draw(rt, "all") {
				x.pull.Commit()
			} else {
				below = rapid.Int64Range(0, w.next+1).Draw(rt, "below")
				err := x.pull.CommitBelow(below)
				if most := w.s.Position(); below > max(w.taken, most) {
					var off *partition.OffsetError
					if !errors.Is(err, group.ErrFenced) || w.lost == 0 { // a gap may be known that nobody has been told of
						require.ErrorAs(rt, err, &off)
					}
					return
				}
				if !errors.Is(err, group.ErrFenced) || w.lost == 0 { // what was dropped meanwhile cannot be committed
					require.NoError(rt, err)
				}
			}
			for _, h := range w.holds {
				if r := w.live(h); r != nil && h.seat == x && h.off < below {
					w.settles(r)
				}
			}
		},
		"leave": func(*rapid.T) {
			if x := choose("whom", pulls); x != nil && rapid.IntRange(0, 3).Draw(rt, "one in four") == 0 {
				x.pull.Stop(errOver)
				x.pull.Leave()
				x.ends, x.stopped, x.waits = 1, true, false
				release(x, false)
			}
		},
		"handler ends": func(*rapid.T) {
			for range rapid.IntRange(1, 5).Draw(rt, "times") {
				running := slices.DeleteFunc(slices.Clone(w.holds), func(h *worldHold) bool { return h.out == nil })
				if len(running) == 0 {
					return
				}
				how := rapid.SampledFrom([]string{"nil", "nil", "nil", "nil", "error", "panic", "goexit", "reject", "crowded"}).Draw(rt, "how")
				w.ends(rapid.SampledFrom(running).Draw(rt, "which"), how)
				w.look()
			}
		},
		"ack":    use(delivery.Token.Ack, func(_ *worldHold, r *worldRecord) { w.settles(r) }),
		"reject": use(func(k delivery.Token) error { return k.Reject(errPoison) }, func(_ *worldHold, r *worldRecord) { w.settles(r) }),
		"nack": use(func(k delivery.Token) error { return k.Nack(-1) }, func(_ *worldHold, r *worldRecord) {
			w.fails(r, w.now()+of(w.cfg.Window.Backoff, r.attempt))
		}),
		"nack after": use(func(k delivery.Token) error { return k.Nack(0) }, func(_ *worldHold, r *worldRecord) {
			w.fails(r, w.now()+int64(ms(1)))
		}),
		"extend": func(*rapid.T) {
			h := token()
			if h == nil {
				return
			}
			if r, err := w.live(h), h.token.Extend(); r == nil {
				require.ErrorIs(rt, err, group.ErrFenced)
				require.True(rt, h.token.Deadline().IsZero())
			} else {
				require.NoError(rt, err)
				h.deadline = w.now() + of(w.cfg.Window.AckWait, r.attempt)
				require.Equal(rt, h.deadline, h.token.Deadline().UnixNano())
			}
		},
		"ack through": func(*rapid.T) {
			h := token()
			if h == nil {
				return
			}
			r, err := w.live(h), h.token.AckThrough()
			switch {
			case !w.cfg.Manual:
				require.ErrorIs(rt, err, delivery.ErrNoToken)
			case !w.cfg.Window.InOrder:
				require.ErrorIs(rt, err, delivery.ErrNotOwner)
			case r == nil:
				require.ErrorIs(rt, err, group.ErrFenced)
			default:
				require.NoError(rt, err)
				for off := w.floor(); off <= h.off; off++ {
					if x := w.recs[off]; x.hold != nil && x.hold.seat == h.seat || x.hold == nil && x.attempt > 0 {
						w.settles(x)
					}
				}
			}
		},
		"time passes": func(*rapid.T) {
			w.pass(w.now() + rapid.Int64Range(0, 6000).Draw(rt, "ms")*int64(time.Millisecond))
		},
		"seek": func(*rapid.T) {
			if rapid.IntRange(0, 3).Draw(rt, "one in four") > 0 {
				return
			}
			first, _ := w.p.Snapshot()
			to := rapid.Int64Range(first, w.next).Draw(rt, "to")
			require.NoError(rt, w.s.Seek(at(uint64(to))))
			for off := range w.next {
				w.recs[off] = &worldRecord{settled: off < to}
			}
			w.taken = to
		},
		"truncate": func(*rapid.T) {
			x := choose("whom", present)
			if x == nil || rapid.IntRange(0, 3).Draw(rt, "one in four") > 0 {
				return
			}
			first, _ := w.p.Snapshot()
			to := min(w.next, first+rapid.Int64Range(0, 10).Draw(rt, "to"))
			require.NoError(rt, w.p.TruncateBefore(background, to))
			x.started = true
			x.seat().Start() // so that it is noticed
			first, _ = w.p.Snapshot()
			for off := range first {
				if r := w.recs[off]; !r.settled {
					w.lost++
					w.settles(r)
				}
			}
		},
		"": func(*rapid.T) {
			w.look()
			stats := w.s.Stats()
			require.Equal(rt, w.lost, stats.Lost)
			if w.s.Drained() {
				require.Equal(rt, w.next, w.floor())
				for _, x := range w.seats {
					require.Zero(rt, x.running)
				}
			}
		},
	}
	publish(3)
	rt.Repeat(actions)

	// Whatever has happened, all that is left comes to a seat that is there, and is settled.
	for _, x := range w.seats {
		x.seat().Stop(errOver)
		x.started, x.stopped = true, true
		x.seat().Start()
		if x.pull != nil && x.ends == 0 {
			x.pull.Leave()
			x.ends = 1
		}
		synctest.Wait() // what it gave back may have begun elsewhere
	}
	for _, h := range w.holds {
		if h.out != nil {
			w.ends(h, "nil")
		}
	}
	for _, h := range w.begun {
		h.out <- func() error { return nil }
	}
	synctest.Wait()
	for _, x := range w.seats {
		require.Equal(rt, 1, x.ends, "ends")
		x.seat().Release()
	}
	last := w.s.run(t, func(_ context.Context, m *Message) error {
		if err := m.Ack(); w.cfg.Manual || !errors.Is(err, delivery.ErrNoToken) {
			return err
		}
		return nil
	})
	pass(time.Minute)
	require.True(rt, w.s.Drained())
	require.Equal(rt, w.next, w.s.Position())
	require.NoError(rt, w.s.Check(true))
	c := w.s.Window()
	require.Zero(rt, c.InFlight+c.Again+c.Delayed+c.Dead+c.Ahead)
	require.Zero(rt, w.s.Errors())
	last.Stop(errOver)
	<-last.ended
}
