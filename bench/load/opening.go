package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leatlog/leat/internal/atomicx"
)

// errEarly says that a run was ended before it began.
var errEarly = errors.New("ended while the target was being opened: nothing was measured")

// begin opens the target and attaches everybody, unless ctx ends first. Then it says errEarly, with everything closed that was opened.
func (r *run) begin(ctx context.Context, target Target) error {
	var given atomicx.Bool // nobody waits any more: stored here, loaded by the goroutine; publishes nothing else
	opened := make(chan error, 1)
	go func() {
		err := r.open(ctx, target)
		if err == nil {
			err = r.attach(ctx)
			if err != nil && !errors.Is(err, errEarly) || given.Load() {
				err = errors.Join(err, r.source.Close())
			}
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		return r.early(err)
	case <-ctx.Done():
	}
	late := time.NewTimer(r.closeTime(true))
	defer late.Stop()
	select {
	case err := <-opened:
		return r.early(err)
	case <-late.C:
		given.Store(true)
		return fmt.Errorf("%w: opening it does not end", ErrStuck)
	}
}

// early closes what was opened, if err says that the run was ended too early.
func (r *run) early(err error) error {
	if !errors.Is(err, errEarly) || r.source == nil {
		return err
	}
	if stuck := r.stop(closedNow); stuck != nil {
		return stuck
	}
	return err
}

// closedNow is the Done of a context that has ended.
var closedNow = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// open opens the target.
func (r *run) open(ctx context.Context, target Target) (err error) {
	if ctx.Err() != nil {
		return errEarly
	}
	if r.s.Group.Kind != "" {
		return r.openGroup(target)
	}
	in, err := target.Open(r.s)
	if err != nil {
		return err
	}
	r.inst, r.source = in, in
	if _, ok := r.inst.(Replayer); !ok && r.s.Replays > 0 {
		return errors.Join(fmt.Errorf("%w: replays is %d: what %s has delivered cannot be read again", ErrUnsupported, r.s.Replays, target.Name()),
			r.inst.Close())
	}
	return nil
}

// attach makes lanes and producers and subscribes.
func (r *run) attach(ctx context.Context) error {
	s := &r.s
	r.e2e, r.delay, r.publish = NewHistogram(), NewHistogram(), NewHistogram()
	r.win.init(s)
	if s.Stop > 0 {
		r.gate = newGate()
	}
	receive := r.subscribe
	if r.g != nil {
		receive = r.g.attach
	}
	if err := receive(ctx); err != nil {
		return err
	}
	publish, delay := newRecorders(&r.turn, r.windowed(), s.Producers), newRecorders(&r.turn, r.windowed(), s.Producers)
	for i := range s.Producers {
		if ctx.Err() != nil {
			return errEarly
		}
		out, err := r.source.Producer(i)
		if err != nil {
			return fmt.Errorf("%w: producer %d: %w", ErrTarget, i, err)
		}
		p, err := newProducer(r, i, out)
		if err != nil {
			return err
		}
		p.publish, p.delay = publish.one(), delay.one()
		r.producers = append(r.producers, p)
	}
	return nil
}

// subscribe makes lanes, and subscribes.
func (r *run) subscribe(ctx context.Context) error {
	s := &r.s
	rec := newRecorders(&r.turn, r.windowed(), s.Consumers()*s.Partitions)
	for c := range s.Consumers() {
		name := fmt.Sprintf("reader %d", c)
		if c >= s.Readers {
			name = fmt.Sprintf("subscriber %d", c-s.Readers)
		}
		for p := range s.Partitions {
			r.lanes = append(r.lanes, &lane{
				streams: make([]series, s.Producers), result: Lane{Consumer: name, Partition: p},
				rec: rec.one(), clock: r.clock, least: s.Sizes.Least(), most: s.Sizes.Most(), partition: p, gate: r.gate,
			})
		}
	}
	for i := range s.Subscribers {
		if ctx.Err() != nil {
			return errEarly
		}
		lanes := r.consumer(s.Readers + i)
		err := r.inst.Subscribe(i, func(partition int, payload []byte) { lanes[partition].deliver(payload) })
		if err != nil {
			return fmt.Errorf("%w: subscriber %d: %w", ErrTarget, i, err)
		}
	}
	return nil
}
