package arena

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/internal/atomicx"
)

// Target returns the rival as a target of the load harness, for the scenarios of package load in place of an arena's slices: their
// rates, arrivals, windows and percentiles. The harness makes, checks and measures the messages; they all have one size.
//
// A line's Produce is a whole loop that asks its Feed what to send. Here that loop stands still, as a coroutine, until the harness has
// something: what is due at once, or, without a rate, 64 messages at a time. So a call to publish is the copy of a message, or such a
// copy and the sending of all that is due.
//
// What is under way is bounded, since some rivals are not, and others drop what is too old: by 262,144 deliveries, or 64 MiB of them.
// Beyond that producers wait.
//
// A rival that moves its messages by itself, in another language, or does not move messages, has no target: nil.
func Target(r *Rival) load.Target {
	if r.Start != nil || r.Special() {
		return nil
	}
	return target{r}
}

type target struct{ *Rival }

// Name implements load.Target.
func (t target) Name() string { return t.Rival.Name }

// Check implements load.Checker.
func (t target) Check(s load.Scenario) error {
	_, err := t.spec(s)
	return err
}

// spec is a scenario as an arena has it.
func (t target) spec(s load.Scenario) (Spec, error) {
	refuse := func(format string, args ...any) (Spec, error) {
		return Spec{}, fmt.Errorf("%w: %s", load.ErrUnsupported, fmt.Sprintf(format, args...))
	}
	spec := Spec{
		Topology: Topology{Name: s.Name, Producers: s.Producers, Partitions: s.Partitions, Copies: s.Consumers()},
		Size:     s.Size, Wait: t.DefaultWait(),
	}
	switch {
	case s.Sizes.Least() != s.Sizes.Most():
		return refuse("sizes %s: messages of %s have one size", s.Sizes, t.Name())
	case s.Publish != "":
		return refuse("publish %q: %s has one way to publish, and is called by that", s.Publish, t.Name())
	case s.Stages > 1:
		return refuse("stages %d: %s is one", s.Stages, t.Name())
	case s.Replays > 0:
		return refuse("replays %d: what %s has delivered is gone; leat keeps it", s.Replays, t.Name())
	case spec.Topology.Copies == 0:
		return refuse("readers 0: %s needs somebody who gets the messages", t.Name())
	}
	if s.Wait != "" {
		for _, w := range t.waits() {
			if w.String() == s.Wait {
				spec.Wait = w
			}
		}
		if spec.Wait.String() != s.Wait {
			return refuse("wait %q: must be one of %s (on %s)", s.Wait, joined(t.waits()), t.Name())
		}
	}
	if t.Missing != nil {
		if why := t.Missing(); why != "" {
			return refuse("engine %s: %s", t.Name(), why)
		}
	}
	if err := t.Rival.Check(spec); err != nil {
		why := strings.TrimPrefix(err.Error(), ErrUnsupported.Error()+": ")
		return refuse("engine %s: not with %d producers, %d partitions, %d readers and subscribers, and %d bytes: %s",
			t.Name(), s.Producers, s.Partitions, spec.Topology.Copies, s.Size, why)
	}
	return spec, nil
}

const (
	heldMost  = 64 // messages that a producer collects
	wayMost   = 1 << 18
	wayBytes  = 64 << 20
	tellEvery = 64 // a host tells of its deliveries after so many
)

// Open implements load.Target.
func (t target) Open(s load.Scenario) (load.Instance, error) {
	spec, err := t.spec(s)
	if err != nil {
		return nil, err
	}
	h := &hosted{s: s, over: make(chan struct{})}
	h.most = uint64(max(min(wayMost, wayBytes/spec.Size), 2*tellEvery*spec.Topology.Consumers()))
	job := &Job{Spec: spec}
	for range spec.Topology.Consumers() {
		k := &Sink{host: &sinkHost{over: h.over, attached: make(chan struct{})}}
		k.plan.Store(&plan{goal: ^uint64(0)}) // never full, until the end
		job.Sinks = append(job.Sinks, k)
	}
	h.sinks = job.Sinks
	for range spec.Topology.Producers {
		h.feeds = append(h.feeds, newFeedHost(h, spec.Size))
	}
	h.ctx, h.end = context.WithCancel(context.Background())
	if h.line, err = t.Rival.Open(job); err != nil {
		h.end()
		if errors.Is(err, ErrUnsupported) {
			err = fmt.Errorf("%w: %w", load.ErrUnsupported, err)
		}
		return nil, fmt.Errorf("%s: %w", t.Name(), err)
	}
	return h, nil
}

// hosted is a line in the load harness.
type hosted struct {
	s     load.Scenario
	line  Line
	sinks []*Sink
	feeds []*feedHost
	most  uint64 // deliveries that may be under way

	ctx     context.Context // of Consume; ends when everything is over
	end     context.CancelFunc
	over    chan struct{}  // closed when everything is over
	pushing sync.WaitGroup // goroutines that consume for subscribers
	mu      sync.Mutex
	errs    []error
}

// safely calls f, and takes a panic of it for an error.
func safely(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: panic: %v\n%s", ErrRival, v, debug.Stack())
		}
	}()
	return f()
}

// Producer implements load.Instance.
func (h *hosted) Producer(i int) (load.Producer, error) {
	f := h.feeds[i]
	// The loop ends when f is over, or by itself, with an error or since the context has ended.
	f.next, f.stop = iter.Pull(func(pause func(struct{}) bool) {
		f.pause = pause
		f.err = safely(func() error { return h.line.Produce(f.ctx, i, &f.feed) })
	})
	return f, nil
}

// Read implements load.Instance.
func (h *hosted) Read(reader, partition int, deliver func([]byte)) error {
	i := reader*h.s.Partitions + partition
	h.sinks[i].host.attach(deliver)
	err := safely(func() error { return h.line.Consume(h.ctx, i) })
	if err == nil || h.ctx.Err() != nil {
		<-h.over // it has a goroutine of its own that calls the sink
		return nil
	}
	return err
}

// Subscribe implements load.Instance.
func (h *hosted) Subscribe(subscriber int, deliver func(int, []byte)) error {
	for p := range h.s.Partitions {
		h.pushing.Go(func() {
			if err := h.Read(h.s.Readers+subscriber, p, func(payload []byte) { deliver(p, payload) }); err != nil {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.errs = append(h.errs, err)
			}
		})
	}
	return nil
}

// Close implements load.Instance.
func (h *hosted) Close() error {
	var errs []error
	for _, f := range h.feeds {
		errs = append(errs, f.close())
	}
	for _, k := range h.sinks {
		k.plan.Store(&plan{}) // full
	}
	h.end()
	close(h.over)
	errs = append(errs, safely(h.line.Close))
	h.pushing.Wait()
	return errors.Join(append(errs, h.errs...)...)
}

// onTheWay is how many deliveries are outstanding of what has been handed to the line.
func (h *hosted) onTheWay() uint64 {
	var sent, seen uint64
	for _, k := range h.sinks {
		seen += k.progress.Load() // first, so that nobody seems to have more than there is
	}
	for _, f := range h.feeds {
		sent += f.sent.Load()
	}
	sent *= uint64(len(h.sinks) / h.s.Partitions)
	return sent - min(seen, sent)
}

// feedHost is one producer of the harness, and what a Feed has from it.
type feedHost struct {
	of   *hosted
	feed Feed
	ctx  context.Context

	held       []byte // messages that are collected
	partitions []int  // where they are to go
	at         int    // the next one of them that the line takes
	size       int
	over       bool
	ended      bool // the loop has returned

	next  func() (struct{}, bool) // lets the loop go on until it has sent everything
	stop  func()
	pause func(struct{}) bool
	err   error // what the loop returned

	_ atomicx.Pad
	// sent is stored by the producer when it has handed over what it held, and loaded by all producers now and then. It publishes nothing.
	sent  atomicx.Uint64
	total uint64
	_     atomicx.Pad
}

func newFeedHost(h *hosted, size int) *feedHost {
	f := &feedHost{of: h, size: size, held: make([]byte, 0, heldMost*size), partitions: make([]int, 0, heldMost)}
	f.feed.host = f
	return f
}

// Publish implements load.Producer.
func (f *feedHost) Publish(ctx context.Context, partition int, payload []byte) error {
	f.held = append(f.held, payload...)
	f.partitions = append(f.partitions, partition)
	if len(f.partitions) < heldMost {
		return nil
	}
	return f.Flush(ctx)
}

// Flush implements load.Producer.
func (f *feedHost) Flush(ctx context.Context) error {
	if len(f.partitions) == 0 {
		return nil
	}
	for back := Yield.Backoff(); f.of.onTheWay() > f.of.most; back.Again() {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	f.total += uint64(len(f.partitions))
	f.sent.Store(f.total)
	f.ctx = ctx
	f.feed.partition = f.partitions[0]
	if _, going := f.next(); !going {
		f.ended = true
		return errors.Join(f.err, ctx.Err(), errEnded)
	}
	f.held, f.partitions, f.at = f.held[:0], f.partitions[:0], 0
	return nil
}

var errEnded = errors.New("arena: Produce has returned though there is more to send")

// close ends the loop.
func (f *feedHost) close() error {
	if f.stop == nil || f.ended {
		return nil // it has been told, or was never asked for
	}
	f.over = true
	f.stop() // Due returns 0
	return f.err
}

// due is Feed.Due.
func (f *feedHost) due(most int) int {
	if n := len(f.partitions) - f.at; n > 0 {
		return min(n, most)
	}
	if f.over || !f.pause(struct{}{}) {
		f.over = true
		return 0
	}
	return min(len(f.partitions), most)
}

// take returns the next message.
func (f *feedHost) take() []byte {
	m := f.held[f.at*f.size:][:f.size:f.size]
	if f.at++; f.at < len(f.partitions) {
		f.feed.partition = f.partitions[f.at]
	}
	return m
}

// sinkHost is one consumer of the harness, as a Sink has it.
type sinkHost struct {
	deliver  func([]byte) // set before attached is closed
	attached chan struct{}
	over     <-chan struct{}
	ready    bool // the goroutine that gives to the Sink knows that deliver is set
}

func (h *sinkHost) attach(deliver func([]byte)) {
	h.deliver = deliver
	close(h.attached)
}

// see is Sink.See.
func (s *Sink) seeHosted(p []byte) {
	h := s.host
	if !h.ready {
		select {
		case <-h.attached: // whoever calls its consumers may do so before there is one
			h.ready = true
		case <-h.over:
			return
		}
	}
	if s.Full() {
		return // it is over
	}
	h.deliver(p)
	if s.seen++; s.seen%tellEvery == 0 {
		s.progress.Store(s.seen)
	}
}
