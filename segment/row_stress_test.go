package segment_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

// What the record at an offset is in TestRow_StressFinding: the first 40 of each 64 are of one size and one time, and can come in runs.
func rowed(off uint64) bool { return off%64 < 40 }

func rowedTime(off uint64) int64 {
	if rowed(off) {
		off -= off % 64
	}
	return int64(off)
}

// checkRowedTime returns what is wrong with an append time. It may be that of records that came later and were taken back.
func checkRowedTime(at int64, off uint64) error {
	if want := rowedTime(off); at < want || at > want+256 {
		return fmt.Errorf("offset %d: time %d, want %d", off, at, want)
	}
	return nil
}

func rowedSize(off uint64) int {
	if rowed(off) {
		off /= 64
	}
	return 8 * int(off%4+1)
}

func fillRowed(value []byte, off uint64) {
	for ; len(value) > 0; value = value[8:] {
		binary.LittleEndian.PutUint64(value, off)
	}
}

func checkRowed(value []byte, off uint64) error {
	if len(value) != rowedSize(off) {
		return fmt.Errorf("offset %d: %d bytes, want %d", off, len(value), rowedSize(off))
	}
	for ; len(value) > 0; value = value[8:] {
		if got := binary.LittleEndian.Uint64(value); got != off {
			return fmt.Errorf("offset %d: the bytes are those of %d", off, got)
		}
	}
	return nil
}

// stageRowed stages the records from the next offset on that are of one size, or some of them, in one of the ways that there are.
func stageRowed(l *segment.Log, rng *rand.Rand, buffer []byte) error {
	off := l.Staged()
	size, now, n := rowedSize(off), rowedTime(off), 1
	if rowed(off) {
		n += rng.IntN(int(40 - off%64))
	}
	if rng.IntN(2) == 0 {
		batch := make([]segment.Record, n)
		for i := range batch {
			batch[i].Value = buffer[i*size : (i+1)*size]
			fillRowed(batch[i].Value, off+uint64(i))
		}
		_, err := l.AppendEach(batch, now)
		return err
	}
	var r segment.Reservation
	if err := l.ReserveRun(&r, n+1, (n+1)*size, size, now); err != nil {
		return err
	}
	first := rng.IntN(n) // one by one, the others as a run
	for i := range first {
		fillRowed(r.Next(size), off+uint64(i))
	}
	run := r.NextRun(n-first, size)
	for i := first; i < n; i++ {
		fillRowed(run[(i-first)*size:(i-first+1)*size], off+uint64(i))
	}
	switch rng.IntN(8) {
	case 0:
		l.Forgo()
		r.End()
		return nil
	case 1:
		l.Roll()
		var to segment.Reservation
		if err := l.ReserveRun(&to, n, n*size, size, now); err != nil {
			return err
		}
		r.MoveTo(&to)
		l.StageRun(&to)
		return nil
	}
	l.StageRun(&r)
	return nil
}

// TestRow_StressFinding checks Rows (segment): while runs and single records are appended, taken back and dropped, and blocks are used again
// that hold all sorts of entries, each published record is found, by its offset and its time, and read in all ways. Readers look for records
// right behind First and right before Committed, where rows come and go.
func TestRow_StressFinding(t *testing.T) {
	pool := segment.NewPool(0, 1<<20).Poison()
	l := segment.NewLog(segment.Config{SegmentBytes: 8192, Pool: pool, First: 1})
	var (
		wg     sync.WaitGroup
		failed firstError
		stop   atomic.Bool
		found  [4]atomic.Int64
	)
	for i := range found {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(11, uint64(i)))
			r := l.NewReader()
			defer r.Close()
			for !stop.Load() && failed.get() == nil {
				n, err := findRowed(l, r, rng)
				if err != nil {
					failed.set(err)
				}
				found[i].Add(int64(n))
				runtime.Gosched()
			}
		})
	}
	rng := rand.New(rand.NewPCG(12, 12))
	buffer := make([]byte, 40*32)
	least := scaled(100_000)
	enough := func() bool {
		for i := range found {
			if found[i].Load() < int64(least)/100 {
				return false
			}
		}
		return true
	}
	for n := 0; (n < least || !enough()) && failed.get() == nil; n++ {
		for range 1 + rng.IntN(3) {
			if err := stageRowed(l, rng, buffer); err != nil {
				failed.set(err)
			}
		}
		if rng.IntN(10) == 0 {
			l.Unstage()
		}
		if err := l.Publish(); err != nil {
			failed.set(err)
		}
		cutSometimes(l, rng)
		if n%16 == 0 {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	wg.Wait()
	require.NoError(t, failed.get())
	drain(l)
	require.Zero(t, pool.Used())
}

// findRowed looks for a record in one of the ways that there are, and returns how many it has found and checked.
func findRowed(l *segment.Log, r *segment.Reader, rng *rand.Rand) (n int, err error) {
	first, next := l.Snapshot()
	if first == next {
		return 0, nil
	}
	off := first + rng.Uint64N(min(next-first, 40))
	if rng.IntN(2) == 0 {
		off = next - 1 - rng.Uint64N(min(next-first, 40))
	}
	switch rng.IntN(4) {
	case 0:
		if at, ok := l.TimeOf(off); ok {
			err = checkRowedTime(at, off)
		}
		at := l.Since(rowedTime(off))
		if after, _ := l.Snapshot(); at > max(off, after) {
			return 0, fmt.Errorf("offset %d for the time of %d, but first is %d", at, off, after)
		}
		return 1, err
	case 1:
		recs := make([]segment.Record, 1+rng.IntN(50))
		n, err = l.ReadAt(off, recs)
		if errors.Is(err, segment.ErrBelow) {
			return 0, nil
		}
		for i := range recs[:n] {
			err = errors.Join(err, checkRowed(recs[i].Value, off+uint64(i)))
		}
		return n, err
	}
	r.Seek(off)
	if r.Refill() != segment.Ready {
		return 0, nil // it is gone
	}
	for range 1 + rng.IntN(8) {
		at := r.Position()
		k, err := takeRowed(r, rng)
		if n += k; err != nil {
			return n, err
		}
		if rng.IntN(4) == 0 && k > 0 {
			r.Back(at + rng.Uint64N(uint64(k)))
		}
	}
	return n, nil
}

// takeRowed takes some records from a window and checks them.
func takeRowed(r *segment.Reader, rng *rand.Rand) (n int, err error) {
	at, some := r.Position(), 1+rng.IntN(40)
	recs, values := make([]segment.Record, some), make([][]byte, some)
	switch rng.IntN(4) {
	case 0:
		for n < some && r.Next(&recs[n]) {
			n++
		}
	case 1:
		n = r.NextEach(recs)
	case 2:
		n = r.NextValues(values)
	default:
		var run []byte
		if run, n = r.NextRun(some); n > 0 {
			for i, size := 0, len(run)/n; i < n; i++ {
				values[i] = run[i*size : (i+1)*size]
			}
		}
	}
	for i := range n {
		v := values[i]
		if v == nil {
			v = recs[i].Value
			if recs[i].Offset != int64(at)+int64(i) || recs[i].Key != nil {
				return n, fmt.Errorf("offset %d: %v", at+uint64(i), recs[i])
			}
			if err := checkRowedTime(recs[i].Timestamp, at+uint64(i)); err != nil {
				return n, err
			}
		}
		if err := checkRowed(v, at+uint64(i)); err != nil {
			return n, err
		}
	}
	return n, nil
}
