package delivery_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
)

// first is the entries of the first deliveries of the records of key i of m, from an offset up to another.
func firsts(from, to int64, i, m int64) (es []entry) {
	for off := from; off < to; off++ {
		if off%m == i {
			es = append(es, entry{off, 1})
		}
	}
	return es
}

// TestKeyed_DeliversAllInOrderOfEachKey publishes before and after the start, with few and many keys and runners, in both modes.
func TestKeyed_DeliversAllInOrderOfEachKey(t *testing.T) {
	watchdog(t)
	for _, parallel := range []int{1, 3, 16} {
		for _, nkeys := range []int{1, 7, 400} {
			for i := range 4 {
				once, opt := i&1 != 0, dispatch.Options{Dedicated: i&2 != 0}
				t.Run(fmt.Sprintf("parallel=%d/keys=%d/once=%v/dedicated=%v", parallel, nkeys, once, opt.Dedicated), func(t *testing.T) {
					p := newPart(t, partitionSetup{segments: 37})
					p.publishKeys(t, keys(1000, nkeys)...)
					got := newKeyBook(t)
					c := each(func(_ context.Context, m *Message) error {
						defer got.enter(m)()
						assert.Equal(t, "topic", m.Topic)
						return nil
					})
					c.Parallel, c.AtMostOnce = parallel, once
					c.MaxInFlight, c.MaxKeys = 50, 20
					k := newKeyedOpt(t, p, c, at(100), opt, &partition.Gate{Gating: true})
					assert.Equal(t, int64(100), k.Position())
					assert.Equal(t, int64(900), k.Lag())
					k.Start()
					await(k.Drained)
					assert.Equal(t, int64(1000), k.Position())
					for _, key := range keys(500, nkeys) {
						p.publishKeys(t, key)
					}
					await(k.Drained)
					assert.Equal(t, int64(1500), k.Position())
					assert.Zero(t, k.Lag())
					for i := range int64(nkeys) {
						var want []entry
						for off := int64(100); off < 1500; off++ {
							if off < 1000 && off%int64(nkeys) == i || off >= 1000 && (off-1000)%int64(nkeys) == i {
								want = append(want, entry{off, 1})
							}
						}
						assert.Equal(t, want, got.entries(fmt.Sprint("k", i)))
					}
					s := k.Stats(p.clock.Now())
					assert.Equal(t, int64(1400), s.Delivered)
					assert.Zero(t, s.InFlight)
				})
			}
		}
	}
}

// TestBUG122_KeyedFailingKeyHoldsNobodyUp hangs in one record of key 0, or fails with it again and again: all records of 49 other
// keys are delivered, as far as the window goes, and then nothing is done.
func TestBUG122_KeyedFailingKeyHoldsNobodyUp(t *testing.T) {
	watchdog(t)
	const records, nkeys, bad = 10_000, 50, 1000 // a thousand records are fast before that
	for _, hang := range []bool{true, false} {
		t.Run(fmt.Sprintf("hang=%v", hang), func(t *testing.T) {
			p := newPart(t, partitionSetup{workers: 2, segments: 100})
			p.publishKeys(t, keys(records, nkeys)...)
			got := newKeyBook(t)
			out := make(chan struct{})
			c := each(func(_ context.Context, m *Message) error {
				defer got.enter(m)()
				if m.Offset != bad {
					return nil
				}
				if hang {
					<-out
					return nil
				}
				select {
				case <-out:
					return nil
				default:
					return errPoison
				}
			})
			c.Parallel, c.MaxInFlight, c.Backoff = 2, records, []time.Duration{time.Hour}
			k := newKeyed(t, p, c, nil)
			k.Start()
			others := int64(records - (records-bad)/nkeys) // all but those of key 0 from the bad one on
			await(func() bool { return k.Stats(p.clock.Now()).Delivered == others })
			assert.Equal(t, int64(bad), k.Position())
			for i := int64(1); i < nkeys; i++ {
				assert.Equal(t, firsts(0, records, i, nkeys), got.entries(fmt.Sprint("k", i)))
			}
			assert.Equal(t, firsts(0, bad+1, 0, nkeys), got.entries("k0"))
			assert.Equal(t, 1, k.Stats(p.clock.Now()).InFlight)
			running := 0
			if hang {
				running = 1
			}
			await(func() bool { return p.workers.Queued() == 0 && p.workers.Running() == running })
			close(out)
			if !hang {
				require.NoError(t, k.Seek(at(bad)))
			}
			await(k.Drained)
			assert.Equal(t, int64(records), k.Position())
		})
	}
}

// TestBUG121_KeyedOrderIsKeptAcrossRedelivery: 50 keys, one delivery in twenty fails. The sequence of a key never steps back, but
// that a record that failed comes again, as the next of its key.
func TestBUG121_KeyedOrderIsKeptAcrossRedelivery(t *testing.T) {
	watchdog(t)
	const nkeys = 50
	records := int64(rounds(20_000))
	p := newPart(t, partitionSetup{segments: 100})
	got := newKeyBook(t)
	var n atomic.Int64
	c := each(func(_ context.Context, m *Message) error {
		defer got.enter(m)()
		if n.Add(1)%20 == 0 {
			return errPoison
		}
		return nil
	})
	c.Backoff, c.Parallel = []time.Duration{time.Microsecond, 100 * time.Microsecond}, 6
	k := newKeyed(t, p, c, nil)
	k.Start()
	p.publishKeys(t, keys(int(records), nkeys)...)
	await(k.Drained)
	redelivered := int64(0)
	for i := range int64(nkeys) {
		next, attempt := i, 0
		for _, e := range got.entries(fmt.Sprint("k", i)) {
			if e.off == next-nkeys && e.attempt == attempt+1 { // the one before, again
				attempt++
				redelivered++
				continue
			}
			require.Equal(t, entry{next, 1}, e)
			next, attempt = next+nkeys, 1
		}
		require.GreaterOrEqual(t, next, records)
	}
	s := k.Stats(p.clock.Now())
	assert.Equal(t, redelivered, s.Redelivered)
	assert.Equal(t, redelivered, s.Failed)
	assert.Equal(t, records, s.Delivered)
}

// TestKeyed_WithoutKeysThereIsNoOrder: such records do not wait for each other; one with an empty key does.
func TestKeyed_WithoutKeysThereIsNoOrder(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{workers: 4})
	for i := range int64(8) {
		r := value(i)
		if i%2 == 1 {
			r.Key = []byte{}
		}
		_, err := p.Publish(background, r)
		require.NoError(t, err)
	}
	in, out := make(chan int64), make(chan struct{})
	k := runKeyed(t, p, func(_ context.Context, m *Message) error {
		in <- m.Offset
		if m.Offset == 1 || m.Offset == 0 {
			<-out
		}
		return nil
	})
	var got []int64
	for range 5 {
		got = append(got, <-in)
	}
	assert.ElementsMatch(t, []int64{0, 1, 2, 4, 6}, got)
	close(out)
	for range 3 {
		<-in
	}
	await(k.Drained)
}
