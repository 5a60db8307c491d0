package partition_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/cursor"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
)

// TestPartition_StressControls: whatever takes the role and gives it back, every control that was posted runs, once, and
// never two at a time.
func TestPartition_StressControls(t *testing.T) {
	watchdog(t)
	p := start(t, setup{slots: 4})
	ran := 0 // plain: only under the role
	n := rounds(4000)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range n {
				if err := p.Post(func() { ran++ }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for range n {
			if _, err := p.Publish(background, value("x")); err != nil && err != partition.ErrExclusive {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		for range n {
			if err := p.PublishAsync(background, value("x"), nil); err != nil && err != partition.ErrExclusive {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		for range n / 10 {
			x, err := p.Appender(background)
			if err == nil {
				_, err = x.Append(background, value("x"))
				err = errors.Join(err, x.Close())
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	require.NoError(t, p.Post(func() {}))
	done := 0
	require.NoError(t, p.TruncateBefore(background, 0))
	require.NoError(t, p.Post(func() { done = ran }))
	await(p.TakeRole)
	p.HoldRole()
	require.Equal(t, 3*n, done)
}

// ledger is what publishers were told about their records.
type ledger struct {
	mu      sync.Mutex
	at      map[[2]int]int64 // by publisher and number: the offset of one that is in
	refused map[[2]int]error // will never be in
	pending map[[2]int]bool  // handed over; in, or counted as failed
}

func (l *ledger) put(producer, n int, off int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, [2]int{producer, n})
	if err != nil {
		l.refused[[2]int{producer, n}] = err
		return
	}
	l.at[[2]int{producer, n}] = off
}

func (l *ledger) hand(producer, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending[[2]int{producer, n}] = true
}

// TestPartition_StressLedger lets publishers of every kind at one partition, with contexts that end, readers that gate or do
// not, controls, and Appenders, in small rings and segments, and compares what everybody was told: each record is at the
// offset that its publisher was told, and in nobody else's place; what was refused never appears; a publisher's records are
// in the order in which it published them; each reader sees every offset once, in order, or is told of the gap. At the end
// the partition is closed under them.
func TestPartition_StressLedger(t *testing.T) {
	for _, c := range []struct {
		name string
		s    setup
	}{
		{"block", setup{slots: 4, segments: 3, limits: retention.Limits{MaxRecords: 9}}},
		{"smallest", setup{slots: 2, segments: 1, limits: retention.Limits{MaxRecords: 4}}},
		{"reject", setup{slots: 8, segments: 2, limits: retention.Limits{MaxRecords: 8}, onFull: partition.Reject}},
		{"drop oldest", setup{slots: 8, segments: 2, limits: retention.Limits{MaxRecords: 16}, onFull: partition.DropOldest}},
		{"memory", setup{slots: 64, segBytes: 4 << 10, memory: 16 << 10}},
		{"bytes", setup{slots: 16, segBytes: 4 << 10, limits: retention.Limits{MaxBytes: 4 << 10}}},
		{"unlimited", setup{slots: 512}},
	} {
		t.Run(c.name, func(t *testing.T) { watchdog(t); stressLedger(t, c.s) })
	}
}

func stressLedger(t *testing.T, s setup) {
	p := start(t, s)
	l := &ledger{at: map[[2]int]int64{}, refused: map[[2]int]error{}, pending: map[[2]int]bool{}}
	gating := s.onFull != partition.DropOldest
	var readers, producers, others sync.WaitGroup
	seen := make([]map[[2]int]int64, 3) // by reader: the offset of each record, by publisher and number
	for i := range seen {
		var g *partition.Gate
		if gating {
			g = &partition.Gate{Name: fmt.Sprint("reader", i), Gating: true}
		}
		r, err := p.NewReader(g, waits[i], earliest)
		require.NoError(t, err)
		seen[i] = map[[2]int]int64{}
		readers.Go(func() { defer r.Close(); follow(t, r, gating, seen[i]) })
	}
	// Each publisher goes on until the partition is closed; the closer waits until each has done some rounds.
	enough := rounds(500)
	const kinds = 5
	var rounds [kinds]atomic.Int64
	for kind := range kinds {
		producers.Go(func() { produce(t, p, l, kind, &rounds[kind]) })
	}
	stop := make(chan struct{})
	others.Go(func() { // controls and Appenders
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := p.TruncateBefore(background, 0); err != nil && !errors.Is(err, errOver) {
				t.Error(err)
			}
			if i%20 != 0 {
				continue
			}
			x, err := p.Appender(background)
			if err != nil {
				continue
			}
			n := i
			off, err := x.Append(background, signed(nil, kinds, n))
			l.put(kinds, n, off, err)
			_ = x.Close()
		}
	})
	for kind := range kinds {
		await(func() bool { return rounds[kind].Load() >= int64(enough) })
	}
	p.Close(errOver)
	close(stop)
	producers.Wait()
	others.Wait()
	<-p.Done()
	p.FlushCallbacks()
	readers.Wait()

	// What the readers have seen is what the publishers were told.
	for i := range seen {
		for id, off := range seen[i] {
			told, ok := l.at[id]
			switch {
			case ok && told != off:
				t.Errorf("record %v was told to be at %d, and is at %d", id, told, off)
			case !ok && l.refused[id] != nil:
				t.Errorf("record %v is at %d, and its publisher was told: %v", id, off, l.refused[id])
			case !ok && !l.pending[id]:
				t.Errorf("record %v is at %d, and nobody published it", id, off)
			}
		}
		if gating { // and nothing else is there
			missing := 0
			for id := range l.pending {
				if _, ok := seen[i][id]; !ok {
					missing++
				}
			}
			require.EqualValues(t, p.Stats().AsyncFailed, missing, "handed over, not there, and not counted")
			for id, off := range l.at {
				if seen[i][id] != off {
					t.Errorf("record %v, at %d, was not read", id, off)
				}
			}
		}
	}
	require.Zero(t, p.Stats().Blocked)
	require.Zero(t, p.Pending())
	p.Free()
	require.Zero(t, p.pool.Used())
}

// follow reads to the end, and notes where each record is.
func follow(t *testing.T, r *partition.Reader, gating bool, seen map[[2]int]int64) {
	last := map[int]int{}
	batch := make([]segment.Record, 5)
	for want := int64(0); ; {
		n, err := r.NextBatch(background, batch)
		var out *partition.OffsetError
		switch {
		case errors.As(err, &out) && !gating:
			if out.Asked != want || out.First <= want {
				t.Errorf("at %d: %v", want, out)
			}
			if err := r.Seek(earliest); err != nil {
				t.Error(err)
			}
			want = int64(r.Position())
			continue
		case err != nil:
			if !errors.Is(err, errOver) {
				t.Error(err)
			}
			return
		}
		for i := range batch[:n] {
			rec := &batch[i]
			if rec.Offset != want {
				t.Errorf("read %d, want %d", rec.Offset, want)
			}
			want++
			producer, k := verify(t, rec)
			if before, ok := last[producer]; ok && k <= before {
				t.Errorf("publisher %d: %d after %d", producer, k, before)
			}
			last[producer] = k
			if at, twice := seen[[2]int{producer, k}]; twice {
				t.Errorf("record %d of publisher %d is at %d and at %d", k, producer, at, rec.Offset)
			}
			seen[[2]int{producer, k}] = rec.Offset
		}
	}
}

// produce publishes in one way until the partition is over.
func produce(t *testing.T, p part, l *ledger, kind int, rounds *atomic.Int64) {
	rnd := rand.New(rand.NewPCG(uint64(kind), 1))
	buf := make([]byte, 256)
	for n := 0; ; n++ {
		var err error
		switch kind {
		case 0:
			var off int64
			off, err = p.Publish(background, signed(buf, kind, n))
			l.put(kind, n, off, err)
		case 1:
			ctx, cancel := context.WithCancel(background)
			if rnd.IntN(2) == 0 {
				go cancel()
			}
			var off int64
			off, err = p.Publish(ctx, signed(buf, kind, n))
			l.put(kind, n, off, err)
			cancel()
		case 2:
			batch := make([]segment.Record, 1+rnd.IntN(4))
			for i := range batch {
				batch[i] = *signed(nil, kind, n+i)
			}
			_, err = p.PublishBatch(background, batch)
			for i := range batch {
				if err == nil && i > 0 && batch[i].Offset != batch[i-1].Offset+1 {
					t.Error("a batch is not contiguous")
				}
				l.put(kind, n+i, batch[i].Offset, err)
			}
			n += len(batch) - 1
		case 3:
			r := signed(buf, kind, n)
			l.hand(kind, n)
			k := n
			err = p.PublishAsync(background, r, func(at partition.Published, err error) { l.put(kind, k, at.Offset, err) })
			if err != nil {
				l.put(kind, n, 0, err)
			}
		case 4:
			l.hand(kind, n)
			if err = p.TryPublish(signed(buf, kind, n)); err != nil {
				l.put(kind, n, 0, err)
			}
		}
		clear(buf) // it is ours again
		rounds.Add(1)
		switch {
		case err == nil:
		case errors.Is(err, errOver):
			return
		case errors.Is(err, partition.ErrFull), errors.Is(err, partition.ErrExclusive), errors.Is(err, context.Canceled):
		default:
			t.Error(err)
			return
		}
	}
}

// TestPartition_StressPingPong: a record for each wake-up, between a publisher and a reader that parks. Nothing else would
// wake either.
func TestPartition_StressPingPong(t *testing.T) {
	watchdog(t)
	ping, pong := start(t, setup{limits: retention.Limits{MaxRecords: 2}, segments: 1}), start(t, setup{limits: retention.Limits{MaxRecords: 2}, segments: 1})
	n := rounds(20_000)
	answer := func(from, to part) {
		r, err := from.NewReader(&partition.Gate{Gating: true}, cursor.WaitPark, latest)
		if err != nil {
			t.Error(err)
			return
		}
		defer r.Close()
		var rec segment.Record
		for range n {
			if err := r.Next(background, &rec); err != nil {
				t.Error(err)
			}
			if err := to.PublishAsync(background, value("x"), nil); err != nil {
				t.Error(err)
			}
		}
	}
	var wg sync.WaitGroup
	started := make(chan struct{})
	wg.Go(func() { close(started); answer(ping, pong) })
	<-started
	r := reader(t, pong, &partition.Gate{Gating: true}, latest)
	await(func() bool { return ping.WaitingReaders() == 1 })
	var rec segment.Record
	for range n {
		if _, err := ping.Publish(background, value("x")); err != nil {
			t.Fatal(err)
		}
		if err := r.Next(background, &rec); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}
