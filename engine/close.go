package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/internal/atomicx"
)

// Drain lets what is under way come to its end: from now on only handlers may publish and no topic can be created; it
// returns when every accepted record is in its log, every callback has run, no handler runs, and every subscription and every
// group that has members with handlers, as far as they are not paused, has processed all there is, which in Manual mode is:
// settled. What is left for a Consumer is not waited for. What an Appender has staged and not flushed is not waited for. Then Close. A
// subscription that is stuck, or fails for ever, makes it last until ctx
// ends; the error then says which. From inside a handler, callback or hook it is ErrSelfBlock: that would wait for itself.
//
// How it knows. It reads the ends of all logs, finds every lane drained, flushes, finds every lane drained again, and the ends
// where they were. So no record became visible in between, and no lane had anything to run for after the first look at it.
// All that handlers published was therefore accepted before the flush, and would have moved an end by now. Nobody else's
// publish is accepted after the flush: see tooLate in package partition.
func (e *Engine) Drain(ctx context.Context) error {
	if e.onWorker() {
		return ErrSelfBlock
	}
	e.mu.Lock()
	if e.topics == nil {
		e.mu.Unlock()
		return ErrClosed
	}
	e.draining.Store(true)
	e.mu.Unlock()
	topics := e.all()
	for _, t := range topics {
		for _, p := range t.allMade() {
			p.p.Drain()
		}
	}
	for w := atomicx.NewWaiter(); ; {
		end := ends(topics)
		before := len(e.behind(topics)) == 0
		for _, t := range topics {
			if err := t.Flush(ctx); err != nil && !errors.Is(err, ErrTopicDeleted) {
				return e.undrained(topics, err)
			}
		}
		e.rested.Prepare(w)
		switch after := len(e.behind(topics)) == 0; {
		case after && before && ends(topics) == end:
			e.rested.Cancel(w)
			return nil
		case after:
			e.rested.Cancel(w)
		case !e.rested.Wait(w, ctx.Done()):
			return e.undrained(topics, context.Cause(ctx))
		}
	}
}

// ends returns how many records were ever published.
func ends(topics []*Topic) (n int64) {
	for _, t := range topics {
		for _, p := range t.made.load() {
			n += p.Next()
		}
	}
	return n
}

// behind names the lanes that have something to do.
func (e *Engine) behind(topics []*Topic) (names []string) {
	for _, t := range topics {
		for _, s := range t.subscriptions() {
			for _, l := range s.lanes.load() {
				if !l.Drained() {
					names = append(names, laneName(s, l.Partition()))
				}
			}
		}
	}
	for _, g := range e.allGroups() {
		names = append(names, g.behind()...)
	}
	return names
}

func laneName(s *Subscription, partition int) string {
	return fmt.Sprintf("%s/%s/%d", s.t.name, s.id, partition)
}

// undrained says what Drain was waiting for.
func (e *Engine) undrained(topics []*Topic, err error) error {
	var full []string
	for _, t := range topics {
		for _, p := range t.made.load() {
			if s := p.Stats(); s.Full {
				full = append(full, fmt.Sprintf("%s/%d held by %q", t.name, s.Partition, s.HeldBy))
			}
		}
	}
	return fmt.Errorf("leat: not drained; subscriptions behind: %v; partitions full: %v: %w", e.behind(topics), full, err)
}

// Close ends everything at once: publishes, readers and subscriptions end with ErrClosed, also those that wait. Records that
// were accepted and are not yet in their log get in if there is room; what subscriptions have not processed by then is not
// delivered any more (Drain first for that). It returns when all the engine's goroutines have ended, or after
// Config.CloseTimeout with a *HungError if handlers have not returned. Called from a handler, callback or hook it does not
// wait. Closing again does nothing but wait.
//
// It makes durable topics and positions durable. Other errors than *HungError say that this failed for some, now or before: what
// is durable stays so, and Open finds what there is.
func (e *Engine) Close() error {
	ctx := context.Background()
	if e.cfg.CloseTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.cfg.CloseTimeout)
		defer cancel()
	}
	return e.CloseContext(ctx)
}

// CloseContext is Close that waits until ctx ends.
func (e *Engine) CloseContext(ctx context.Context) error {
	e.closing.Do(e.shutdown)
	select {
	case <-e.closed:
		return e.closeError()
	default:
	}
	if e.onWorker() {
		return nil
	}
	select {
	case <-e.closed:
		return e.closeError()
	case <-ctx.Done():
		return &HungError{Handlers: e.hung(), Cause: context.Cause(ctx)}
	}
}

// closeError returns what went wrong with files.
func (e *Engine) closeError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closeErr
}

// shutdown ends everything, and leaves the waiting and the telling to goroutines: the caller may be a handler, or a hook.
func (e *Engine) shutdown() {
	e.mu.Lock()
	for _, t := range e.topics {
		e.last = append(e.last, t)
	}
	for t := range e.deleted {
		e.last = append(e.last, t)
	}
	e.topics, e.deleted = nil, nil // from here on nobody comes
	groups := slices.Collect(maps.Values(e.groups))
	for _, g := range groups {
		if g.ready {
			e.lastGroups = append(e.lastGroups, g)
		}
	}
	e.mu.Unlock()
	var subs []*Subscription
	for _, t := range e.last {
		subs = append(subs, t.halt(ErrClosed)...)
	}
	for _, g := range groups {
		e.lastMembers = append(e.lastMembers, g.end(ErrClosed)...)
	}
	e.alarms.Close()
	e.stop()
	go e.wind(e.tellAll(subs))
}

// tellAll tells about subscriptions, on a goroutine that counts as a worker: a hook may close the engine again.
func (e *Engine) tellAll(subs []*Subscription) (told <-chan struct{}) {
	n, end := 0, make(chan struct{})
	var t *dispatch.Task
	t = e.work.NewTask(func() dispatch.Again { // runs again if a hook ends the goroutine
		for n < len(subs) {
			n++
			subs[n-1].tell()
		}
		t.Stop()
		e.told.Store(true)
		close(end)
		return false
	}, dispatch.Options{Dedicated: true})
	t.Wake()
	return end
}

// wind waits for all that an ended engine has going on.
func (e *Engine) wind(told <-chan struct{}) {
	e.files.Wait()
	for _, t := range e.last {
		<-t.gone
	}
	for _, m := range e.lastMembers {
		<-m.done
	}
	<-told
	<-e.alarms.Done()
	for _, p := range []*dispatch.Pool{e.work, e.calls} {
		p.Close()
	}
	for _, p := range []*dispatch.Pool{e.work, e.calls} {
		p.Wait(nil)
	}
	if e.catalog != nil {
		e.keeper.end()
		if err := e.catalog.close(); err != nil {
			e.noteClose(err)
		}
	}
	close(e.closed)
}

// hung names what Close is waiting for.
func (e *Engine) hung() (names []string) {
	for _, t := range e.last {
		for _, s := range t.subscriptions() {
			for _, l := range s.lanes.load() {
				if since, yes := l.Inside(); yes {
					names = append(names, fmt.Sprintf("%s for %v", laneName(s, l.Partition()), since.Round(time.Millisecond)))
				}
			}
		}
		for _, p := range t.made.load() {
			if s := p.p.Store(); s != nil && s.Stalled() > 0 {
				names = append(names, fmt.Sprintf("%s/files/%d for %v", t.name, p.Index(), s.Stalled().Round(time.Millisecond)))
			}
			if p.p.InCallback() {
				names = append(names, fmt.Sprintf("%s/callback/%d", t.name, p.Index()))
			}
		}
	}
	for _, m := range e.lastMembers {
		names = append(names, m.hung()...)
	}
	if !e.told.Load() {
		names = append(names, "Hooks.SubscriptionEnded")
	}
	return names
}
