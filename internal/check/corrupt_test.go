package check_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leatlog/leat/internal/check"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// corruption makes a history bad in one way, and reports whether it found where.
type corruption struct {
	name    string
	anomaly check.Anomaly
	edit    func(e *editor) bool
}

var corruptions = slices.Concat(logCorruptions, ownerCorruptions, otherCorruptions)

// otherCorruptions are of bytes, the end and the counters.
var otherCorruptions = []corruption{
	{"torn value", check.TornValue, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool { return len(o.Recs) > 0 })
		o.Recs[e.IntN(len(o.Recs))].Bad = check.Torn
		return true
	}},
	{"other bytes", check.TornValue, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool { return len(o.Recs) > 0 })
		o.Recs[e.IntN(len(o.Recs))].Sum++
		return true
	}},
	{"mutated view", check.MutatedView, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool { return o.Kind == check.OpHandle })
		o.Recs[e.IntN(len(o.Recs))].Bad = check.Mutated
		return true
	}},
	{"send after close", check.PublishAfterClose, func(e *editor) bool {
		end := e.pick(ok(check.OpClose))
		s := e.pick(ok(check.OpSend))
		s.Call, s.Ret = end.Ret+1, end.Ret+2
		return true
	}},
	{"counter off by one", check.StatsDrift, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool { return ok(check.OpCounter)(o) && check.Counter(o.Val) == check.Reclaimed })
		o.Off += int64(2*e.IntN(2) - 1)
		return true
	}},
}

var crashCorruptions = []corruption{
	{"log cut below what was durable", check.Crash, func(e *editor) bool {
		re := e.pick(func(o *check.Op) bool {
			return o.Kind == check.OpReopen && e.any(func(s *check.Op) bool {
				return ok(check.OpSend)(s) && s.Part == o.Part && s.Ret < o.Call && s.Off < o.Off
			})
		})
		if re == nil {
			return false
		}
		s := e.pick(func(s *check.Op) bool {
			return ok(check.OpSend)(s) && s.Part == re.Part && s.Ret < re.Call && s.Off < re.Off
		})
		re.Off = s.Off
		return true
	}},
	{"offset used again after the crash", check.Crash, func(e *editor) bool {
		crash := e.pick(func(o *check.Op) bool { return o.Kind == check.OpCrash })
		final := e.pick(func(o *check.Op) bool {
			if !o.Final || len(o.Recs) == 0 {
				return false
			}
			s := e.send(o.Recs[0].Val)
			return s.Res == check.Ok && s.Ret < crash.Call
		})
		later := e.pick(func(o *check.Op) bool { return ok(check.OpSend)(o) && o.Call > crash.Ret })
		if final == nil || later == nil {
			return false
		}
		final.Recs[0].Val, final.Recs[0].Sum = later.Val, later.Sum
		return true
	}},
	{"failed record readable after the crash", check.Crash, func(e *editor) bool {
		crash := e.pick(func(o *check.Op) bool { return o.Kind == check.OpCrash })
		final := e.pick(func(o *check.Op) bool {
			return o.Final && len(o.Recs) > 0 && e.send(o.Recs[0].Val).Call < crash.Call
		})
		if final == nil {
			return false
		}
		e.send(final.Recs[0].Val).Res = check.Fail
		return true
	}},
	{"commit beyond the log", check.Crash, func(e *editor) bool {
		t := e.pick(func(o *check.Op) bool { return o.Kind == check.OpTruncated })
		if t == nil {
			return false
		}
		gone := *t
		a := e.pick(func(o *check.Op) bool {
			return o.Kind == check.OpAssign && o.Consumer == gone.Consumer && o.Part == gone.Part && o.Call >= gone.Call
		})
		if a == nil {
			return false
		}
		for i := range e.h.Ops { // the first one since
			if o := &e.h.Ops[i]; o.Kind == check.OpAssign && o.Consumer == gone.Consumer && o.Part == gone.Part && o.Call >= gone.Call {
				o.Off = gone.Off + 1000
				break
			}
		}
		e.drop(func(o *check.Op) bool { return o.Kind == check.OpTruncated })
		return true
	}},
}

// tries returns in how many places each corruption is tried; 95 of 100 must be found.
func tries() int {
	if raceEnabled || testing.Short() {
		return 10
	}
	return 50
}

// TestCorrupt makes good histories bad in one place, many times each, and looks whether that is found for what it is.
func TestCorrupt(t *testing.T) {
	corrupt(t, corruptions, play, check.Options{})
}

func TestCorrupt_Crash(t *testing.T) {
	corrupt(t, crashCorruptions, playCrash, check.Options{Durability: check.Durable})
}

func corrupt(t *testing.T, list []corruption, play func(seed uint64, until, step int64) *check.History, opt check.Options) {
	var good []*check.History
	for seed := range uint64(25) {
		good = append(good, play(1000+seed, 2500, 1))
	}
	places := tries()
	for _, x := range list {
		t.Run(strings.ReplaceAll(x.name, " ", "_"), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(len(x.name)), 3))
			found, tried := 0, 0
			var missed *check.Report
			for n := 0; n < places; tried++ {
				require.Less(t, tried, 40*places, "it cannot be tried")
				e := &editor{rng, good[rng.IntN(len(good))].Clone()}
				if !x.edit(e) {
					continue
				}
				n++
				if r := e.h.Check(opt); r.Has(x.anomaly) {
					found++
				} else {
					missed = r
				}
			}
			assert.GreaterOrEqual(t, found, (95*places+99)/100, "%s: found %d of %d; one that was missed:\n%s", x.anomaly, found, places, missed)
		})
	}
}
