package check_test

import (
	"flag"
	"testing"
	"time"

	"github.com/leatlog/leat/internal/check"
	"github.com/leatlog/leat/internal/testkit"
	"github.com/stretchr/testify/require"
)

var goodSeeds = flag.Int("check.seeds", 0, "how many good histories are played; 0 means about a hundred")

// seeds returns how many histories are played: n in a usual run.
func seeds(n int) uint64 {
	if *goodSeeds != 0 {
		n = *goodSeeds
	} else if n = testkit.Rounds(n); raceEnabled {
		n = max(n/10, 1)
	}
	return uint64(n)
}

// steps are how coarse the clock is in a history: the coarser the more has the same time.
var steps = []int64{1, 1, 10, 50}

// play makes a good history of about that many steps of the clock, with consumers of all kinds.
func play(seed uint64, until, step int64) *check.History {
	s := newSim(seed, step)
	s.until = until
	a, b := s.partition("a"), s.partition("b")
	both := []*simPart{a, b}
	for range 1 + s.IntN(4) {
		s.producer(both)
	}
	s.retention(a)
	if s.chance(2) {
		s.retention(b)
	}
	for _, p := range both {
		s.reader(p)
		s.subscription(p, check.ConsumerConfig{})
		s.subscription(p, check.ConsumerConfig{Mode: check.AtMostOnce})
		s.subscription(p, check.ConsumerConfig{MaxDeliveries: 2, Protected: true})
		s.subscription(p, check.ConsumerConfig{Mode: check.Manual})
		s.share(p, check.Manual, 2)
		s.share(p, check.AtLeastOnce, 3)
	}
	s.group(both, check.ConsumerConfig{}, 3, false)
	s.group(both, check.ConsumerConfig{Protected: true, MaxDeliveries: 3}, 3, false)
	s.group(both, check.ConsumerConfig{Mode: check.AtMostOnce}, 3, false)
	s.group(both, check.ConsumerConfig{Mode: check.Manual, AckWait: time.Duration(400 / s.coarse)}, 2, false)
	s.group(both, check.ConsumerConfig{Mode: check.ByCommit}, 2, false)
	s.group(both, check.ConsumerConfig{ByKey: true}, 2, false)
	s.group(both, check.ConsumerConfig{}, 3, true)
	return s.finish()
}

// TestGood: in histories of an engine that does all right nothing is found.
func TestGood(t *testing.T) {
	for seed := range seeds(150) {
		r := play(seed, 3000, steps[seed%4]).Check(check.Options{})
		require.True(t, r.Ok(), "%s", r)
	}
}

// playCrash makes a good history with a crash in the middle, after which all that was acknowledged is there.
func playCrash(seed uint64, until, step int64) *check.History {
	s := newSim(seed, step)
	s.until = until
	p := s.partition("a")
	parts := []*simPart{p, s.partition("b")}
	s.retention(p)
	s.reader(p)
	s.producer(parts)
	s.producer(parts)
	s.group(parts, check.ConsumerConfig{}, 2, false)
	s.group(parts, check.ConsumerConfig{Mode: check.Manual}, 2, false)
	s.group(parts, check.ConsumerConfig{Mode: check.ByCommit}, 2, false)
	s.group(parts, check.ConsumerConfig{ByKey: true}, 2, false)
	s.in(until/2, func() {
		s.crash()
		s.producer(parts)
		s.producer(parts)
		s.reader(p)
	})
	return s.finish()
}

func TestGood_Crash(t *testing.T) {
	for seed := range seeds(100) {
		r := playCrash(seed, 3000, steps[seed%4]).Check(check.Options{Durability: check.Durable})
		require.True(t, r.Ok(), "%s", r)
	}
}
