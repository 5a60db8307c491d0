package engine_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/vfs"
)

// TestDurable_SalvageKeepsPositions has a partition salvaged that a group and a subscription have positions in. What is sound keeps
// its offsets, so they stay where they were.
func TestDurable_SalvageKeepsPositions(t *testing.T) {
	for _, clean := range []bool{true, false} {
		m := vfs.NewMem()
		e := on(t, m, engine.Config{})
		top, err := e.CreateTopic("t", durable(engine.Always, 1))
		require.NoError(t, err)
		send(t, top, 1500)
		_, err = e.CreateGroup("g", engine.GroupConfig{Topics: []string{"t"}, Start: engine.Earliest(), Gap: engine.FailOnGap})
		require.NoError(t, err)
		require.NoError(t, e.ResetOffsets("g", "t", engine.At(1400), engine.ResetOptions{}))
		if clean {
			require.NoError(t, e.Close())
		} else {
			require.NoError(t, e.SavePositionsUnsafely())
			m = lost(m)
		}
		damage(t, m, top.ID())
		told := func(string, string, *engine.TruncatedError) { t.Error("told that a position was beyond the end") }
		for range 2 {
			e = on(t, m, engine.Config{Salvage: true, Hooks: engine.Hooks{Truncated: told}})
			g, err := e.Group("g")
			require.NoError(t, err)
			off, err := g.Committed("t", 0)
			require.NoError(t, err)
			assert.Equal(t, engine.Offset(1400), off)
			require.NoError(t, e.Close())
		}
	}
}

// positionsDamaged returns a directory with a topic that has 20 records in each of two partitions, of which the first begins at 5, a
// named subscription s and a group g, both at 15, and what the files of their positions are called.
func positionsDamaged(t testing.TB) (m *vfs.Mem, ofTopic, ofGroup string) {
	m = vfs.NewMem()
	e := on(t, m, engine.Config{})
	top := create(t, e, "t", durable(engine.Always, 2))
	send(t, top, 15)
	g := newGroup(t, e, "g", engine.GroupConfig{Start: engine.Latest()}, "t")
	s := subscribe(t, top, handle(func(*engine.Message) error { return nil }), engine.SubscribeConfig{ID: "s", Start: engine.Earliest()})
	caughtUp(s)
	s.Close()
	<-s.Done()
	send(t, top, 5)
	off, err := g.Committed("t", 0)
	require.NoError(t, err)
	require.EqualValues(t, 15, off)
	require.NoError(t, part(t, top, 0).TruncateBefore(background, 5))
	require.NoError(t, e.Close())
	says, err := engine.InspectOn(m, dir)
	require.NoError(t, err)
	require.Equal(t, map[string][]engine.Offset{"s": {15, 15}}, says.Topics[0].Subscriptions)
	return m, filepath.Join(dir, top.ID().String(), "positions"), filepath.Join(dir, "group-1")
}

// flip damages a file, and returns what is in it then.
func flip(t testing.TB, m *vfs.Mem, name string) []byte {
	b, err := vfs.ReadFile(m, name, 1<<20)
	require.NoError(t, err)
	b[len(b)-3] ^= 1
	require.NoError(t, vfs.Replace(m, name, b))
	return b
}

// TestDurable_SalvagePositions damages positions: a topic and a group are refused without them, and with Salvage they are there, what is
// lost is told of, and what was in the file is kept.
func TestDurable_SalvagePositions(t *testing.T) {
	m, ofTopic, ofGroup := positionsDamaged(t)
	damagedTopic, damagedGroup := flip(t, m, ofTopic), flip(t, m, ofGroup)
	holds := func(name string, want []byte) {
		t.Helper()
		b, err := vfs.ReadFile(m, name, 1<<20)
		require.NoError(t, err)
		require.Equal(t, want, b)
	}
	for _, c := range []engine.Config{{}, {ReadOnly: true}, {ReadOnly: true, Salvage: true}} {
		e := on(t, m, c)
		_, err := e.Topic("t")
		require.ErrorIs(t, err, engine.ErrCorrupt)
		_, err = e.Group("g")
		require.ErrorIs(t, err, engine.ErrCorrupt)
		require.NoError(t, e.Close())
		holds(ofTopic, damagedTopic)
		holds(ofGroup, damagedGroup)
	}
	var log bytes.Buffer
	e := on(t, m, engine.Config{Salvage: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.Contains(t, log.String(), `level=ERROR msg="leat: positions lost" topic=t file=`+ofTopic+" copy="+ofTopic+"-damaged-1 error=")
	require.Contains(t, log.String(), `level=ERROR msg="leat: positions lost" group=g file=`+ofGroup+" copy="+ofGroup+"-damaged-1 error=")
	require.Equal(t, 2, strings.Count(log.String(), "lost"), "records are not")
	check := func(e *engine.Engine) {
		t.Helper()
		top, g := topicOf(t, e, "t"), groupOf(t, e, "g")
		for p, first := range []engine.Offset{5, 0} {
			require.Equal(t, first, part(t, top, p).First())
			require.Equal(t, engine.Offset(20), part(t, top, p).Next())
			off, err := g.Committed("t", p)
			require.NoError(t, err)
			require.Equal(t, first, off)
		}
	}
	check(e)
	require.ErrorIs(t, topicOf(t, e, "t").ForgetPositions("s"), engine.ErrUnknownSubscription)
	holds(ofTopic+"-damaged-1", damagedTopic)
	holds(ofGroup+"-damaged-1", damagedGroup)

	m = lost(m) // it was safe when Open returned
	e = on(t, m, engine.Config{})
	check(e)
	require.NoError(t, e.ResetOffsets("g", "t", engine.At(7), engine.ResetOptions{}))
	require.NoError(t, e.Close())
	flip(t, m, ofGroup)
	e = on(t, m, engine.Config{Salvage: true})
	check(e)
	require.NoError(t, e.Close())
	_, err := m.Stat(ofGroup + "-damaged-2")
	require.NoError(t, err)

	require.NoError(t, m.Remove(ofGroup))
	e = on(t, m, engine.Config{})
	_, err = e.Group("g")
	require.ErrorIs(t, err, engine.ErrCorrupt)
	require.NoError(t, e.Close())
	e = on(t, m, engine.Config{Salvage: true})
	check(e)
	_, err = m.Stat(ofGroup + "-damaged-3")
	require.ErrorIs(t, err, fs.ErrNotExist, "there is nothing to keep")
	require.NoError(t, e.DeleteGroup("g"))
	require.NoError(t, e.DeleteTopic("t"))
	require.NoError(t, e.Close())
	_, err = m.Stat(ofTopic + "-damaged-1")
	require.NoError(t, err, "what is damaged stays")
}

// TestDurable_SalvagePositionsFails lets each operation fail while positions are salvaged, and the power go after that: what was in the
// files is there, under one name or another, until all has gone well.
func TestDurable_SalvagePositionsFails(t *testing.T) {
	boom := errors.New("boom")
	for n := 1; ; n++ {
		m, ofTopic, ofGroup := positionsDamaged(t)
		damaged := map[string][]byte{ofTopic: flip(t, m, ofTopic), ofGroup: flip(t, m, ofGroup)}
		fsys, failed := vfs.FailNth(n, m, boom)
		if e, err := engine.Open(engine.Config{Dir: dir, Salvage: true, PositionsEvery: time.Hour}.WithFS(fsys)); err == nil {
			_ = e.Close()
		}
		require.Empty(t, fsys.Left(), "operation %d", n)
		for _, m := range []*vfs.Mem{lost(m), kept(m)} {
			there := func() {
				t.Helper()
				for name, want := range damaged {
					found := false
					names, err := m.List(filepath.Dir(name))
					require.NoError(t, err)
					for _, other := range names {
						b, err := vfs.ReadFile(m, filepath.Join(filepath.Dir(name), other), 1<<20)
						found = found || err == nil && bytes.Equal(b, want)
					}
					require.True(t, found, "operation %d: %s", n, name)
				}
			}
			there()
			e := on(t, m, engine.Config{Salvage: true})
			off, err := groupOf(t, e, "g").Committed("t", 0)
			require.NoError(t, err)
			require.Equal(t, engine.Offset(5), off, "operation %d", n)
			require.Equal(t, engine.Offset(20), part(t, topicOf(t, e, "t"), 0).Next())
			require.NoError(t, e.Close())
			there()
		}
		if !failed() {
			return
		}
	}
}

// TestDurable_SalvagePositionsOfARefusedTopic has a group's positions damaged when its topic cannot be opened for another reason: they are
// not replaced before it is known where the topic begins.
func TestDurable_SalvagePositionsOfARefusedTopic(t *testing.T) {
	m, ofTopic, ofGroup := positionsDamaged(t)
	damaged, boom := flip(t, m, ofGroup), errors.New("boom")
	fsys := vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if o.Name == ofTopic {
			return &vfs.Fault{Err: boom}
		}
		return nil
	})
	e := on(t, fsys, engine.Config{Salvage: true})
	_, err := e.Topic("t")
	require.ErrorIs(t, err, boom)
	_, err = e.Group("g")
	require.ErrorIs(t, err, boom)
	require.NoError(t, e.Close())
	b, err := vfs.ReadFile(m, ofGroup, 1<<20)
	require.NoError(t, err)
	require.Equal(t, damaged, b)
	e = on(t, m, engine.Config{Salvage: true})
	off, err := groupOf(t, e, "g").Committed("t", 0)
	require.NoError(t, err)
	require.Equal(t, engine.Offset(5), off)
}
