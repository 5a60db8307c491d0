package arena

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"time"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/ratio"
)

// Side is one of the two that are compared.
type Side struct {
	*Rival
	Wait Wait
}

// String is the rival's name, with how it waits if that is not the default.
func (s Side) String() string {
	if s.Wait == s.DefaultWait() {
		return s.Name
	}
	return s.Name + "," + s.Wait.String()
}

// Match compares A with B in one workload, at one or more rates.
type Match struct {
	A, B     Side
	Topology Topology
	Size     int
	Rates    []float64 // 0 is as fast as they can

	Slices int           // of each side, at each rate
	Length time.Duration // about how long a slice is

	// Probe measures the way between the cores. Nil means load.ProbePlacement.
	Probe func() int64
}

// Outcome is what a Match says at one rate.
type Outcome struct {
	A        string   `json:"a"`
	B        string   `json:"b"`
	Topology Topology `json:"topology"`
	Size     int      `json:"size"`
	Rate     float64  `json:"rate"` // 0: as fast as they can
	As       []Slice  `json:"slices_a"`
	Bs       []Slice  `json:"slices_b"`

	// Skipped says why there are no slices.
	Skipped string `json:"skipped,omitempty"`
}

// Pairs are the slices that may be compared.
func (o *Outcome) Pairs() ratio.Pairs[Slice] {
	return ratio.Pair(o.As, o.Bs, func(s Slice) string { return s.Label() })
}

// Workload is for example "1->1 64 B max".
func (o *Outcome) Workload() string {
	return fmt.Sprintf("%s %d B %s", o.Topology.Name, o.Size, RateName(o.Rate))
}

// Run lets the slices of the two alternate. It returns an error if one of them fails, and what it has up to then. A workload
// that one of them cannot do gives an Outcome that is skipped.
func (m *Match) Run(ctx context.Context) (outs []Outcome, err error) {
	if m.Probe == nil {
		m.Probe = load.ProbePlacement
	}
	skip := func(why string) []Outcome {
		var outs []Outcome
		for _, r := range m.Rates {
			o := m.outcome(r)
			o.Skipped = why
			outs = append(outs, o)
		}
		return outs
	}
	var run [2]Runner
	var most [2]float64 // messages a second
	for i, side := range []Side{m.A, m.B} {
		if side.Missing != nil {
			if why := side.Missing(); why != "" {
				return skip(side.Name + ": " + why), nil
			}
		}
		var r Runner
		var err error
		labelled(ctx, side, func(context.Context) {
			r, err = Open(side.Rival, Spec{Topology: m.Topology, Size: m.Size, Wait: side.Wait})
		})
		if errors.Is(err, ErrUnsupported) {
			return skip(err.Error()), nil
		}
		if err != nil {
			return outs, err
		}
		run[i] = r
		defer func() {
			if e := r.Close(); e != nil {
				err = errors.Join(err, fmt.Errorf("%s: closing: %w", side.Name, e))
			}
		}()
		labelled(ctx, side, func(ctx context.Context) { most[i], err = m.calibrate(ctx, r, side.Warm) })
		if err != nil {
			return outs, err
		}
	}
	for _, rate := range m.Rates {
		o := m.outcome(rate)
		n := [2]uint64{m.messages(most[0]), m.messages(most[1])}
		if rate > 0 {
			n = [2]uint64{m.messages(rate), m.messages(rate)}
			for i, side := range []Side{m.A, m.B} {
				if most[i] < rate {
					o.Skipped = fmt.Sprintf("%s moves %.2g M/s at most", side, most[i]/1e6)
				}
			}
		}
		for range m.Slices {
			if o.Skipped != "" {
				break
			}
			for i, into := range []*[]Slice{&o.As, &o.Bs} {
				run[i].Rated(rate)
				var s Slice
				labelled(ctx, []Side{m.A, m.B}[i], func(ctx context.Context) { s, err = m.slice(ctx, run[i], n[i]) })
				if err != nil {
					return append(outs, o), err
				}
				*into = append(*into, s)
			}
		}
		outs = append(outs, o)
	}
	return outs, nil
}

// labelled calls f so that a profile can tell whose time it is: the samples of all goroutines that it starts have the label rival.
func labelled(ctx context.Context, s Side, f func(context.Context)) {
	pprof.Do(ctx, pprof.Labels("rival", s.String()), f)
}

func (m *Match) outcome(rate float64) Outcome {
	return Outcome{A: m.A.String(), B: m.B.String(), Topology: m.Topology, Size: m.Size, Rate: rate}
}

// calibrate warms a line up, so that its memory has been used before, and returns its rate as it is then.
func (m *Match) calibrate(ctx context.Context, r Runner, warm time.Duration) (float64, error) {
	const first = 2000
	var ran time.Duration
	for n := uint64(first); ; {
		s, err := r.Slice(ctx, n)
		if err != nil {
			return 0, err
		}
		ran += time.Duration(s.Ns)
		long := time.Duration(s.Ns) >= m.Length/2 || n >= 1<<32
		if long && ran >= warm {
			return s.Rate(), nil
		}
		if !long {
			n *= 2
		}
	}
}

func (m *Match) messages(rate float64) uint64 {
	return max(uint64(rate*m.Length.Seconds()), 100)
}

func (m *Match) slice(ctx context.Context, r Runner, n uint64) (Slice, error) {
	before := m.Probe()
	s, err := r.Slice(ctx, n)
	s.Placed = ratio.Placed{Before: before, After: m.Probe()}
	return s, err
}
