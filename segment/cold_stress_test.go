package segment_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

// coldStress is what TestAttachCold_Stress counts.
type coldStress struct {
	loads, failed, refused, gaps, raced atomic.Int64
	loading                             []atomic.Int32 // by segment: how many loads of it are going on
	loaded                              []atomic.Int32 // and how many have succeeded
}

// TestAttachCold_Stress lets readers of all kinds meet in cold segments, of which some loads fail, while the appender drops them
// and goes on appending. It checks what chill claims.
//
// Publication: each record that anybody sees proves itself. Once: no two loads of a segment go on at the same time, and none
// comes after one that has succeeded. Kill: what has been dropped is not loaded, or is loaded for who has pinned it before; the
// poisoned pool shows who reads what has been killed. Failure: who is told of it reads on later, and sees every record.
func TestAttachCold_Stress(t *testing.T) {
	for _, procs := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			var all coldStress
			for round := 0; round < scaled(100) || !all.reached() && round < 1000; round++ {
				stressCold(t, &all, uint64(round))
			}
			t.Logf("%d loads, %d failed, %d refused, %d gaps, %d drops while one was loading", all.loads.Load(), all.failed.Load(),
				all.refused.Load(), all.gaps.Load(), all.raced.Load())
			assert.Positive(t, all.failed.Load(), "no load failed")
			assert.Positive(t, all.refused.Load(), "nobody was told")
			assert.Positive(t, all.gaps.Load(), "nobody came too late")
			assert.Positive(t, all.raced.Load(), "nothing was dropped while it was loading")
		})
	}
}

// reached reports whether all has been met with that the test is for.
func (c *coldStress) reached() bool {
	return c.failed.Load() > 0 && c.refused.Load() > 0 && c.gaps.Load() > 0 && c.raced.Load() > 0
}

var errStress = errors.New("the load failed on purpose")

func stressCold(t *testing.T, all *coldStress, seed uint64) {
	const segments, each, readers = 12, 10, 4
	pool := segment.NewPool(0, 1<<20).Poison()
	l := segment.NewLog(segment.Config{Pool: pool, SegmentRecords: 4})
	all.loading, all.loaded = make([]atomic.Int32, segments), make([]atomic.Int32, segments)
	var failed firstError
	for i := range uint64(segments) {
		c := segment.Cold{First: i * each, End: (i + 1) * each, Oldest: int64(i * each), Newest: int64((i+1)*each - 1)}
		c.Latest = c.Newest
		for off := c.First; off < c.End; off++ {
			c.Bytes += int64(signedSize(off)) + segment.EntryBytes
		}
		c.Load = func(to *segment.Log) error {
			if all.loading[i].Add(1) != 1 || all.loaded[i].Load() != 0 {
				failed.set(fmt.Errorf("segment %d is loaded by two, or again", i))
			}
			defer all.loading[i].Add(-1)
			n := all.loads.Add(1)
			for off := c.First; off < c.End; off++ {
				if off == c.First+each/2 {
					for range n % 30 {
						runtime.Gosched()
					}
					if n%3 == 0 {
						all.failed.Add(1)
						return errStress
					}
				}
				dst, err := to.Reserve(segment.Shape{Key: -1, Value: signedSize(off)}, int64(off))
				if err != nil {
					return err
				}
				sign(dst, off)
			}
			all.loaded[i].Add(1)
			return nil
		}
		require.NoError(t, l.AttachCold(c))
	}
	const cold = segments * each
	most := uint64(cold + 40)
	check := func(rec *segment.Record, off uint64) {
		if err := verify(rec, off); err != nil {
			failed.set(err)
		}
	}
	var wg sync.WaitGroup
	for who := range uint64(readers) {
		wg.Go(func() {
			r := l.NewReader()
			defer r.Close()
			var rec segment.Record
			for want := r.Position(); want < most && failed.get() == nil; {
				state := r.RefillWarm()
				if state == segment.Frozen {
					if (want/each+who)%2 == 0 {
						if err := l.Warm(want); err != nil && err != errStress {
							failed.set(err)
						}
						continue
					}
					state = r.Refill()
				}
				switch state {
				case segment.Ready:
					for r.Next(&rec) {
						check(&rec, want)
						want++
					}
				case segment.Unreadable:
					if all.refused.Add(1); r.Err() != errStress || r.Position() != want {
						failed.set(fmt.Errorf("at %d for %d: %w", r.Position(), want, r.Err()))
					}
				case segment.Below:
					all.gaps.Add(1)
					want = l.First()
					r.Seek(want)
				case segment.CaughtUp:
					runtime.Gosched()
				default:
					failed.set(errors.New("impossible state"))
				}
			}
		})
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 2))
			var held [][]segment.Record // views that outlive their segments
			var at []uint64
			for l.Committed() < most && failed.get() == nil {
				off := l.First() + rng.Uint64N(30)
				switch rng.IntN(4) {
				case 0:
					if now, ok := l.TimeOf(off); ok && (now > int64(off) || now+each < int64(off)) {
						failed.set(fmt.Errorf("offset %d was appended at %d", off, now))
					}
				case 1:
					next := l.Committed() // before the search: the log grows meanwhile
					found, err := l.OffsetAt(int64(off))
					if err != nil && err != errStress || err == nil && found < min(off, next) {
						failed.set(fmt.Errorf("time %d found at %d: %w", off, found, err))
					}
				default:
					recs := make([]segment.Record, 13)
					n, err := l.ReadAt(off, recs)
					if err != nil && err != errStress && !errors.Is(err, segment.ErrBelow) && !errors.Is(err, segment.ErrBeyond) {
						failed.set(err)
					}
					held, at = append(held, recs[:n]), append(at, off)
				}
				runtime.Gosched()
			}
			for i := range held {
				for k := range held[i] {
					check(&held[i][k], at[i]+uint64(k))
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	for l.Staged() < most {
		for range rng.IntN(3) {
			off := l.Staged()
			dst, err := l.Reserve(segment.Shape{Key: -1, Value: signedSize(off)}, int64(off))
			require.NoError(t, err)
			sign(dst, off)
		}
		require.NoError(t, l.Publish())
		for range rng.IntN(20) {
			runtime.Gosched()
		}
		if rng.IntN(3) > 0 || l.Staged() == most {
			continue
		}
		if first := l.First(); first < cold && all.loading[first/each].Load() > 0 {
			all.raced.Add(1)
		}
		if rng.IntN(2) == 0 {
			l.DropOldest()
		} else {
			l.TruncateBefore(l.First() + rng.Uint64N(each))
		}
	}
	for range most + 2 - l.Staged() {
		dst, err := l.Reserve(segment.Shape{Key: -1, Value: signedSize(l.Staged())}, int64(l.Staged()))
		require.NoError(t, err)
		sign(dst, l.Staged()-1)
	}
	require.NoError(t, l.Publish())
	wg.Wait()
	require.NoError(t, failed.get())
	drain(l)
	require.Zero(t, pool.Used())
}
