package engine_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

// damage flips one byte of the first file of partition 0 that is sealed.
func damage(t testing.TB, m vfs.FS, id engine.TopicID) {
	t.Helper()
	d := filepath.Join(dir, id.String(), "00000")
	names, err := m.List(d)
	require.NoError(t, err)
	for _, n := range names {
		if strings.HasSuffix(n, ".leat") {
			f, err := m.Open(filepath.Join(d, n))
			require.NoError(t, err)
			defer f.Close()
			b := make([]byte, 1)
			_, err = f.ReadAt(b, 3000)
			require.NoError(t, err)
			b[0] ^= 0xff
			_, err = f.WriteAt(b, 3000)
			require.NoError(t, err)
			return
		}
	}
	t.Fatal("no file")
}

func TestDurable_DamageIsRefused(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{})
	top := create(t, e, "bad", durable(engine.Always, 1))
	send(t, top, 500)
	good := create(t, e, "good", durable(engine.Always, 1))
	send(t, good, 5)
	newGroup(t, e, "g", engine.GroupConfig{Start: engine.Earliest()}, "bad")
	require.NoError(t, e.Close())
	damage(t, m, top.ID())

	e = on(t, m, engine.Config{})
	_, err := e.Topic("bad")
	require.ErrorIs(t, err, engine.ErrCorrupt)
	var where *disk.CorruptError
	require.ErrorAs(t, err, &where)
	assert.Less(t, where.From, where.To)
	_, err = e.Group("g")
	require.ErrorIs(t, err, engine.ErrCorrupt)
	_, err = e.CreateTopic("bad", engine.TopicConfig{})
	require.ErrorIs(t, err, engine.ErrTopicExists)
	_, err = e.CreateGroup("g", engine.GroupConfig{Topics: []string{"good"}})
	require.ErrorIs(t, err, engine.ErrGroupExists)
	holds(t, topicOf(t, e, "good"), 5)
	require.NoError(t, e.Close())

	// Whoever does not want it any more can delete it.
	copied := kept(m)
	e = on(t, copied, engine.Config{})
	require.NoError(t, e.DeleteTopic("bad"))
	require.NoError(t, e.DeleteGroup("g"))
	require.ErrorIs(t, e.DeleteTopic("bad"), engine.ErrUnknownTopic)
	require.ErrorIs(t, e.DeleteGroup("g"), engine.ErrUnknownGroup)
	create(t, e, "bad", durable(engine.Always, 1))
	require.NoError(t, e.Close())
	e = on(t, copied, engine.Config{})
	assert.Equal(t, []string{"bad", "good"}, e.Topics())

	for range 2 {
		e = on(t, m, engine.Config{Salvage: true})
		top = topicOf(t, e, "bad")
		p := part(t, top, 0)
		assert.Equal(t, engine.Offset(500), p.Next())
		assert.Positive(t, p.First())
		assert.Less(t, p.First(), engine.Offset(500))
		for off, r := range p.Records(0) {
			require.Equal(t, fmt.Sprint(off), string(r.Value))
		}
		require.NoError(t, e.Close())
	}
	e = on(t, m, engine.Config{})
	send(t, topicOf(t, e, "bad"), 1)
}

func TestDurable_MissingIsDamage(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{})
	top := create(t, e, "t", durable(engine.Always, 1))
	require.NoError(t, e.Close())
	require.NoError(t, disk.Remove(filepath.Join(dir, top.ID().String(), "00000"), m))
	e = on(t, m, engine.Config{})
	_, err := e.Topic("t")
	require.ErrorIs(t, err, engine.ErrCorrupt)
	require.NoError(t, e.Close())
	require.NoError(t, m.Remove(filepath.Join(dir, "catalog")))
	_, err = engine.Open(engine.Config{Dir: dir}.WithFS(m))
	require.ErrorIs(t, err, engine.ErrCorrupt)
}

func TestDurable_ReadOnly(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{})
	top := create(t, e, "t", durable(engine.Always, 2))
	send(t, top, 10)
	newGroup(t, e, "g", engine.GroupConfig{Start: engine.Earliest()}, "t")
	before := m.String()
	for range 2 { // beside the engine, and after it
		x := on(t, m, engine.Config{ReadOnly: true})
		top = topicOf(t, x, "t")
		holds(t, top, 10)
		_, err := top.Publish(background, engine.Record{})
		require.ErrorIs(t, err, engine.ErrReadOnly)
		_, err = x.CreateTopic("u", durable(engine.Always, 1))
		require.ErrorIs(t, err, engine.ErrReadOnly)
		require.ErrorIs(t, x.DeleteTopic("t"), engine.ErrReadOnly)
		require.ErrorIs(t, top.SetPartitions(3), engine.ErrReadOnly)
		require.ErrorIs(t, part(t, top, 0).TruncateBefore(background, 5), engine.ErrReadOnly)
		require.ErrorIs(t, top.Resume(background), engine.ErrReadOnly)
		groupOf(t, x, "g")
		require.NoError(t, x.Close())
		assert.Equal(t, before, m.String())
		require.NoError(t, e.Close())
		before = m.String()
	}
}

// TestDurable_Resume fills a disk, and lets writing go on.
func TestDurable_Resume(t *testing.T) {
	for _, s := range []engine.Sync{engine.Always, engine.Interval(time.Millisecond), engine.Never} {
		t.Run(s.String(), func(t *testing.T) {
			m := vfs.NewMem()
			told := make(chan error, 1)
			e := on(t, m, engine.Config{Hooks: engine.Hooks{FilesFailed: func(_ string, _ int, err error) { told <- err }}})
			top := create(t, e, "t", durable(s, 1))
			p := part(t, top, 0)
			m.SetLimit(m.Used() + 40<<10)
			acked := map[engine.Offset]string{}
			put := func() error {
				v := fmt.Sprint(len(acked), strings.Repeat("x", 500))
				at, err := p.Publish(background, engine.Record{Value: []byte(v)})
				if err == nil {
					acked[at.Offset] = v
				}
				return err
			}
			var err error
			for err == nil {
				err = put()
			}
			require.ErrorIs(t, err, engine.ErrNoSpace)
			require.ErrorIs(t, err, engine.ErrReadOnly)
			require.ErrorIs(t, <-told, engine.ErrNoSpace)
			require.Error(t, p.DurableStats().ReadOnly)
			m.SetLimit(0)
			require.ErrorIs(t, top.Resume(background), engine.ErrNoSpace)
			m.SetLimit(-1)
			require.NoError(t, top.Resume(background))
			require.NoError(t, p.DurableStats().ReadOnly)
			for range 100 {
				require.NoError(t, put())
			}
			require.NoError(t, top.Flush(background))
			for _, top := range []*engine.Topic{top, topicOf(t, on(t, lost(m), engine.Config{}), "t")} {
				p := part(t, top, 0)
				n := 0
				for off, r := range p.Records(0) {
					if v, ok := acked[off]; ok {
						require.Equal(t, v, string(r.Value))
						n++
					}
				}
				assert.Equal(t, len(acked), n)
			}
		})
	}
}
