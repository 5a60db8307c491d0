package arena

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/internal/atomicx"
)

// ErrStuck is wrapped by the error of a rival that did not come to an end. Goroutines may be left behind.
var ErrStuck = errors.New("arena: nothing moves any more")

// ErrRival is wrapped by the error of a rival that panicked.
var ErrRival = errors.New("arena: the rival failed")

// Traffic is a line with its consumers. It is the Runner of everything that is opened as a Line. One goroutine uses it.
type Traffic struct {
	Patience time.Duration // how long nothing may move before a slice has failed

	name  string
	spec  Spec
	job   *Job
	line  Line
	clock *load.Clock
	feeds []*Feed
	sent  []uint64 // by each producer
	goal  []uint64 // of each sink
	late  *load.Histogram

	// halt is set when a slice has failed, and loaded by the feeds. It publishes no memory.
	halt atomicx.Bool
	err  error // what a slice failed with: there are no more
}

// NewTraffic opens a line.
func NewTraffic(r *Rival, s Spec) (*Traffic, error) {
	if err := r.Check(s); err != nil {
		return nil, fmt.Errorf("%s: %v: %w", r.Name, s, err)
	}
	t := &Traffic{
		Patience: 10 * time.Second, name: r.Name, spec: s, job: &Job{Spec: s}, clock: load.NewClock(),
		late: load.NewHistogram(), sent: make([]uint64, s.Topology.Producers), goal: make([]uint64, s.Topology.Consumers()),
	}
	for i := range s.Topology.Consumers() {
		t.job.Sinks = append(t.job.Sinks, newSink(i, s, t.clock))
	}
	for p := range s.Topology.Producers {
		t.feeds = append(t.feeds, newFeed(p, s, t.clock, &t.halt))
	}
	var err error
	if t.line, err = r.Open(t.job); err != nil {
		return nil, fmt.Errorf("%s: %v: %w", r.Name, s, err)
	}
	return t, nil
}

// Rated implements Runner.
func (t *Traffic) Rated(rate float64) { t.spec.Rate = rate }

// Slice implements Runner. The number of messages is rounded up, so that all producers and partitions have equally many.
func (t *Traffic) Slice(ctx context.Context, n uint64) (Slice, error) {
	if t.err != nil {
		return Slice{}, t.err
	}
	s, err := t.slice(ctx, n)
	if err != nil {
		t.err = fmt.Errorf("%s: %v: %w", t.name, t.spec, err)
		t.halt.Store(true)
		return Slice{}, t.err
	}
	return s, nil
}

// startIn is how long before its first message is due a slice with a rate begins: by then everybody runs.
const startIn = int64(time.Millisecond)

func (t *Traffic) slice(ctx context.Context, n uint64) (Slice, error) {
	top := t.spec.Topology
	share := t.spec.Share(n)
	ended := make(chan struct{}, 1)
	var left atomicx.Uint32
	left.Store(uint32(len(t.job.Sinks)))

	ctx, cancel := context.WithCancel(ctx) // ends when the slice has failed, and after it
	defer cancel()
	full, fill := context.WithCancel(ctx) // ends when all sinks are full as well
	defer fill()
	errs := make(chan error, top.Producers+len(t.job.Sinks))
	var ready, produce, consume sync.WaitGroup
	gate := make(chan struct{})
	each := func(wg *sync.WaitGroup, f func() error) {
		ready.Add(1)
		wg.Go(func() {
			ready.Done()
			<-gate
			// A rival that panics has failed, and the others go on. After a failure its Close may make it panic.
			if err := safely(f); err != nil {
				errs <- err
			}
		})
	}
	line := t.line
	for i := range t.job.Sinks {
		each(&consume, func() error { return line.Consume(full, i) })
	}
	for p, f := range t.feeds {
		each(&produce, func() error { return line.Produce(ctx, p, f) })
	}
	ready.Wait()

	used := Measure()
	from := t.clock.Now()
	if t.spec.Rate > 0 {
		from += startIn
	}
	t.plan(share, from, &left, ended)
	close(gate)
	err := t.await(ctx, ended, errs)
	s := Slice{Messages: share * uint64(top.Producers)}
	used.Into(&s)
	fill()
	if err != nil {
		cancel()
		t.halt.Store(true)
	}
	err = errors.Join(err, t.join(&produce, &consume, errs))
	if err != nil {
		return Slice{}, err
	}

	t.late.Reset()
	for _, k := range t.job.Sinks {
		s.Ns = max(s.Ns, k.fullAt-from)
		t.late.Merge(k.late)
		k.late.Reset()
	}
	if t.spec.Rate > 0 {
		s.Latency = t.late.Latency()
		for _, f := range t.feeds {
			s.Behind = max(s.Behind, f.late)
		}
	}
	return s, nil
}

// plan tells feeds and sinks what is to come.
func (t *Traffic) plan(share uint64, from int64, left *atomicx.Uint32, ended chan<- struct{}) {
	top := t.spec.Topology
	gap := 0.
	if t.spec.Rate > 0 {
		gap = 1e9 / t.spec.Rate * float64(top.Producers)
	}
	pl := plan{left: left, ended: ended, gap: gap, measured: share / 20}
	for p, f := range t.feeds {
		pl.start[p] = from + int64(gap/float64(top.Producers)*float64(p)) // the producers take turns
		pl.first[p] = t.sent[p]
		f.begin(share, pl.start[p], gap)
		t.sent[p] += share
	}
	for i, k := range t.job.Sinks {
		t.goal[i] += share * uint64(top.Producers) / uint64(top.Partitions)
		mine := pl
		mine.goal = t.goal[i]
		k.plan.Store(&mine)
	}
}

// await waits until the sinks are full, or something went wrong.
func (t *Traffic) await(ctx context.Context, ended <-chan struct{}, errs <-chan error) error {
	const looks = 8
	tick := time.NewTicker(max(t.Patience/looks, time.Millisecond))
	defer tick.Stop()
	moved, quiet := t.progress(), 0
	for {
		select {
		case <-ended:
			return nil
		case err := <-errs:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if err := t.fault(); err != nil {
			return err // if something is lost the sinks will never be full
		}
		if now := t.progress(); now != moved {
			moved, quiet = now, 0
		} else if quiet++; quiet > looks {
			return fmt.Errorf("%w: %s", ErrStuck, t.standing())
		}
	}
}

// join waits for the slice's goroutines, and returns what is wrong.
func (t *Traffic) join(produce, consume *sync.WaitGroup, errs <-chan error) error {
	sent, seen := closedAfter(produce), closedAfter(consume)
	timer := time.NewTimer(t.Patience)
	defer timer.Stop()
	var all []error
	for _, over := range []<-chan struct{}{sent, seen} {
		if t.halt.Load() && over == seen {
			break // they wait for what will not come
		}
		select {
		case <-over:
			continue
		case <-timer.C:
		}
		if !t.halt.Swap(true) {
			all = append(all, fmt.Errorf("%w: Produce or Consume does not return though all messages have arrived", ErrStuck))
		}
		break
	}
	if t.halt.Load() {
		// The line is of no use any more. Closing it gets out most of those who wait.
		all = append(all, t.shut())
		timer.Reset(t.Patience)
		for _, over := range []<-chan struct{}{sent, seen} {
			select {
			case <-over:
				continue
			case <-timer.C:
				all = append(all, fmt.Errorf("%w: Produce or Consume does not return after Close", ErrStuck))
			}
			break
		}
	}
	for {
		select {
		case err := <-errs:
			all = append(all, err)
			continue
		default:
		}
		break
	}
	return errors.Join(append(all, t.fault())...)
}

// closedAfter returns a channel that is closed when nobody is in the group any more.
func closedAfter(wg *sync.WaitGroup) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		wg.Wait()
		close(over)
	}()
	return over
}

// Close implements Runner.
func (t *Traffic) Close() error {
	err := t.shut()
	if t.err != nil {
		return nil // it has been told
	}
	return errors.Join(err, t.fault())
}

// shut closes the line once, and does not wait for ever.
func (t *Traffic) shut() error {
	if t.line == nil {
		return nil
	}
	closed := make(chan error, 1)
	go func(l Line) { closed <- l.Close() }(t.line)
	t.line = nil
	timer := time.NewTimer(t.Patience)
	defer timer.Stop()
	select {
	case err := <-closed:
		return err
	case <-timer.C:
		return fmt.Errorf("%w: Close does not return", ErrStuck)
	}
}

func (t *Traffic) progress() (n uint64) {
	for _, k := range t.job.Sinks {
		n += k.progress.Load()
	}
	return n
}

// fault returns the first fault of the first sink that has one.
func (t *Traffic) fault() error {
	for _, k := range t.job.Sinks {
		if err := k.err(); err != nil {
			return err
		}
	}
	return nil
}

func (t *Traffic) standing() string {
	text := "of the messages that each consumer waits for there came at least"
	for i, k := range t.job.Sinks {
		text += fmt.Sprintf(" %d/%d", k.progress.Load(), t.goal[i])
	}
	return text
}
