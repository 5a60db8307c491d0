package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/leatlog/leat/internal/atomicx"
)

var (
	// ErrStuck is wrapped by what Run returns if the target did not come to an end: a Publish, a Read or Close that does not
	// return. Goroutines are left behind.
	ErrStuck = errors.New("load: target is stuck")

	// ErrTarget is wrapped by what Run returns if the target refused the scenario or failed on the way.
	ErrTarget = errors.New("load: target failed")
)

func errOwns(producer, partition int) error {
	if partition < 0 {
		return fmt.Errorf("%w: producer %d owns no partition", ErrTarget, producer)
	}
	return fmt.Errorf("%w: producer %d owns partition %d, which does not exist", ErrTarget, producer, partition)
}

// run is one run in progress. Its goroutine, the collector, is the caller's of Run.
type run struct {
	s     Scenario
	clock *Clock

	_ atomicx.Pad
	// halt tells the producers to stop. Set by the collector, read by producers for each message.
	halt atomicx.Bool
	// turn is raised by the collector to ask for what was recorded so far. Read by whoever records.
	turn atomicx.Uint32
	_    atomicx.Pad

	inst      Instance  // nil with a group
	g         *groupRun // nil without
	source    source    // whichever of the two
	producers []*producer
	lanes     []*lane // consumers x partitions: readers first, then subscribers
	phases    phases

	reads    sync.WaitGroup
	failed   chan error    // the first failures of readers
	done     chan struct{} // closed when the producers have returned
	readsEnd chan struct{} // closed when the readers have returned

	// The collector's own.
	e2e     *Histogram
	delay   *Histogram
	publish *Histogram
	win     windows
	warm    mark // at the end of the warm-up
	isWarm  bool
	notes   []string

	gate   *gate    // nil, or what stops the readers for a while
	storm  []*rerun // readers that read again and again
	storms sync.WaitGroup

	isCut  bool // see cut
	atCut  mark // how things stood then
	pulled bool // publishes have been cancelled, since the run was interrupted
}

// source is what a run of either kind needs of an instance.
type source interface {
	Producer(i int) (Producer, error)
	Close() error
}

// mark is how things stood at a moment.
type mark struct {
	usage
	sent     uint64
	dropped  uint64   // messages that consumers have jumped over and not had since
	blocked  uint64   // ns that producers have waited, all together
	accepted []uint64 // for each consumer
	slots    []uint64 // with a group: deliveries to each member
}

// Run loads the target as the scenario says, and returns what happened. It ends early, with the result so far, when ctx
// ends. An error means that the run is not worth much; a result with faults in its counters is no error of Run: see
// [Result.Err].
func Run(ctx context.Context, target Target, s Scenario) (Result, error) {
	s, err := s.withDefaults()
	if err != nil {
		return Result{}, err
	}
	r := &run{s: s, clock: s.clock, failed: make(chan error, 1), done: make(chan struct{}), readsEnd: make(chan struct{})}
	if r.clock == nil {
		r.clock = NewClock()
	}
	var before, after int64
	if !s.NoPlacement {
		before = ProbePlacement()
	}
	if err := keepsFiles(target, &s); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrTarget, err)
	}
	disk, err := probeDisk(&s, r.clock)
	if err != nil {
		return Result{}, err
	}
	floor := s.floor(ctx, r.clock)
	switch err := r.begin(ctx, target); {
	case errors.Is(err, errEarly):
		res := r.header(target.Name(), true)
		res.Notes = append(r.notes, errEarly.Error())
		return res, nil
	case errors.Is(err, ErrStuck) || errors.Is(err, ErrTarget):
		return Result{}, err
	case err != nil:
		return Result{}, fmt.Errorf("%w: %w", ErrTarget, err)
	}
	publishCtx, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	r.launch(publishCtx)

	interrupted, err := r.watch(ctx, giveUp)
	r.openGate()
	if r.g != nil {
		err = errors.Join(err, r.g.ended(ctx))
	}
	if !errors.Is(err, ErrStuck) {
		err = errors.Join(err, r.endStorm(ctx))
	}
	if errors.Is(err, ErrStuck) {
		return Result{}, err // producers still run: nothing of theirs may be read
	}
	ended := r.clock.Now()
	drained := ended
	if err == nil && r.publishErr() == nil && !r.isCut {
		drained = r.drain(ctx)
		if r.gate != nil {
			r.gate.phase(r, drained)
		}
		if r.g != nil && !r.isCut {
			err = r.g.positions(ctx)
		}
	}
	if err != nil || r.publishErr() != nil {
		r.cut(ended) // nobody waits for the rest
	}
	interrupted = interrupted || r.isCut && ctx.Err() != nil
	last := r.mark()
	last.at = drained
	if r.isCut {
		last = r.atCut
	}
	if r.g != nil {
		r.g.figures = r.g.inst.Figures()
	}
	if stuck := r.stop(ctx.Done()); stuck != nil {
		return Result{}, errors.Join(err, stuck)
	}
	select {
	case readErr := <-r.failed:
		err = errors.Join(err, readErr)
	default:
	}
	err = errors.Join(err, r.publishErr())
	if !s.NoPlacement {
		after = ProbePlacement()
	}
	res := r.result(target.Name(), ended, last, interrupted)
	res.Floor, res.Disk = floor, disk
	res.Placement = newPlacement(before, after)
	res.PlacementRTT = (before + after) / 2
	res.Notes = append(res.Notes, placementNotes(s, res.Placement)...)
	return res, err
}

// consumer returns the lanes of consumer c.
func (r *run) consumer(c int) []*lane {
	return r.lanes[c*r.s.Partitions : (c+1)*r.s.Partitions]
}

// launch starts readers and producers.
func (r *run) launch(ctx context.Context) {
	s := &r.s
	r.launchReaders()
	start := r.clock.Now() + int64(time.Millisecond) // by then everybody runs
	measured := start + int64(s.Warmup)
	end := measured + int64(s.Duration)
	r.phases = phases{
		start: start, measured: measured, end: end,
		giveUp: end + int64(max(time.Second, s.Duration/5)),
	}
	r.win.start(start, r.mark())
	for _, l := range r.lanes {
		l.measured = measured
	}
	if r.g != nil {
		r.g.launch(r.phases)
	}
	if s.Warmup == 0 {
		r.warm, r.isWarm = r.mark(), true
		r.warm.at = start
	}
	r.launchStorm()
	var producing sync.WaitGroup
	for i, p := range r.producers {
		p.launch(s, i, r.phases)
		producing.Go(func() {
			p.run(ctx, s.Rate > 0)
			if p.err != nil {
				r.halt.Store(true) // the others need not go on
			}
		})
	}
	go func() {
		producing.Wait()
		close(r.done)
	}()
}

// launchReaders starts the readers. They have nothing to read yet; where there are many it takes its time, which is not the schedule's.
func (r *run) launchReaders() {
	var reading atomicx.Uint64 // raised by readers, loaded here; publishes nothing else
	for c := range r.s.Readers {
		for i, l := range r.consumer(c) {
			r.reads.Go(func() {
				reading.Add(1)
				if err := r.inst.Read(c, i, l.deliver); err != nil {
					select {
					case r.failed <- fmt.Errorf("%w: reader %d of partition %d: %w", ErrTarget, c, i, err):
					default:
					}
				}
			})
		}
	}
	for reading.Load() < uint64(r.s.Readers*r.s.Partitions) {
		runtime.Gosched()
	}
}

// watch sees the producers through. It reports whether ctx cut the run short.
func (r *run) watch(ctx context.Context, giveUp func()) (interrupted bool, err error) {
	const tick = 100 * time.Millisecond
	timer := time.NewTimer(0)
	defer timer.Stop()
	var (
		ended    bool  // it is time for the producers to be through
		still    quiet // from then on
		moved    uint64
		gaveUp   bool // publishes have been cancelled
		canceled = ctx.Done()
		failed   = r.failed
	)
	for {
		now := r.clock.Now()
		r.phase(now)
		next := now + int64(tick)
		if !r.isWarm {
			next = min(next, r.phases.measured)
		}
		if now < r.phases.end {
			next = min(next, r.phases.end)
		}
		if r.g != nil {
			next = r.g.next(next)
		}
		next = r.win.due(next)
		if r.gate != nil {
			next = r.gate.next(r, next)
		}
		timer.Reset(max(time.Duration(next-now), 0))
		select {
		case <-timer.C:
		case <-r.done:
			return interrupted, err
		case <-canceled:
			canceled, interrupted = nil, true
			r.release()
		case err = <-failed:
			failed = nil
			r.release()
		}
		now = r.clock.Now()
		if r.s.Rate == 0 && now >= r.phases.end {
			r.halt.Store(true)
		}
		if !r.halt.Load() && now < r.phases.giveUp {
			continue
		}
		if !ended {
			ended, still = true, quietFrom(now)
		}
		m := r.progress()
		nothing := still.look(now, m != moved)
		moved = m
		patience := r.s.Patience
		switch {
		case interrupted && gaveUp:
			patience = min(patience, defaultPatience)
		case interrupted:
			patience = min(patience, stuckInterrupted)
		}
		if nothing < int64(patience) {
			continue
		}
		if gaveUp {
			return interrupted, errors.Join(err, fmt.Errorf("%w: a producer's Publish does not return, even with its context ended", ErrStuck))
		}
		if interrupted {
			r.cut(now)
			r.pulled = true
		} else {
			err = errors.Join(err, fmt.Errorf("%w: nothing moved for %v, publish was cancelled", ErrTarget, r.s.Patience))
		}
		giveUp()
		gaveUp, still = true, quietFrom(now)
	}
}

// release tells the producers to end, and lets go what they may be waiting for.
func (r *run) release() {
	r.halt.Store(true)
	r.openGate()
	if r.g != nil {
		r.g.recover(r.clock.Now())
	}
}

// phase does what is due at a time: the mark at the end of the warm-up, the live window.
func (r *run) phase(now int64) {
	if !r.isWarm && now >= r.phases.measured {
		r.isWarm = true
		r.warm = r.mark()
	}
	if r.g != nil {
		r.g.phase(now)
	}
	if r.gate != nil {
		r.gate.phase(r, now)
	}
	r.window(now)
}

// mark takes down how things stand.
func (r *run) mark() mark {
	m := mark{usage: usageNow(r.clock), accepted: make([]uint64, r.s.Consumers())}
	for c := range m.accepted {
		if r.g != nil {
			m.accepted[c] = r.g.settled(c)
			continue
		}
		for _, l := range r.consumer(c) {
			m.accepted[c] += l.accepted.Load()
			m.dropped += l.dropped.Load()
		}
	}
	if r.g != nil {
		m.slots, m.dropped = r.g.delivered(), r.g.dropped()
	}
	for _, p := range r.producers {
		m.blocked += p.blocked.Load()
		m.sent += p.sent.Load() // after the lanes, so that nobody seems to have more than there is
	}
	return m
}

// progress is a number that changes while anything is published or delivered.
func (r *run) progress() (n uint64) {
	for _, l := range r.lanes {
		n += l.accepted.Load()
	}
	if r.g != nil {
		n += r.g.progress()
	}
	for _, p := range r.producers {
		n += p.sent.Load()
	}
	return n
}

// publishErr returns what ended a producer, if that was an error. The producers have returned.
func (r *run) publishErr() error {
	for i, p := range r.producers {
		if p.err != nil && !r.canceledByUs(p.err) {
			return fmt.Errorf("%w: producer %d: %w", ErrTarget, i, p.err)
		}
	}
	return nil
}

// sentTo returns how many messages have gone to a partition. The producers have returned.
func (r *run) sentTo(partition int) uint64 {
	var n uint64
	for _, p := range r.producers {
		n += p.seqs[partition]
	}
	return n
}
