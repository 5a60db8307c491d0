//go:build explore

package explore

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/leatlog/leat/internal/atomicx"
)

// decision is one point of a schedule at which there was more than one way to go on.
type decision struct {
	cost   [2 * maxThreads]uint8 // of each way
	before uint16                // what the schedule cost up to here
	sign   uint32                // of the ways
	n      uint8                 // how many ways
	taken  uint8
}

// strategy says how to go on where the path ends. options is nil for a decision that is not between threads.
type strategy func(d *decision, options []option) uint8

func first(*decision, []option) uint8 { return 0 }

// pick returns the thread to do its operation next, or nil if the schedule is over. cur is the thread that has run, or nil.
// Stores that are chosen to be flushed are flushed on the way.
func (r *runner) pick(cur *thread) *thread {
	for {
		n := 0
		start := 0
		if cur != nil {
			start = cur.id + 1
			if r.enabled(cur) {
				r.options[0] = option{thread: cur}
				n = 1
			}
		}
		for i := range r.threads {
			t := r.threads[(start+i)%len(r.threads)]
			if t != cur && r.enabled(t) {
				r.options[n] = option{thread: t, cost: uint8(n)}
				n++
			}
		}
		cost := uint8(min(n, 1))
		for _, t := range r.threads {
			if len(t.buffer) > 0 {
				r.options[n] = option{thread: t, flush: true, cost: cost}
				n++
			}
		}
		if n == 0 {
			if r.over() {
				return nil
			}
			continue
		}
		o := &r.options[r.decide(r.options[:n])]
		if r.unwind {
			return nil
		}
		if !o.flush {
			return o.thread
		}
		r.flush(o.thread)
	}
}

// maxStalls is how often all threads in a Relax get another turn although nothing changes: more than the turns of any loop
// that gives up by itself.
const maxStalls = 300

// over is called when nothing can go on, and reports whether that is the end, good or bad.
func (r *runner) over() bool {
	ended, polite := true, false
	if r.stalled != r.changes {
		r.stalled, r.stalls = r.changes, 0
	}
	r.stalls++
	for _, t := range r.threads {
		ended = ended && t.ended
		if !t.ended && t.op == atomicx.OpRelax && r.stalls <= maxStalls {
			t.polite, polite = true, true
		}
	}
	if ended {
		return true
	}
	if polite {
		return false
	}
	var left []string
	for _, t := range r.threads {
		if !t.ended {
			left = append(left, t.name+" "+waiting(t.op))
		}
	}
	r.fail(Deadlock, "nothing can go on: %s", strings.Join(left, ", "))
	return true
}

// decide takes one of the options.
func (r *runner) decide(options []option) int {
	if len(options) == 1 {
		return 0
	}
	sign := uint32(0)
	for _, o := range options {
		sign = sign*37 + uint32(o.thread.id)<<8 + uint32(o.thread.op)<<1
		if o.flush {
			sign++
		}
	}
	d := r.at(len(options), sign)
	if d.taken == undecided {
		for i := range options {
			d.cost[i] = options[i].cost
		}
		d.taken = r.strategy(d, options)
	}
	r.cost += int(d.cost[d.taken])
	return int(d.taken)
}

// choose is a decision between n ways of which all but the first cost something.
func (r *runner) choose(n int, cost uint8) int {
	d := r.at(n, 0)
	if r.unwind {
		panic(unwinding{})
	}
	if d.taken == undecided {
		for i := 1; i < n; i++ {
			d.cost[i] = cost
		}
		d.taken = r.strategy(d, nil)
	}
	r.cost += int(d.cost[d.taken])
	if r.trace != nil {
		r.trace.chose(r.running, int(d.taken), n)
	}
	return int(d.taken)
}

func (r *runner) chooseFree(n int) int {
	if n < 1 || n > 2*maxThreads {
		panic("explore: Choose(" + strconv.Itoa(n) + ")")
	}
	if n == 1 {
		return 0
	}
	return r.choose(n, 0)
}

const undecided = 0xFF

// at returns the decision at this point of the schedule: the path's, or a new one.
func (r *runner) at(n int, sign uint32) *decision {
	if r.depth == len(r.path) {
		r.path = append(r.path, decision{n: uint8(n), sign: sign, taken: undecided, before: uint16(r.cost)})
	}
	d := &r.path[r.depth]
	r.depth++
	if int(d.n) != n || d.sign != sign {
		r.fail(Nondeterminism, "at decision %d of the schedule there are other ways to go on than before", r.depth)
		d.taken = 0
	}
	return d
}

// advancePath makes the path lead to the next schedule that costs at most bound, and reports whether there is one. skipped
// is set if there is one that costs more.
func (r *runner) advancePath(bound int, skipped *bool) bool {
	for len(r.path) > 0 {
		d := &r.path[len(r.path)-1]
		for k := d.taken + 1; k < d.n; k++ {
			if int(d.before)+int(d.cost[k]) <= bound {
				d.taken = k
				return true
			}
			*skipped = true
		}
		r.path = r.path[:len(r.path)-1]
	}
	return false
}

// searchAtOnce searches depth first to the last bound, and reports whether there is nothing wrong. Each schedule is run once then, and
// what it costs says which bounds it belongs to.
func (r *runner) searchAtOnce(res *Result) bool {
	r.strategy = first
	skipped := false
	var of []int // schedules by cost
	r.path = r.path[:0]
	for n := 1; ; n++ {
		r.once()
		res.ran++
		res.MaxSteps = max(res.MaxSteps, r.steps)
		if r.failure != nil || n == r.o.MaxSchedules {
			return false
		}
		for len(of) <= r.cost {
			of = append(of, 0)
		}
		of[r.cost]++
		if !r.advancePath(r.o.Bound, &skipped) {
			break
		}
	}
	for skipped && len(of) <= r.o.Bound {
		of = append(of, 0)
	}
	schedules := 0
	for bound := range of {
		schedules += of[bound]
		res.Bounds = append(res.Bounds, Bound{Bound: bound, Schedules: schedules, Done: true})
	}
	res.Outcomes, res.Complete = r.s.outcomes, !skipped
	return true
}

// searchBounds searches depth first, with one bound after the other.
func (r *runner) searchBounds(res *Result) {
	if r.o.right && r.o.Bound != Exhaustive && r.searchAtOnce(res) {
		return
	}
	r.strategy = first
	for bound := 0; bound <= r.o.Bound; bound++ {
		if r.o.Bound == Exhaustive {
			bound = Exhaustive
		}
		b := Bound{Bound: bound}
		skipped := false
		r.path = r.path[:0]
		clear(r.s.outcomes)
		for {
			r.once()
			b.Schedules++
			res.ran++
			res.MaxSteps = max(res.MaxSteps, r.steps)
			if r.failure != nil || b.Schedules == r.o.MaxSchedules {
				break
			}
			if !r.advancePath(bound, &skipped) {
				b.Done = true
				break
			}
		}
		res.Bounds = append(res.Bounds, b)
		res.Outcomes = r.s.outcomes
		if r.failure != nil {
			res.Failure = r.explain(bound, b.Schedules)
			return
		}
		res.Complete = b.Done && !skipped
		if !b.Done || res.Complete {
			return
		}
	}
}

// explain plays the schedule that has just failed again, with a trace.
func (r *runner) explain(bound, schedule int) *Failure {
	f := r.failure
	choices := r.choices()
	again := r.replay(choices)
	switch {
	case again == nil:
		f.Reason += " (but not when played again: the scenario is not deterministic)"
	case again.Kind != f.Kind:
		f.Reason += fmt.Sprintf(" (but when played again: %v: %s)", again.Kind, again.Reason)
		f.Trace = again.Trace
	default:
		f = again
	}
	f.Choices, f.Bound, f.Schedule = choices.trim(), bound, schedule
	return f
}

// choices returns the path of the schedule that was played last.
func (r *runner) choices() (c Choices) {
	for _, d := range r.path[:r.depth] {
		c = append(c, d.taken)
	}
	return c
}

// replay plays one schedule with a trace and returns how it fails, or nil.
func (r *runner) replay(choices Choices) *Failure {
	r.path = r.path[:0]
	r.strategy = func(d *decision, _ []option) uint8 {
		if r.depth-1 < len(choices) {
			return min(choices[r.depth-1], d.n-1)
		}
		return 0
	}
	r.trace = newTracer(r)
	r.once()
	f := r.failure
	if f != nil {
		f.Choices, f.Bound = choices.trim(), r.cost
		f.Trace = r.trace.String()
	}
	r.trace = nil
	return f
}

// searchRandom plays random schedules. Half of them give each thread a random priority, and lower that of the thread that
// runs at a few random points (PCT: a bug that needs d such points is found with a known least chance); the other half
// decide each time, staying with the thread that runs as often as a coin of this schedule says.
func (r *runner) searchRandom(res *Result) {
	longest := 64
	for i := range r.o.Random {
		rng := rand.New(rand.NewPCG(r.o.Seed, uint64(i)))
		if i%2 == 0 {
			r.strategy = priorities(rng, longest)
		} else {
			r.strategy = coin(rng)
		}
		r.path = r.path[:0]
		r.once()
		res.Random++
		res.ran++
		res.MaxSteps = max(res.MaxSteps, r.steps)
		longest = max(longest, len(r.path))
		if r.failure != nil {
			r.failure.Seed = r.o.Seed
			res.Failure = r.explain(r.cost, i+1)
			res.Failure.Seed = r.o.Seed
			break
		}
	}
	res.Outcomes = r.s.outcomes
}

func priorities(rng *rand.Rand, length int) strategy {
	var of [maxThreads]int
	for i, p := range rng.Perm(maxThreads) {
		of[i] = p
	}
	flush := rng.IntN(3) == 0 // stores are flushed early sometimes
	var changes [3]int
	for i := range changes {
		changes[i] = rng.IntN(length)
	}
	n := 0
	return func(d *decision, options []option) uint8 {
		if options == nil {
			return uint8(rng.IntN(int(d.n)))
		}
		n++
		best := -1
		for i, o := range options {
			if o.flush {
				if best < 0 || flush && rng.IntN(4) == 0 {
					return uint8(i)
				}
				continue
			}
			if best < 0 || of[o.thread.id] > of[options[best].thread.id] {
				best = i
			}
		}
		for i, c := range changes {
			if c == n {
				of[options[best].thread.id] = -1 - i
			}
		}
		return uint8(best)
	}
}

func coin(rng *rand.Rand) strategy {
	stay := []int{2, 4, 8, 32}[rng.IntN(4)]
	return func(d *decision, options []option) uint8 {
		if options != nil && options[0].cost == 0 && rng.IntN(stay) != 0 {
			return 0
		}
		return uint8(rng.IntN(int(d.n)))
	}
}

// Choices is a schedule: which of the ways to go on was taken at each decision.
type Choices []uint8

func (c Choices) trim() Choices {
	for len(c) > 0 && c[len(c)-1] == 0 {
		c = c[:len(c)-1]
	}
	return c
}

// String returns the list in a short form that ParseChoices reads: 0*12,1,0,2 is twelve times 0, then 1, 0 and 2.
func (c Choices) String() string {
	if len(c) == 0 {
		return "0"
	}
	var parts []string
	for i := 0; i < len(c); {
		n := 1
		for i+n < len(c) && c[i+n] == c[i] {
			n++
		}
		part := strconv.Itoa(int(c[i]))
		if n > 1 {
			part += "*" + strconv.Itoa(n)
		}
		parts = append(parts, part)
		i += n
	}
	return strings.Join(parts, ",")
}

// ParseChoices reads what String wrote.
func ParseChoices(s string) (Choices, error) {
	var c Choices
	for part := range strings.SplitSeq(s, ",") {
		value, count, repeated := strings.Cut(part, "*")
		v, err := strconv.ParseUint(value, 10, 8)
		if err != nil {
			return nil, err
		}
		n := uint64(1)
		if repeated {
			if n, err = strconv.ParseUint(count, 10, 16); err != nil {
				return nil, err
			}
		}
		for range n {
			c = append(c, uint8(v))
		}
	}
	return c.trim(), nil
}
