package powercut_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/leatlog/leat/engine"
)

// TestFlushFails lets flushes of the disk fail. The topic says so, and goes on only when somebody has looked at what is there.
//
// Each topic has a disk of its own, so that its sync is the first that fails: after that the file system takes no more writes.
func TestFlushFails(t *testing.T) {
	requireMounts(t)
	for _, sys := range systems {
		t.Run(sys.name, func(t *testing.T) {
			empty := sys.make(t)
			for _, s := range []engine.Sync{engine.Always, engine.Interval(time.Hour), engine.Never} {
				t.Run(s.String(), func(t *testing.T) {
					f := &failing{stand: sys.stand(t, empty), sync: s, told: make(chan error, 100)}
					f.test(t)
				})
			}
		})
	}
}

// failing is a disk that is going to fail, and what has been published to it.
type failing struct {
	*stand
	sync   engine.Sync
	values []string // what was published and not refused, by offset
	told   chan error
}

// open opens the engine in a file system.
func (f *failing) open(t *testing.T, dir string) *engine.Engine {
	t.Helper()
	c := config(filepath.Join(dir, folderName))
	c.Hooks.FilesFailed = func(_ string, _ int, err error) { f.told <- err }
	e, err := engine.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() }) // it may say why the topic is read-only
	return e
}

// put publishes n records.
func (f *failing) put(t *testing.T, top *engine.Topic, n int) {
	t.Helper()
	for range n {
		v := fmt.Sprintf("record %d", len(f.values))
		_, err := top.Publish(background, engine.Record{Value: []byte(v)})
		require.NoError(t, err)
		f.values = append(f.values, v)
	}
}

// holds checks that at least so many records are there, and that all are that may be.
func (f *failing) holds(t *testing.T, e *engine.Engine, least int) *engine.Topic {
	t.Helper()
	top, err := e.Topic("t")
	require.NoError(t, err)
	p, err := top.Partition(0)
	require.NoError(t, err)
	require.GreaterOrEqual(t, int(p.Next()), least)
	at := engine.Offset(0)
	for off, r := range p.Records(0) {
		require.Equal(t, at, off)
		want := "indefinite"
		if int(off) < len(f.values) {
			want = f.values[off]
		}
		require.Equal(t, want, string(r.Value))
		at++
	}
	require.Equal(t, p.Next(), at)
	return top
}

func (f *failing) test(t *testing.T) {
	e := f.open(t, f.dir)
	fileBytes := int64(4 << 10)
	if f.sync != engine.Always {
		fileBytes = 1 << 20 // so that nothing is synced because a part of a file is full
	}
	top, err := e.CreateTopic("t", durable(&life{sync: f.sync}, 1, fileBytes))
	require.NoError(t, err)
	f.put(t, top, 150)
	require.NoError(t, top.Flush(background))
	safe := len(f.values)
	f.put(t, top, 3)
	if f.sync == engine.Always {
		safe = len(f.values)
	}
	before := f.position()

	f.fail(true)
	indefinite := engine.Record{Value: []byte("indefinite")}
	if f.sync == engine.Always {
		_, err := top.Publish(background, indefinite)
		require.ErrorIs(t, err, engine.ErrIndefinite)
		require.ErrorIs(t, err, engine.ErrReadOnly)
		require.ErrorIs(t, err, unix.EIO)
	} else {
		err = top.Flush(background)
		for n := 0; n < 100 && err == nil; n++ { // the file system may have written it all by itself before
			safe = len(f.values)
			f.put(t, top, 1)
			err = top.Flush(background)
		}
		require.ErrorIs(t, err, engine.ErrReadOnly)
		require.ErrorIs(t, err, unix.EIO)
	}
	require.Positive(t, f.failures())
	require.ErrorIs(t, <-f.told, engine.ErrReadOnly)
	_, err = top.Publish(background, indefinite)
	require.ErrorIs(t, err, engine.ErrReadOnly)
	require.NotErrorIs(t, err, engine.ErrIndefinite)
	require.Error(t, top.Resume(background), "the disk still fails")
	f.holds(t, e, len(f.values)) // readers go on
	_ = e.Close()

	// The power goes, and of what the file system has done since anything may have arrived.
	log := f.events()
	require.NoError(t, f.unmount())
	all := []cut{{since: before, at: before}, {since: before, at: len(log), mode: keepAll}}
	for seed := range uint64(3) {
		all = append(all, cut{since: before, at: len(log), mode: keepSome, seed: seed, whole: f.sys.whole})
	}
	images(f.before, log, all, func(_ int, c cut, im *image) bool {
		require.NoError(t, f.sys.withImage(im, f.dir, func(dir string) error {
			e := f.open(t, dir)
			f.holds(t, e, safe)
			return e.Close()
		}), "%v", c.mode)
		return true
	})

	// The disk works again, and the power has not been cut.
	f.fail(false)
	require.NoError(t, f.mount())
	e = f.open(t, f.dir)
	_, err = f.holds(t, e, safe).Publish(background, engine.Record{Value: []byte("after")})
	require.NoError(t, err)
	require.NoError(t, e.Close())
}
