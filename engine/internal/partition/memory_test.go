package partition_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/segment"
)

// fill publishes until the engine has no more memory.
func fill(t testing.TB, p part) (n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(background)
	cancel() // it does not wait
	x, err := p.Appender(background)
	require.NoError(t, err)
	for {
		if _, err = x.Append(ctx, &segment.Record{Value: make([]byte, 200)}); err != nil {
			require.NoError(t, x.Close())
			return n
		}
		n++
	}
}

// Under Block every publish waits until there is memory again: because a gate of the same partition moves, because one is
// taken out, or because another partition gives some back.
func TestMemory_Waits(t *testing.T) {
	type publishFunc func(ctx context.Context, p part) error
	large := make([]byte, 1000)
	publishes := map[string]publishFunc{
		"Publish": func(ctx context.Context, p part) error {
			return second(p.Publish(ctx, &segment.Record{Value: large}))
		},
		"PublishBatch of one": func(ctx context.Context, p part) error {
			return second(p.PublishBatch(ctx, []segment.Record{{Value: large}}))
		},
		"PublishBatch": func(ctx context.Context, p part) error {
			return second(p.PublishBatch(ctx, []segment.Record{{Value: large}, {Value: large}, {Value: large}, {Value: large}, {Value: large}}))
		},
		"PublishAsync": func(ctx context.Context, p part) error {
			result := make(chan error, 1)
			err := p.PublishAsync(ctx, &segment.Record{Value: large}, func(_ partition.Published, err error) { result <- err })
			if err == nil {
				err = <-result
			}
			return err
		},
		"large PublishAsync": func(ctx context.Context, p part) error {
			result := make(chan error, 1)
			err := p.PublishAsync(ctx, &segment.Record{Value: make([]byte, 2000)}, func(_ partition.Published, err error) { result <- err })
			if err == nil {
				err = <-result
			}
			return err
		},
		"Appender": func(ctx context.Context, p part) error {
			x, err := p.Appender(ctx)
			if err == nil {
				err = second(x.Append(ctx, &segment.Record{Value: large}))
				err = errors.Join(err, x.Close())
			}
			return err
		},
	}
	for name, publish := range publishes {
		for _, fresh := range []bool{false, true} { // whether the partition that waits has none of the memory
			t.Run(fmt.Sprint(name, fresh), func(t *testing.T) {
				watchdog(t)
				pool := segment.NewPool(16<<10, 16<<10)
				p := start(t, setup{pool: pool, slots: 16, segBytes: 4 << 10})
				q := start(t, setup{pool: pool, slots: 16, segBytes: 4 << 10})
				g := gate(t, p)
				n := fill(t, p)
				waiter := p
				if fresh {
					waiter = q
				}
				result := make(chan error)
				go func() { result <- publish(background, waiter) }()
				await(func() bool { return waiter.WaitingForRoom() > 0 })
				switch {
				case fresh:
					require.NoError(t, p.TruncateBefore(background, int64(n)))
				case name == "Publish":
					p.RemoveGate(g)
				default:
					g.Advance(uint64(n))
				}
				require.NoError(t, <-result)
				require.NoError(t, waiter.Flush(background))
				require.Zero(t, waiter.WaitingForRoom())
				all := values(t, waiter)
				require.Contains(t, []int{1000, 2000}, len(all[len(all)-1]), "it is what was published")
			})
		}
	}
}

// A publish that waits for memory leaves with its context, and with the partition, and never appears.
func TestMemory_Leaves(t *testing.T) {
	watchdog(t)
	p := start(t, setup{memory: 8 << 10, slots: 16})
	gate(t, p)
	n := fill(t, p)
	ctx, cancel := context.WithCancel(background)
	results := make(chan error)
	large := make([]byte, 1000)
	publish := func(ctx context.Context) { results <- second(p.Publish(ctx, &segment.Record{Value: large})) }
	go publish(ctx)
	go publish(background)
	await(func() bool { return p.WaitingForRoom() == 2 && p.Stats().Blocked == 2 })
	cancel()
	require.Equal(t, context.Canceled, <-results)
	await(func() bool { return p.WaitingForRoom() == 1 && p.Stats().Blocked == 1 })
	p.Close(errOver)
	require.ErrorIs(t, <-results, errOver)
	<-p.Done()
	require.Len(t, values(t, p), n)
}

func TestMemory_SelfBlock(t *testing.T) {
	watchdog(t)
	p := start(t, setup{memory: 8 << 10, slots: 4})
	g := gate(t, p)
	fill(t, p)
	inside := partition.WithOrigin(background, g, true)
	large := make([]byte, 1000)
	require.ErrorIs(t, second(p.Publish(inside, &segment.Record{Value: large})), partition.ErrSelfBlock)
	require.ErrorIs(t, second(p.PublishBatch(inside, make([]segment.Record, 500))), partition.ErrSelfBlock)
	for { // until the hand-over is full
		if err := p.PublishAsync(inside, &segment.Record{Value: large}, nil); err != nil {
			require.ErrorIs(t, err, partition.ErrSelfBlock)
			break
		}
	}
}

func TestMemory_Policies(t *testing.T) {
	watchdog(t)
	p := start(t, setup{memory: 8 << 10, onFull: partition.Reject})
	g := gate(t, p)
	n := fill(t, p)
	require.NotZero(t, n)
	require.ErrorIs(t, second(p.Publish(background, &segment.Record{Value: make([]byte, 1000)})), partition.ErrFull)
	g.Advance(uint64(n))
	require.NoError(t, second(p.Publish(background, &segment.Record{Value: make([]byte, 1000)})))

	pool := segment.NewPool(8<<10, 0)
	p = start(t, setup{pool: pool, onFull: partition.DropOldest})
	gate(t, p)
	for range 1000 { // its own memory goes round
		require.NoError(t, second(p.Publish(background, &segment.Record{Value: make([]byte, 200)})))
	}
	require.NoError(t, second(p.PublishBatch(background, make([]segment.Record, 500))), "one block for all of it")
	q := start(t, setup{pool: pool, onFull: partition.DropOldest})
	require.ErrorIs(t, second(q.Publish(background, value("x"))), partition.ErrFull, "it has none to give")
}

// A batch that memory does not do for, again and again, gives back nothing that it has not taken, and so wakes nobody: two
// of them do not keep each other awake.
func TestMemory_BatchesRest(t *testing.T) {
	watchdog(t)
	pool := segment.NewPool(12<<10, 0)
	p := start(t, setup{pool: pool, segBytes: 4 << 10})
	q := start(t, setup{pool: pool, segBytes: 4 << 10})
	o := start(t, setup{pool: pool, segBytes: 4 << 10})
	gate(t, o)
	require.NoError(t, second(o.Publish(background, value("x")))) // one block is gone
	_, err := p.PublishBatch(background, make([]segment.Record, 600))
	require.ErrorIs(t, err, partition.ErrTooLarge, "more than the largest block")
	records := 500 // 8000 bytes: two segments of their own size, or one block of 8 KiB
	require.NoError(t, second(o.Publish(background, &segment.Record{Value: make([]byte, 4075)})), "and another")
	require.EqualValues(t, 8<<10, pool.Used())
	results := make(chan error, 2)
	for _, part := range []part{p, q} {
		go func() { results <- second(part.PublishBatch(background, make([]segment.Record, records))) }()
	}
	await(func() bool { return p.WaitingForRoom() == 1 && q.WaitingForRoom() == 1 })
	broadcasts := 0
	freed := pool.Freed()
	// If they woke each other this waiter would hear of it.
	w := waiter(func() { broadcasts++ })
	freed.Prepare(w)
	for range 2000 {
		await(func() bool { return true })
	}
	freed.Cancel(w)
	require.Zero(t, broadcasts)
	require.NoError(t, o.TruncateBefore(background, 2))
	require.NoError(t, <-results)
	require.NoError(t, p.TruncateBefore(background, int64(p.Log().Committed())))
	require.NoError(t, q.TruncateBefore(background, int64(q.Log().Committed())))
	require.NoError(t, <-results)
}

// TestMemory_Stress: three partitions of one engine that is always short of memory, with publishers of all kinds, gates that
// move, and truncation. Everybody gets through; nothing is lost; in the end all memory is accounted for.
func TestMemory_Stress(t *testing.T) {
	watchdog(t)
	pool := segment.NewPool(20<<10, 8<<10)
	n := rounds(600)
	var publishers, readers, janitor sync.WaitGroup
	var parts []part
	var gates []*partition.Gate
	for i := range 3 {
		p := start(t, setup{pool: pool, slots: 8, segBytes: 4 << 10, segments: []int{0, 3, 50}[i]})
		g := &partition.Gate{Gating: true}
		r := reader(t, p, g, earliest)
		parts, gates = append(parts, p), append(gates, g)
		for j := range 3 {
			publishers.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				for k := range n {
					size := rnd.IntN(1500)
					var err error
					switch (j + k) % 4 {
					case 0:
						_, err = p.Publish(background, &segment.Record{Value: make([]byte, size)})
					case 1:
						err = p.PublishAsync(background, &segment.Record{Value: make([]byte, size)}, nil)
					case 2:
						batch := make([]segment.Record, 1+rnd.IntN(5))
						for b := range batch {
							batch[b].Value = make([]byte, size)
						}
						_, err = p.PublishBatch(background, batch)
					case 3:
						ctx, cancel := context.WithCancel(background)
						go cancel()
						if _, err = p.Publish(ctx, &segment.Record{Value: make([]byte, size)}); errors.Is(err, context.Canceled) {
							err = nil
						}
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		readers.Go(func() {
			batch := make([]segment.Record, 7)
			for want := int64(0); ; {
				n, err := r.NextBatch(background, batch)
				if err != nil {
					if err != errOver {
						t.Error(err)
					}
					return
				}
				for _, rec := range batch[:n] {
					if rec.Offset != want {
						t.Errorf("offset %d, want %d", rec.Offset, want)
					}
					want++
				}
			}
		})
	}
	// Without limits nobody but us drops what one partition does not need any more and another waits for.
	stop := make(chan struct{})
	janitor.Go(func() {
		for i := 0; ; i = (i + 1) % len(parts) {
			select {
			case <-stop:
				return
			default:
				if err := parts[i].TruncateBefore(background, int64(gates[i].Load())); err != nil {
					t.Error(err)
				}
				runtime.Gosched()
			}
		}
	})
	publishers.Wait()
	for _, p := range parts {
		require.NoError(t, p.Flush(background))
	}
	close(stop)
	janitor.Wait()
	for _, p := range parts {
		p.Finish(errOver)
	}
	readers.Wait()
	for _, p := range parts {
		<-p.Done()
		require.Zero(t, p.Stats().AsyncFailed)
		p.Free()
	}
	require.Zero(t, pool.Used())
}
