package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrConfig is wrapped by what Find returns if a search makes no sense. The text names the field.
var ErrConfig = errors.New("sweep: configuration")

// Config says how to search. The zero value of each field but From means its default.
type Config struct {
	// From is the first rate, which should be an easy one. Must be above 0.
	From float64
	// To is a rate that is not exceeded. 0 means none. Least is one below which nothing is tried, though From misses: never is anything
	// below a thousandth of From. 0 means that alone.
	To, Least float64
	// ToWhy and LeastWhy say why there is nothing beyond, for the text of a Knee that ends there. They may be empty.
	ToWhy, LeastWhy string
	// Factor is by how much the rate is raised while the SLO is met. 0 means 2; above 1.
	Factor float64
	// Precision is how near the knee must be found: the search ends when the lowest rate that missed is at most this fraction above
	// the highest one that met. 0 means 0.05; 0.001 to 1.
	Precision float64
	// Runs is the most runs that are made. 0 means 60. When they are used up, the search ends with what it has.
	Runs int
	// Step, if not nil, is called after each run.
	Step func(Run)
}

// Outcome is what a run at a rate showed.
type Outcome struct {
	// Met says that the run met the SLO and held its rate.
	Met bool
	// Refused says, unless it is nil, why there can be no run at this rate, nor at any above it. That is no miss: nothing was tried.
	Refused error
	// Result is the caller's own.
	Result any
}

// Run is one run of a search.
type Run struct {
	Rate float64
	Outcome
}

// Point is a rate and what all runs at it said.
type Point struct {
	Rate float64
	// Met is what most of the runs said.
	Met  bool
	Runs []Run
}

// Ending says why a search ended.
type Ending string

const (
	Found    Ending = "found"       // the knee lies between Knee and Above
	TooHigh  Ending = "too high"    // already the first rate missed, and lower ones down to a thousandth of it
	NoLimit  Ending = "no limit"    // the rate To met, or the highest at which there can be a run
	Cut      Ending = "interrupted" // by the end of ctx: as with OutOfRun
	Failed   Ending = "failed"      // a run did: as with OutOfRun
	OutOfRun Ending = "runs used"   // the search was not over: the knee lies between Knee and Above, or above Knee if Above is 0
)

// Knee is what a search found.
type Knee struct {
	Ending Ending
	// Knee is the highest rate that met the SLO, or 0; Above is the lowest that missed, above it, or 0.
	Knee, Above float64
	// Points are the rates that were tried, in order of the rate: with the latencies of their runs, they are the curve of latency
	// against rate.
	Points []Point
	// Runs is how many runs were made.
	Runs int
	// Why says why nothing beyond was tried, of a search that ended with NoLimit or TooHigh. It may be empty.
	Why string
}

// String says it in a sentence.
func (k Knee) String() string {
	text := fmt.Sprintf("the highest rate that meets the SLO is %s a second (%s does not)", figure(k.Knee), figure(k.Above))
	switch {
	case k.Knee == 0 && len(k.Points) > 0:
		text = "no rate that was tried meets the SLO, down to " + figure(k.Points[0].Rate) + " a second"
	case k.Knee == 0:
		text = "no rate was tried"
	case k.Above == 0:
		text = figure(k.Knee) + " a second still meets the SLO, and more was not tried"
	}
	if k.Why != "" {
		text += ": " + k.Why
	}
	switch k.Ending {
	case Cut:
		text += "; the search was not over when it was interrupted"
	case Failed:
		text += "; the search was not over when a run failed"
	case OutOfRun:
		text += "; the search was not over when its runs were used up"
	}
	return text
}

// figure writes a rate with four digits: 1.414 M, 14.14 k.
func figure(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.4g M", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.4g k", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}

func (c *Config) defaults() error {
	if c.Factor == 0 {
		c.Factor = 2
	}
	if c.Precision == 0 {
		c.Precision = 0.05
	}
	if c.Runs == 0 {
		c.Runs = 60
	}
	if c.To == 0 {
		c.To = math.Inf(1)
	}
	switch {
	case !(c.From > 0) || math.IsInf(c.From, 1):
		return fmt.Errorf("%w: from is %v: must be above 0", ErrConfig, c.From)
	case !(c.To >= c.From):
		return fmt.Errorf("%w: to is %v: must be at least from, %v", ErrConfig, c.To, c.From)
	case !(c.Least >= 0 && c.Least <= c.From):
		return fmt.Errorf("%w: least is %v: must be 0 to from, %v", ErrConfig, c.Least, c.From)
	case !(c.Factor > 1) || c.Factor > 1000:
		return fmt.Errorf("%w: factor is %v: must be above 1, at most 1000", ErrConfig, c.Factor)
	case !(c.Precision >= 0.001) || c.Precision > 1:
		return fmt.Errorf("%w: precision is %v: must be 0.001 to 1", ErrConfig, c.Precision)
	case c.Runs < 1:
		return fmt.Errorf("%w: runs is %d: must be at least 1", ErrConfig, c.Runs)
	}
	return nil
}

// downTo is how far below From the search goes if From misses.
const downTo = 1e-3

// search is a search in progress.
type search struct {
	c      Config
	ctx    context.Context
	run    func(ctx context.Context, rate float64) (Outcome, error)
	points []Point
	runs   int
}

// errUsed ends a search whose runs are used up.
var errUsed = errors.New("sweep: runs used")

// Find searches for the knee. It ends early, with what it has, with the error of run, or with that of ctx.
func Find(ctx context.Context, c Config, run func(ctx context.Context, rate float64) (Outcome, error)) (Knee, error) {
	if err := c.defaults(); err != nil {
		return Knee{}, err
	}
	s := &search{c: c, ctx: ctx, run: run}
	low, high, err := s.find()
	if err != nil && low > 0 && !s.point(low).Met { // it was to meet again, and that is not decided
		low = s.below(low)
	}
	k := Knee{Ending: Found, Knee: low, Above: high, Points: s.points, Runs: s.runs}
	switch refused := s.refused(high); {
	case errors.Is(err, errUsed):
		k.Ending, err = OutOfRun, nil
	case err != nil && errors.Is(err, ctx.Err()):
		k.Ending = Cut
	case err != nil:
		k.Ending = Failed
	case low == 0:
		k.Ending = TooHigh
		if s.c.Least >= s.c.From*downTo {
			k.Why = s.c.LeastWhy
		}
	case high == 0:
		k.Ending, k.Why = NoLimit, s.c.ToWhy
	case refused != nil:
		k.Ending, k.Above, k.Why = NoLimit, 0, refused.Error()
	}
	return k, err
}

// refused returns why there can be no run at a rate that was to be tried, or nil.
func (s *search) refused(rate float64) error {
	for _, p := range s.points {
		if p.Rate == rate && len(p.Runs) > 0 {
			return p.Runs[0].Refused
		}
	}
	return nil
}

// find returns the highest rate that met and the lowest above it that missed, also with an error. 0 is none.
func (s *search) find() (low, high float64, err error) {
	low, high, err = s.ramp(0, s.c.From)
	for err == nil && low > 0 && high > 0 {
		if low, high, err = s.bisect(low, high); err != nil {
			break
		}
		// Many comparisons have led here, and some may have been luck. Both ends must do it again, the upper one more often: a run
		// that is disturbed misses, at any rate, but nothing makes a run meet.
		var met bool
		if met, err = s.majority(low, 2); err != nil {
			break
		}
		if !met {
			high = low
			if low = s.below(high); low == 0 {
				low, high, err = s.descend(high)
			}
			continue
		}
		if met, err = s.majority(high, 3); err != nil || !met {
			break
		}
		if low, high = high, s.above(high); high == 0 {
			low, high, err = s.raise(low)
		}
	}
	return low, high, err
}

// raise goes on above a rate that met.
func (s *search) raise(low float64) (float64, float64, error) {
	if low >= s.c.To {
		return low, 0, nil
	}
	return s.ramp(low, min(low*s.c.Factor, s.c.To))
}

// ramp raises the rate until it misses. If it does at once and there is no lower one that met, it goes down.
func (s *search) ramp(low, rate float64) (float64, float64, error) {
	met, err := s.try(rate)
	switch {
	case err != nil:
		return low, 0, err
	case met:
		return s.raise(rate)
	case low == 0:
		return s.descend(rate)
	}
	return low, rate, nil
}

// descend lowers a rate that missed until it meets.
func (s *search) descend(high float64) (low, above float64, err error) {
	for rate := high / s.c.Factor; rate >= max(s.c.From*downTo, s.c.Least); rate /= s.c.Factor {
		met, err := s.try(rate)
		if err != nil || met {
			if err != nil {
				rate = 0
			}
			return rate, high, err
		}
		high = rate
	}
	return 0, high, nil
}

// bisect narrows the gap between a rate that met and one that missed.
func (s *search) bisect(low, high float64) (float64, float64, error) {
	for high > low*(1+s.c.Precision) {
		// The middle on a logarithmic scale, since the precision is a fraction, too.
		middle := math.Sqrt(low * high)
		met, err := s.try(middle)
		switch {
		case err != nil:
			return low, high, err
		case met:
			low = middle
		default:
			high = middle
		}
	}
	return low, high, nil
}

// below returns the highest rate below a rate that met, or 0.
func (s *search) below(rate float64) float64 {
	for _, p := range slices.Backward(s.points) {
		if p.Rate < rate && p.Met {
			return p.Rate
		}
	}
	return 0
}

// above returns the lowest rate above a rate that missed, or 0.
func (s *search) above(rate float64) float64 {
	for _, p := range s.points {
		if p.Rate > rate && !p.Met {
			return p.Rate
		}
	}
	return 0
}

// try makes runs at a rate: one if it meets, else what two of three say.
func (s *search) try(rate float64) (met bool, err error) {
	met, err = s.once(rate)
	if err != nil || met {
		return met, err
	}
	return s.majority(rate, 2)
}

// majority makes runs at a rate until so many of all that were made there say the same.
func (s *search) majority(rate float64, enough int) (met bool, err error) {
	for {
		good, bad := s.point(rate).votes()
		if good >= enough || bad >= enough {
			return good >= enough, nil
		}
		if _, err := s.once(rate); err != nil {
			return false, err
		}
	}
}

// once makes a run.
func (s *search) once(rate float64) (met bool, err error) {
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	if s.runs >= s.c.Runs {
		return false, errUsed
	}
	s.runs++
	o, err := s.run(s.ctx, rate)
	if err != nil {
		return false, err
	}
	r := Run{rate, o}
	p := s.point(rate)
	p.Runs = append(p.Runs, r)
	good, bad := p.votes()
	p.Met = good > bad
	if s.c.Step != nil {
		s.c.Step(r)
	}
	return o.Met, nil
}

// point returns the point of a rate, which may be new.
func (s *search) point(rate float64) *Point {
	i, ok := slices.BinarySearchFunc(s.points, rate, func(p Point, rate float64) int {
		switch {
		case p.Rate < rate:
			return -1
		case p.Rate > rate:
			return 1
		}
		return 0
	})
	if !ok {
		s.points = slices.Insert(s.points, i, Point{Rate: rate})
	}
	return &s.points[i]
}

// sure is how many runs one counts for that need not be made again.
const sure = 3

func (p *Point) votes() (good, bad int) {
	for _, r := range p.Runs {
		switch {
		case r.Met:
			good++
		case r.Refused != nil:
			bad += sure
		default:
			bad++
		}
	}
	return good, bad
}
