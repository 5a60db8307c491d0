package partition_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
)

// TestReserve_Stress attacks what package segment says of a Reservation: while records are made in place, controls truncate and
// retention drops, other partitions take and give the same memory, the appender closes with a reservation out and its holder goes on
// writing there, and others publish in between. Every reader sees whole records in order, and exactly those that were committed.
func TestReserve_Stress(t *testing.T) {
	watchdog(t)
	pool := segment.NewPool(0, 1<<20)
	workers := newWorkers(t, 1)
	p := start(t, setup{limits: retention.Limits{MaxRecords: 40}, segments: 8, segBytes: 4096, pool: pool, workers: workers})
	other := start(t, setup{limits: retention.Limits{MaxRecords: 10}, segments: 4, segBytes: 4096, pool: pool, workers: workers})
	var (
		wg, readers sync.WaitGroup
		stop        atomic.Bool
		committed   atomic.Int64
	)
	wg.Go(func() {
		for n := 0; !stop.Load(); n++ {
			if _, err := other.Publish(background, signed(nil, 1, n)); err != nil {
				t.Error(err)
				return
			}
			runtime.Gosched()
		}
	})
	wg.Go(func() {
		for !stop.Load() {
			_, next := p.Snapshot()
			if err := p.TruncateBefore(background, next); err != nil {
				t.Error(err)
				return
			}
			runtime.Gosched()
		}
	})
	for _, l := range []*segment.Log{p.Log(), other.Log()} {
		readers.Go(func() {
			r := l.NewReader()
			defer r.Close()
			last := -1
			for rec := (segment.Record{}); ; {
				switch r.Refill() {
				case segment.Ready:
					for r.Next(&rec) {
						if !assert.NoError(t, checkSigned(&rec, &last)) {
							return
						}
					}
				case segment.Below:
					r.Seek(l.First())
				case segment.Sealed:
					return
				default:
					runtime.Gosched()
				}
			}
		})
	}
	n, scratch := 0, make([]byte, 256)
	commit := func(x *partition.Appender, abandon bool) error {
		var r segment.Reservation
		const most = 5
		if err := x.Reserve(background, &r, most, most*256); err != nil {
			return err
		}
		var places [most][]byte
		for i := range most {
			rec := signed(scratch, 0, n+i)
			places[i] = r.Next(len(rec.Value))
			copy(places[i], rec.Value)
			if i == 2 {
				runtime.Gosched()
			}
		}
		if abandon {
			if err := x.Close(); err != nil {
				return err
			}
			off, err := p.Publish(background, signed(scratch, 0, n))
			for i := range most {
				for j := range places[i] {
					places[i][j] = 0xaa
				}
			}
			n++
			committed.Store(off + 1)
			return err
		}
		before := r
		first, err := x.Commit(background, &r)
		if err != nil {
			return err
		}
		if before.Records() != most {
			return errors.New("the reservation lost records")
		}
		n += most
		committed.Store(first + most)
		return nil
	}
	for round := range rounds(2000) {
		x, err := p.Appender(background)
		require.NoError(t, err)
		for i := range 5 {
			require.NoError(t, commit(x, i == 4 && round%2 == 0))
		}
		require.NoError(t, x.Close())
	}
	stop.Store(true)
	wg.Wait()
	_, next := p.Snapshot()
	require.Equal(t, committed.Load(), next)
	require.EqualValues(t, n, next, "every record that was committed, and no other")
	p.Close(errOver)
	other.Close(errOver)
	readers.Wait()
}

// checkSigned says what is wrong with a record that signed has made: its bytes, or its place behind the one seen last.
func checkSigned(rec *segment.Record, last *int) error {
	b := rec.Value
	if len(b) < 24 || signature(b) != binary.LittleEndian.Uint64(b[16:]) {
		return fmt.Errorf("offset %d: %d bytes that prove nothing", rec.Offset, len(b))
	}
	n := int(binary.LittleEndian.Uint64(b[8:]))
	if n <= *last || int64(n) != rec.Offset {
		return fmt.Errorf("offset %d: number %d, after %d", rec.Offset, n, *last)
	}
	*last = n
	return nil
}
