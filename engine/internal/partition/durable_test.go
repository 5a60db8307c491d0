package partition_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/cursor"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

// faults is a file system of which single kinds of operations can be made to fail or to wait.
type faults struct {
	*vfs.Faulty
	mem *vfs.Mem

	mu    sync.Mutex
	fail  map[vfs.OpKind]*vfs.Fault
	stall map[vfs.OpKind]chan struct{}
	syncs atomic.Int64
	stuck chan struct{} // gets one for each operation that waits
}

func newFaults() *faults {
	f := &faults{mem: vfs.NewMem(), fail: map[vfs.OpKind]*vfs.Fault{}, stall: map[vfs.OpKind]chan struct{}{}, stuck: make(chan struct{}, 100)}
	f.Faulty = vfs.NewFaulty(f.mem, func(o vfs.Op) *vfs.Fault {
		if o.Kind == vfs.OpSync {
			f.syncs.Add(1)
		}
		f.mu.Lock()
		wait, fault := f.stall[o.Kind], f.fail[o.Kind]
		f.mu.Unlock()
		if wait != nil {
			f.stuck <- struct{}{}
			<-wait
		}
		return fault
	})
	return f
}

func (f *faults) set(k vfs.OpKind, fault *vfs.Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail[k] = fault
}

// hang makes operations wait until the function that it returns is called.
func (f *faults) hang(k vfs.OpKind) (release func()) {
	c := make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stall[k] = c
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.stall, k)
		close(c)
	}
}

// keep starts a partition with files.
func keep(t testing.TB, fsys vfs.FS, policy storage.Policy, s setup) part {
	t.Helper()
	if s.pool == nil {
		s.pool = segment.NewPool(s.memory, 1<<20)
	}
	var p part
	store, err := storage.Open(storage.Config{
		Dir:      "log",
		Disk:     disk.Config{FS: fsys, Partition: 7, First: s.first, SegmentBytes: 64 << 10},
		Policy:   policy,
		Interval: time.Millisecond,
		Failed:   func(err error) { p.Broken(err) },
	})
	require.NoError(t, err)
	s.loaded, err = store.Load(storage.Loading{Log: segment.Config{SegmentBytes: s.segBytes, SegmentRecords: s.segments, Partition: 7, Pool: s.pool}})
	require.NoError(t, err)
	s.store = store
	p = start(t, s)
	return p
}

// reopen ends a partition and starts it again from its files.
func (p part) reopen(t testing.TB, fsys vfs.FS, policy storage.Policy, s setup) part {
	t.Helper()
	p.Close(errOver)
	<-p.Done()
	_ = p.Store().Close()
	return keep(t, fsys, policy, s)
}

func TestDurable_PublishedIsDurable(t *testing.T) {
	f := newFaults()
	p := keep(t, f, storage.Always, setup{})
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	for i := range 5 {
		off, err := p.Publish(background, value("a"))
		require.NoError(t, err)
		require.Equal(t, int64(2*i), off)
		off, err = p.Publish(ctx, value("b"))
		require.NoError(t, err)
		require.Equal(t, int64(2*i+1), off)
		require.Equal(t, off+1, p.Durable())
	}
	require.NoError(t, p.TryPublish(value("try")))
	require.NoError(t, p.PublishAsync(background, value("async"), nil))
	_, err := p.PublishBatch(background, []segment.Record{{Value: []byte("x")}, {Key: []byte{}, Timestamp: 5}})
	require.NoError(t, err)
	require.NoError(t, p.Flush(background))
	before := values(t, p)
	require.Len(t, before, 14)
	// What a power cut leaves.
	crashed := f.mem.Crash(func(int) bool { return false })
	q := keep(t, crashed, storage.Always, setup{})
	assert.Equal(t, before, values(t, q))
	q = q.reopen(t, crashed, storage.Always, setup{})
	assert.Equal(t, before, values(t, q))
	publish(t, q, 1)
	require.NoError(t, q.Store().Abandon())
	require.NoError(t, p.Store().Abandon())
}

// TestDurable_OneSyncForAll has many wait while the first one's sync lasts.
func TestDurable_OneSyncForAll(t *testing.T) {
	f := newFaults()
	p := keep(t, f, storage.Always, setup{})
	publish(t, p, 1)
	before := f.syncs.Load()
	release := f.hang(vfs.OpSync)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, err := p.Publish(background, value("x"))
			assert.NoError(t, err)
		})
		wg.Go(func() {
			_, err := p.PublishBatch(background, []segment.Record{{Value: []byte("x")}, {Value: []byte("y")}})
			assert.NoError(t, err)
		})
	}
	<-f.stuck
	testkit.Await(func() bool { return p.Stats().InHandover >= 39 })
	_, next := p.Snapshot()
	assert.Equal(t, int64(1), next, "nothing is visible that is not durable")
	release()
	wg.Wait()
	assert.Less(t, f.syncs.Load()-before, int64(10), "of 40; one that is slow to fill its slot ends a batch")
	_, next = p.Snapshot()
	assert.Equal(t, int64(61), next)
}

func TestDurable_NobodyWaitsWhoMustNot(t *testing.T) {
	f := newFaults()
	p := keep(t, f, storage.Always, setup{})
	publish(t, p, 1)
	release := f.hang(vfs.OpSync)
	require.NoError(t, p.TryPublish(value("a")))
	<-f.stuck
	require.NoError(t, p.TryPublish(value("b")))
	require.NoError(t, p.PublishAsync(background, value("c"), nil))
	// One that comes while the files are waited for can leave, and its record never appears.
	ctx, cancel := context.WithTimeout(background, time.Millisecond)
	defer cancel()
	_, err := p.Publish(ctx, value("never"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, storage.ErrIndefinite)
	release()
	require.NoError(t, p.Flush(background))
	assert.Equal(t, []string{"0", "a", "b", "c"}, values(t, p))

	// And one whose record is being synced.
	release = f.hang(vfs.OpSync)
	ctx, cancel = context.WithCancel(background)
	failed := make(chan error)
	go func() {
		_, err := p.Publish(ctx, value("perhaps"))
		failed <- err
	}()
	<-f.stuck
	cancel()
	err = <-failed
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, storage.ErrIndefinite)
	release()
	require.NoError(t, p.Flush(background))
	assert.Equal(t, []string{"0", "a", "b", "c", "perhaps"}, values(t, p))
}

// TestBUG080_SyncThatFails: no retry, nobody is told that all went well, readers go on, and Resume begins anew.
func TestBUG080_SyncThatFails(t *testing.T) {
	for _, op := range []vfs.OpKind{vfs.OpSync, vfs.OpWrite} {
		for _, lone := range []bool{true, false} {
			t.Run(fmt.Sprint(op, lone), func(t *testing.T) {
				f := newFaults()
				p := keep(t, f, storage.Always, setup{})
				publish(t, p, 3)
				broken := errors.New("broken")
				f.set(op, &vfs.Fault{Err: broken, Lose: true})
				ctx, cancel := context.WithCancel(background)
				defer cancel()
				if lone {
					ctx = background
				}
				_, err := p.Publish(ctx, value("lost"))
				require.ErrorIs(t, err, broken)
				require.ErrorIs(t, err, storage.ErrIndefinite)
				require.ErrorIs(t, err, storage.ErrReadOnly)
				f.set(op, nil)
				// The disk says that it is well again: nobody believes it.
				for _, err := range []error{
					func() error { _, err := p.Publish(ctx, value("no")); return err }(),
					p.TryPublish(value("no")),
					p.PublishAsync(background, value("no"), nil),
					func() error { _, err := p.PublishBatch(ctx, make([]segment.Record, 2)); return err }(),
					func() error { _, err := p.Appender(ctx); return err }(),
				} {
					require.ErrorIs(t, err, storage.ErrReadOnly)
					require.ErrorIs(t, err, broken)
					require.NotErrorIs(t, err, storage.ErrIndefinite)
				}
				assert.Equal(t, []string{"0", "1", "2"}, values(t, p))
				assert.Zero(t, p.Stats().AsyncFailed)

				require.NoError(t, p.Resume(background))
				n := len(values(t, p)) // the indefinite one may be there
				require.GreaterOrEqual(t, n, 3)
				publish(t, p, 2)
				all := values(t, p)
				assert.Equal(t, int64(len(all)), p.Durable())
				q := keep(t, f.mem.Crash(func(int) bool { return false }), storage.Always, setup{})
				assert.Equal(t, all, values(t, q))
			})
		}
	}
}

// TestDurable_ResumeWakesReaders: what comes back at Resume is all that comes, and a parked reader gets it.
func TestDurable_ResumeWakesReaders(t *testing.T) {
	f := newFaults()
	p := keep(t, f, storage.Always, setup{})
	f.set(vfs.OpSync, &vfs.Fault{Err: errors.New("broken")})
	_, err := p.Publish(background, value("back"))
	require.ErrorIs(t, err, storage.ErrIndefinite)
	f.set(vfs.OpSync, nil)

	r, err := p.NewReader(nil, cursor.WaitPark, earliest)
	require.NoError(t, err)
	defer r.Close()
	got := make(chan string, 1)
	go func() {
		var rec segment.Record
		if err := r.Next(background, &rec); err != nil {
			got <- err.Error()
			return
		}
		got <- string(rec.Value)
	}()
	testkit.Await(func() bool { return p.WaitingReaders() == 1 })
	require.NoError(t, p.Resume(background))
	require.EqualValues(t, 1, p.Log().Committed(), "the record has not come back")
	require.Equal(t, "back", <-got)
}

func TestDurable_Appender(t *testing.T) {
	f := newFaults()
	p := keep(t, f, storage.Always, setup{})
	x, err := p.Appender(background)
	require.NoError(t, err)
	for i := range 300 {
		off, err := x.Append(background, value(fmt.Sprint(i)))
		require.NoError(t, err)
		require.Equal(t, int64(i), off)
	}
	assert.Equal(t, int64(256), p.Durable())
	require.NoError(t, x.Flush())
	assert.Equal(t, int64(300), p.Durable())
	_, err = x.Append(background, value("lost"))
	require.NoError(t, err)
	f.set(vfs.OpSync, &vfs.Fault{Err: errors.New("broken")})
	require.ErrorIs(t, x.Flush(), storage.ErrIndefinite)
	_, err = x.Append(background, value("no"))
	require.ErrorIs(t, err, storage.ErrReadOnly)
	require.ErrorIs(t, x.Close(), storage.ErrReadOnly)
	f.set(vfs.OpSync, nil)
	require.NoError(t, p.Resume(background))
	_, err = p.Publish(background, value("on"))
	require.NoError(t, err)
	all := values(t, p)
	assert.Equal(t, "on", all[len(all)-1])
	assert.Equal(t, int64(len(all)), p.Durable())
}

func TestDurable_Interval(t *testing.T) {
	f := newFaults()
	p := keep(t, f, storage.Every, setup{})
	release := f.hang(vfs.OpSync)
	publish(t, p, 1) // it does not wait
	<-f.stuck
	publish(t, p, 10)
	ctx, cancel := context.WithTimeout(background, time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.Flush(ctx), context.DeadlineExceeded)
	release()
	testkit.Await(func() bool { return p.Durable() == 11 })
	require.NoError(t, p.Flush(background))

	// A sync that fails on its own goroutine ends writing.
	f.set(vfs.OpSync, &vfs.Fault{Err: errors.New("broken")})
	publish(t, p, 1)
	testkit.Await(func() bool {
		_, err := p.Publish(background, value("x"))
		return errors.Is(err, storage.ErrReadOnly)
	})
	f.set(vfs.OpSync, nil)
	require.NoError(t, p.Resume(background))
	_, err := p.Publish(background, value("y"))
	require.NoError(t, err)
	require.NoError(t, p.Flush(background))
	all := values(t, p)
	q := keep(t, f.mem.Crash(func(int) bool { return false }), storage.Every, setup{})
	assert.Equal(t, all, values(t, q))
}

func TestDurable_Never(t *testing.T) {
	f := newFaults()
	p := keep(t, f, storage.Never, setup{})
	before := f.syncs.Load()
	publish(t, p, 10)
	assert.Equal(t, before, f.syncs.Load())
	assert.Equal(t, int64(0), p.Durable())
	require.NoError(t, p.Flush(background))
	assert.Equal(t, int64(10), p.Durable())
}

// TestDurable_Full fills a small file system, frees space, and goes on.
func TestDurable_Full(t *testing.T) {
	f := newFaults()
	p := keep(t, f, storage.Always, setup{})
	f.mem.SetLimit(f.mem.Used())
	var err error
	n := 0
	for err == nil {
		if _, err = p.Publish(background, &segment.Record{Value: make([]byte, 1000)}); err == nil {
			n++
		}
	}
	require.ErrorIs(t, err, storage.ErrNoSpace)
	require.ErrorIs(t, err, storage.ErrIndefinite)
	require.Len(t, values(t, p), n)
	require.ErrorIs(t, p.Resume(background), storage.ErrNoSpace)
	require.ErrorIs(t, p.TryPublish(value("x")), storage.ErrReadOnly)
	f.mem.SetLimit(1 << 30)
	require.NoError(t, p.Resume(background))
	off, err := p.Publish(background, value("on"))
	require.NoError(t, err)
	q := keep(t, f.mem.Crash(func(int) bool { return false }), storage.Always, setup{})
	assert.Len(t, values(t, q), int(off)+1)
}

func TestDurable_Retention(t *testing.T) {
	f := newFaults()
	s := setup{onFull: partition.DropOldest, segments: 10}
	s.limits.MaxRecords = 100
	p := keep(t, f, storage.Always, s)
	for range 3000 {
		_, err := p.Publish(background, &segment.Record{Value: make([]byte, 100)})
		require.NoError(t, err)
	}
	first, next := p.Snapshot()
	testkit.Await(func() bool { return p.Store().Files().Files()[0].First > 0 })
	require.NoError(t, p.TruncateBefore(background, next-5))
	assert.Equal(t, uint64(next-5), p.Store().Files().First())
	assert.Greater(t, first, int64(0))
	p = p.reopen(t, f, storage.Always, s)
	got, end := p.Snapshot()
	assert.Equal(t, next-5, got)
	assert.Equal(t, next, end)
}
