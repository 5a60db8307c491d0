package delivery_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
)

// anyLane is a lane of either kind, for what is tested of both. The records are all of one key where that matters.
type anyLane interface {
	Start()
	Stop(cause error)
	Pause()
	Resume()
	Seek(start delivery.Start) error
	tales() *told
}

func (x *told) tales() *told { return x }

// newAny is newLaneOpt or newKeyedOpt, from offset 0 on.
type newAny func(t testing.TB, p *part, c delivery.Config, opt dispatch.Options) anyLane

func newAnyLane(t testing.TB, p *part, c delivery.Config, opt dispatch.Options) anyLane {
	return newLaneOpt(t, p, c, nil, opt, &partition.Gate{})
}

func newAnyKeyed(t testing.TB, p *part, c delivery.Config, opt dispatch.Options) anyLane {
	return newKeyedOpt(t, p, c, nil, opt, &partition.Gate{})
}

// failing makes a Config for a handler that always fails.
func failing(called func(m *Message), backoff ...time.Duration) delivery.Config {
	c := each(func(_ context.Context, m *Message) error { called(m); return errPoison })
	c.Backoff = backoff
	return c
}

// doesNothingBeforeStart stops a lane that has not been started: only Start lets it end.
func doesNothingBeforeStart(t *testing.T, create newAny) {
	watchdog(t)
	p := newPart(t, partitionSetup{workers: 1})
	p.publishKeys(t, keys(3, 3)...)
	l := create(t, p, failing(func(*Message) { t.Error("delivered") }), dispatch.Options{})
	l.Resume()
	l.Stop(errPoison)
	// The only worker has run whatever was to be run by the time it has run this.
	ran := make(chan struct{})
	p.workers.NewTask(func() dispatch.Again { close(ran); return false }, dispatch.Options{}).Wake()
	<-ran
	assert.Zero(t, l.tales().ends.Load())
	l.Start()
	<-l.tales().ended
	assert.Equal(t, errPoison, l.tales().cause)
}

// whatEndsABackoff: a seek does, a pause does not, and nothing else that wakes the lane does.
func whatEndsABackoff(t *testing.T, create newAny) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{workers: 1})
		start := time.Now()
		var got []string
		l := create(t, p, failing(func(m *Message) {
			got = append(got, fmt.Sprintf("%d/%d@%v", m.Offset, m.Attempt, time.Since(start)))
		}, 10*time.Second), dispatch.Options{})
		l.Start()
		p.publishKeys(t, "a", "a") // 0 fails: again at 10 s
		pass(time.Second)
		l.Resume()
		p.publishKeys(t, "a")
		pass(time.Second)
		l.Pause()
		pass(10 * time.Second) // it would have been due
		l.Resume()             // 12 s: overdue, so at once
		pass(time.Second)
		require.NoError(t, l.Seek(at(1))) // 13 s
		pass(time.Second)
		l.Pause()
		pass(time.Second)
		l.Resume() // 15 s: not due before 23 s
		pass(20 * time.Second)
		assert.Equal(t, []string{"0/1@0s", "0/2@12s", "1/1@13s", "1/2@23s", "1/3@33s"}, got)
	})
}

// hugeBackoff is for ever, not at once.
func hugeBackoff(t *testing.T, create newAny) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{workers: 1})
		attempts := 0
		l := create(t, p, failing(func(*Message) { attempts++ }, math.MaxInt64), dispatch.Options{})
		l.Start()
		p.publishKeys(t, "a")
		pass(10 * 365 * 24 * time.Hour)
		assert.Equal(t, 1, attempts)
		require.NoError(t, l.Seek(at(0)))
		synctest.Wait()
		assert.Equal(t, 2, attempts)
	})
}

// timersEnd: a lane that waits for a retry when it ends leaves no timer behind, which a bubble would notice.
func timersEnd(t *testing.T, create newAny) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{})
		failed := make(chan struct{}, 2)
		l := create(t, p, failing(func(*Message) { failed <- struct{}{} }, time.Hour), dispatch.Options{})
		l.Start()
		p.publishKeys(t, "a", "b")
		synctest.Wait()
		assert.NotEmpty(t, failed)
		l.Stop(errOver)
		<-l.tales().ended
		start := time.Now()
		synctest.Wait()
		assert.Zero(t, time.Since(start))
	})
}

// limiterIsFree while a lane waits for a retry: another takes its place.
func limiterIsFree(t *testing.T, create newAny) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{})
		opt := dispatch.Options{Limiter: p.workers.NewLimiter(1)}
		create(t, p, failing(func(*Message) {}, time.Hour), opt).Start()
		p.publishKeys(t, keys(10, 10)...)
		synctest.Wait()
		var got book
		create(t, p, each(func(_ context.Context, m *Message) error { got.add(m); return nil }), opt).Start()
		synctest.Wait()
		assert.ElementsMatch(t, upTo(0, 10), got.offsets())
	})
}
