package due_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine/internal/due"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/testkit"
)

// TestAlarms_Model sets and clears alarms at random and lets time pass, and compares with a table: what rings at which
// instant, and what each alarm is set to. Some alarms set themselves again as they ring.
func TestAlarms_Model(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// The choices are made outside the bubble, which has a clock of its own.
		steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 60).Draw(rt, "steps")
		var wrong string
		synctest.Test(t, func(*testing.T) { wrong = checkAlarms(steps) })
		require.Empty(rt, wrong)
	})
}

const modelAlarms = 4

// step is one call: something with an alarm, then time passes.
type step struct {
	what  string
	which int
	after int64 // from now; Never stays that
	pause time.Duration
}

func drawStep(t *rapid.T) step {
	return step{
		what:  rapid.SampledFrom([]string{"set", "set", "earlier", "earlier", "clear", "pace"}).Draw(t, "what"),
		which: rapid.IntRange(0, modelAlarms-1).Draw(t, "which"),
		after: rapid.OneOf(rapid.Int64Range(-3, 12), rapid.Int64Range(-3, 12), rapid.SampledFrom([]int64{math.MinInt64, due.Never - 1, due.Never})).Draw(t, "after"),
		pause: time.Duration(rapid.SampledFrom([]int64{0, 0, 1, 2, 3, 5, 20}).Draw(t, "pause")),
	}
}

// checkAlarms takes the steps and returns what is wrong, or "".
func checkAlarms(steps []step) string {
	var (
		clock  = atomicx.NewClock()
		alarms [modelAlarms]due.Alarm
		rung   []strike
		at     = [modelAlarms]int64{due.Never, due.Never, due.Never, due.Never} // the model
		pace   [modelAlarms]int64                                               // how soon a ring sets its alarm again, if positive
		want   []strike
	)
	var mu sync.Mutex // for rung, and for pace when a ring reads it
	s := due.NewAlarms(&clock)
	defer func() {
		s.Close()
		<-s.Done()
	}()
	for i := range alarms {
		alarms[i].Init(s, func(now int64) {
			mu.Lock()
			defer mu.Unlock()
			rung = append(rung, strike{i, now})
			if pace[i] > 0 {
				alarms[i].Set(now + pace[i])
			}
		})
	}
	// pass lets the model's time pass, up to now.
	from := clock.Now()
	pass := func(now int64) {
		for ; from <= now; from++ {
			for i := range at {
				if at[i] > from {
					continue
				}
				want = append(want, strike{i, from})
				at[i] = due.Never
				if pace[i] > 0 {
					at[i] = from + pace[i]
				}
			}
		}
		from = now // once more: something may be set to it
	}
	for _, x := range steps {
		now := clock.Now()
		when := x.after
		if when > math.MinInt64 && when < due.Never-1 {
			when += now
		}
		switch x.what {
		case "set":
			alarms[x.which].Set(when)
			at[x.which] = when
		case "earlier":
			alarms[x.which].SetEarlier(when)
			at[x.which] = min(at[x.which], when)
		case "clear":
			alarms[x.which].Clear()
			at[x.which] = due.Never
		case "pace":
			mu.Lock()
			pace[x.which] = min(x.after, 12)
			mu.Unlock()
		}
		pass(now) // what was set to the past rings before any time passes
		synctest.Wait()
		for i := range alarms {
			if got := alarms[i].At(); got != at[i] {
				return fmt.Sprintf("alarm %d is set to %d, not %d", i, got, at[i])
			}
		}
		testkit.Pass(x.pause)
		pass(clock.Now())
		byTime := func(a, b strike) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.which, b.which)) }
		mu.Lock()
		slices.SortStableFunc(rung, byTime)
		slices.SortStableFunc(want, byTime)
		same := slices.Equal(want, rung)
		mu.Unlock()
		if !same {
			return fmt.Sprintf("rung: %v, not %v", rung, want)
		}
	}
	return ""
}
