package group_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/group"
)

// TestBUG029_InFlightStaysWithinItsBounds: a million operations in random order, with three in flight at most.
func TestBUG029_InFlightStaysWithinItsBounds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(29, 29))
	s := group.NewShared(group.SharedConfig{MaxInFlight: 3, AckWait: []time.Duration{10}, MaxWindow: 20}, 0)
	type hold struct {
		m group.MemberID
		t group.Token
	}
	holds := map[uint64]hold{} // by acquisition
	var now int64
	end, full := uint64(0), 0
	drop := func(h hold) { delete(holds, h.t.ID) }
	for range rounds(1_000_000) {
		switch op := rnd.IntN(12); {
		case op < 4:
			end += uint64(rnd.IntN(3))
			for range []int{1, 2, 7}[rnd.IntN(3)] {
				m := group.MemberID(1 + rnd.IntN(3))
				d, outcome := s.Acquire(m, end, now)
				if outcome != group.Acquired {
					if (outcome == group.InFlightFull) != (len(holds) == 3) {
						require.Fail(t, "wrong outcome", "%v with %d", outcome, len(holds))
					}
					if outcome == group.InFlightFull {
						full++
					}
					break
				}
				holds[d.Token.ID] = hold{m, d.Token}
			}
		case op < 10:
			for _, h := range holds { // one of them
				var err error
				switch op {
				case 4, 5:
					err = s.Ack(h.m, h.t)
				case 6:
					_, err = s.Nack(h.m, h.t, now)
				case 7:
					_, err = s.NackAfter(h.m, h.t, 5, now)
				case 8:
					err = s.Return(h.m, h.t)
				case 9:
					_, err = s.Reject(h.m, h.t)
				}
				if err != nil || s.Ack(h.m, h.t) == nil {
					require.NoError(t, err)
					require.Fail(t, "given back twice")
				}
				drop(h)
				break
			}
		case op == 10:
			now += int64(rnd.IntN(4))
			for _, e := range s.Tick(now, nil) {
				drop(hold{t: e.Token})
			}
		case rnd.IntN(20) == 0:
			s.Reset(s.Floor() - min(s.Floor(), 5))
			clear(holds)
		default:
			gone := group.MemberID(1 + rnd.IntN(3))
			s.Release(gone, now)
			for _, h := range holds {
				if h.m == gone {
					drop(h)
				}
			}
		}
		c := s.Counts()
		if c.InFlight != len(holds) || c.InFlight > 3 || c.Again < 0 || c.Delayed < 0 || c.Ahead < 0 {
			require.Equal(t, len(holds), c.InFlight, "%+v", c)
			require.Fail(t, "out of bounds", "%+v", c)
		}
	}
	require.Positive(t, full, "never at the limit")
}

// TestBUG056_SmallestWindow: one record in flight, in a window of one.
func TestBUG056_SmallestWindow(t *testing.T) {
	for _, size := range []int{1, 2} {
		s := group.NewShared(group.SharedConfig{MaxInFlight: size, MaxWindow: size, MaxDeliveries: 2, DeadLetter: true, Backoff: []time.Duration{3}}, 0)
		full := 0
		for now := int64(0); s.Floor() < 1000; now++ {
			s.Tick(now, nil)
			if dead, ok := s.TakeDead(); ok {
				require.NoError(t, s.Buried(dead.Token))
			}
			d, outcome := s.Acquire(alice, 1000, now)
			if outcome != group.Acquired {
				require.Equal(t, group.WindowFull, outcome)
				full++
				continue
			}
			if d.Token.Offset%7 == 0 {
				_, err := s.Nack(alice, d.Token, now)
				require.NoError(t, err)
			} else {
				require.NoError(t, s.Ack(alice, d.Token))
			}
		}
		assert.Equal(t, uint64(143), s.Counts().Buried)
		assert.Greater(t, full, 100)
	}
}

func TestShared_ShrinkKeepsWhatIsThere(t *testing.T) {
	s := group.NewShared(group.SharedConfig{}, 0)
	var ds []group.Delivery
	for range 1000 {
		ds = append(ds, acquire(t, s, alice, 1000, 0))
	}
	s.Shrink()
	for _, d := range ds {
		require.NoError(t, s.Ack(alice, d.Token))
	}
	s.Shrink()
	assert.Equal(t, group.TokenSettled, fault(t, s.Ack(alice, ds[0].Token)))
	assert.Equal(t, uint64(1000), acquire(t, s, alice, 2000, 0).Token.Offset)
}

// TestShared_SteadyStateAllocatesNothing: deliveries, acknowledgements in another order, extensions, failures with a
// backoff, and time-outs.
func TestShared_SteadyStateAllocatesNothing(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		s := group.NewShared(group.SharedConfig{InOrder: inOrder, AckWait: []time.Duration{10, 30}, Backoff: []time.Duration{5, 50}}, 0)
		var now int64
		ds := make([]group.Delivery, 0, 64)
		expired := make([]group.Expired, 0, 64)
		round := func() {
			now += 20
			expired = s.Tick(now, expired[:0])
			ds = ds[:0]
			for range 64 {
				if d, outcome := s.Acquire(alice, math.MaxInt64, now); outcome == group.Acquired {
					ds = append(ds, d)
				}
			}
			for i := len(ds) - 1; i >= 0; i-- {
				var err error
				switch {
				case i%16 == 3 && ds[i].Attempt < 3:
					_, err = s.Nack(alice, ds[i].Token, now)
				case i%16 == 5 && ds[i].Attempt < 3:
					_, err = s.Extend(alice, ds[i].Token, now)
				default:
					err = s.Ack(alice, ds[i].Token)
				}
				if err != nil {
					panic(err)
				}
			}
		}
		for range 100 {
			round()
		}
		assert.Zero(t, testing.AllocsPerRun(200, round))
		assert.Positive(t, s.Counts().Expired)
		assert.Positive(t, s.Counts().Redeliveries)
	}
}
