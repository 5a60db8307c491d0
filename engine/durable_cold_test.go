package engine_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

const (
	coldRecords = 3000
	coldBad     = 1000 // a record that cannot be read while the files are damaged
)

// coldFiles returns the files of a closed engine with a topic t of one partition, whose records are their numbers, and the same with
// one file damaged, about in the middle.
func coldFiles(t testing.TB) (m *vfs.Mem, flip func()) {
	t.Helper()
	m = vfs.NewMem()
	e := on(t, m, engine.Config{})
	c := durable(engine.Never, 1)
	c.SegmentBytes = 4096
	top := create(t, e, "t", c)
	send(t, top, coldRecords)
	require.NoError(t, e.Close())

	// The file that has the bad record: the last one that begins at or before it.
	d := dir + "/" + top.ID().String() + "/00000"
	names, err := m.List(d)
	require.NoError(t, err)
	file := ""
	for _, n := range names {
		if strings.HasSuffix(n, ".leat") && n <= fmt.Sprintf("%020d.leat", coldBad) {
			file = d + "/" + n
		}
	}
	return m, func() {
		f, err := m.Open(file)
		require.NoError(t, err)
		defer f.Close()
		size, err := f.Size()
		require.NoError(t, err)
		b := make([]byte, 1)
		for at := int64(64 + 10); at < size-1000; at += 72 { // not the seal
			_, err = f.ReadAt(b, at)
			require.NoError(t, err)
			b[0] ^= 0xff
			_, err = f.WriteAt(b, at)
			require.NoError(t, err)
		}
	}
}

// coldEngine opens files so that nearly all is left in them.
func coldEngine(t testing.TB, m vfs.FS, c engine.Config) (*engine.Engine, *engine.Topic, *engine.Partition) {
	t.Helper()
	e := on(t, m, c.WithWarm(1))
	top := topicOf(t, e, "t")
	p := part(t, top, 0)
	require.Equal(t, engine.Offset(coldRecords), p.Next())
	require.Greater(t, p.Cold(), 10)
	return e, top, p
}

// isDamage checks that err says what is damaged.
func isDamage(t testing.TB, err error) {
	t.Helper()
	var load *engine.LoadError
	var bad *disk.CorruptError
	require.ErrorIs(t, err, engine.ErrCorrupt)
	require.ErrorAs(t, err, &load)
	require.ErrorAs(t, err, &bad)
	assert.Contains(t, bad.File, ".leat")
	assert.LessOrEqual(t, load.From, bad.From)
	assert.LessOrEqual(t, load.To, uint64(coldBad+1000))
}

// TestCold_ComesBack reads what Open has left in the files, by each way there is.
func TestCold_ComesBack(t *testing.T) {
	m, _ := coldFiles(t)
	for name, ways := range coldWays {
		t.Run(name, func(t *testing.T) {
			watchdog(t)
			e, top, p := coldEngine(t, kept(m), engine.Config{})
			before := p.Cold()
			last, err := ways(t, e, top, coldRecords)
			require.NoError(t, err)
			require.Equal(t, engine.Offset(coldRecords-1), last)
			require.Less(t, p.Cold(), before)
			holds(t, top, coldRecords)
			require.Zero(t, p.Cold())
			send(t, top, 10)
			holds(t, top, coldRecords+10)
			require.NoError(t, e.Close())
		})
	}
}

// TestCold_Damage has each kind of reader meet damage that Open has not seen: it gets what lies before, then the error, its position
// stays, and once the file is whole again another one goes on there.
func TestCold_Damage(t *testing.T) {
	for name, ways := range coldWays {
		t.Run(name, func(t *testing.T) {
			watchdog(t)
			m, flip := coldFiles(t)
			e, top, p := coldEngine(t, m, engine.Config{})
			flip()
			last, err := ways(t, e, top, coldRecords)
			isDamage(t, err)
			assert.Less(t, last, engine.Offset(coldBad))
			var load *engine.LoadError
			require.ErrorAs(t, err, &load)
			assert.Equal(t, engine.Offset(load.From)-1, last, "all that lies before")
			for _, g := range e.Groups() {
				g := groupOf(t, e, g)
				at := committed(t, g, "t", 0)
				if g.Config().Kind == engine.Shared { // a seat that was about to begin may have left something
					assert.LessOrEqual(t, at, engine.Offset(load.From))
					continue
				}
				assert.EqualValues(t, load.From, at, "the position stays where nothing can be read")
			}
			// The partition works, but for that.
			_, err = p.Publish(background, engine.Record{Value: []byte("more")})
			require.NoError(t, err)
			var recs [1]engine.Record
			n, err := p.ReadAt(coldRecords-1, recs[:])
			require.NoError(t, err)
			require.Equal(t, 1, n)
			_ = p.Age()
			_ = e.Stats()

			flip()
			last, err = ways(t, e, top, coldRecords+1)
			require.NoError(t, err)
			assert.Equal(t, engine.Offset(coldRecords), last)
			require.NoError(t, e.Close())
		})
	}
}

// TestCold_SeekByTime searches by time in what is in the files: it reads what it has to, and says so if it cannot.
func TestCold_SeekByTime(t *testing.T) {
	m, flip := coldFiles(t)
	e, top, p := coldEngine(t, m, engine.Config{})
	want, err := on(t, kept(m), engine.Config{}.WithWarm(-1)).Topic("t")
	require.NoError(t, err)
	var recs [1]engine.Record
	_, err = part(t, want, 0).ReadAt(coldBad, recs[:])
	require.NoError(t, err)
	at := time.Unix(0, recs[0].Timestamp)
	before := p.Cold()
	flip()
	r, err := p.Reader(engine.ReaderConfig{Start: engine.Latest()})
	require.NoError(t, err)
	defer r.Close()
	isDamage(t, r.Seek(engine.Since(at)))
	assert.EqualValues(t, coldRecords, r.Position())
	_, err = p.Reader(engine.ReaderConfig{Start: engine.Since(at)})
	isDamage(t, err)
	_, err = top.Subscribe(ignore, engine.SubscribeConfig{Start: engine.Since(at)})
	isDamage(t, err)
	_, err = top.Subscribe(ignore, engine.SubscribeConfig{Start: engine.Since(at), ByKey: engine.Parallelism{Handlers: 2}})
	isDamage(t, err)
	_, err = top.Subscribe(ignore, engine.SubscribeConfig{Start: engine.Since(at), Mode: engine.Manual})
	isDamage(t, err)
	sub := subscribe(t, top, ignore, engine.SubscribeConfig{})
	isDamage(t, sub.Seek(0, engine.Since(at)))
	require.NoError(t, sub.Err())
	sub.Close()
	_, err = e.CreateGroup("g", engine.GroupConfig{Topics: []string{"t"}, Start: engine.Since(at)})
	isDamage(t, err)
	g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
	isDamage(t, e.ResetOffsets("g", "t", engine.Since(at), engine.ResetOptions{}))
	mem := join(t, g, ignore, engine.MemberConfig{})
	isDamage(t, mem.Seek("t", 0, engine.Since(at)))
	require.NoError(t, mem.Err())
	mem.Close()
	<-mem.Done()
	flip()
	require.NoError(t, e.ResetOffsets("g", "t", engine.Since(at), engine.ResetOptions{}))
	where := committed(t, g, "t", 0)
	assert.LessOrEqual(t, where, engine.Offset(coldBad))
	require.NoError(t, r.Seek(engine.Since(at)))
	assert.LessOrEqual(t, r.Position(), engine.Offset(coldBad))
	assert.LessOrEqual(t, before-p.Cold(), 4, "a segment or some, and not all")
	require.NoError(t, e.Close())
}

// TestCold_OpenReadsLittle counts what Open reads, and what it keeps in memory: both are bounded, however long the log is.
func TestCold_OpenReadsLittle(t *testing.T) {
	m := vfs.NewMem()
	var read atomic.Int64
	counted := vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if o.Kind == vfs.OpRead {
			read.Add(int64(o.Len))
		}
		return nil
	})
	e := on(t, counted, engine.Config{})
	c := engine.TopicConfig{Partitions: 1, Durable: &engine.Durable{Sync: engine.Never, FileBytes: 4 << 20}}
	top := create(t, e, "t", c)
	p := part(t, top, 0)
	const records = 48 << 10
	batch := make([]engine.Record, 64)
	for i := range batch {
		batch[i].Value = make([]byte, 1000)
	}
	for range records / len(batch) {
		require.NoError(t, p.PublishBatch(background, batch))
	}
	require.NoError(t, e.Close())
	clear(batch)

	heap := func() int64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	read.Store(0)
	before := heap()
	e = on(t, counted, engine.Config{}.WithWarm(1<<20))
	took := heap() - before
	assert.Less(t, read.Load(), int64(4<<20), "of 48 MiB")
	assert.Less(t, took, int64(16<<20), "of 48 MiB")
	p = part(t, topicOf(t, e, "t"), 0)
	assert.EqualValues(t, records, p.Next())
	assert.Greater(t, e.Stats().MemoryUsed, int64(48<<20), "what it will take is counted")
	n := 0
	for range p.Records(0) {
		n++
	}
	assert.Equal(t, records, n)
	require.NoError(t, e.Close())
}

// TestCold_CloseWhileReading closes the engine, or deletes the topic, while readers load: they end with what has ended them.
func TestCold_CloseWhileReading(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		for round := range rounds(12) {
			watchdog(t)
			m, _ := coldFiles(t)
			slow := vfs.NewFaulty(m, func(vfs.Op) *vfs.Fault {
				runtime.Gosched()
				return nil
			})
			e, top, p := coldEngine(t, slow, engine.Config{ReadOnly: readOnly})
			var wg sync.WaitGroup
			wrong := make(chan error, 10)
			began := make(chan struct{}, 10)
			for i := range 3 {
				wg.Go(func() {
					began <- struct{}{}
					for at := engine.Offset(i); ; at = (at + 77) % coldRecords {
						if _, err := p.ReadAt(at, make([]engine.Record, 3)); err != nil {
							wrong <- err
							return
						}
					}
				})
				wg.Go(func() {
					began <- struct{}{}
					for {
						for _, err := range p.Follow(background, 0) {
							if err != nil {
								wrong <- err
								return
							}
							if p.Cold() == 0 {
								break
							}
						}
					}
				})
			}
			for range 6 {
				<-began
			}
			for range round {
				runtime.Gosched()
			}
			want := engine.ErrClosed
			if round%2 == 1 && !readOnly {
				want = engine.ErrTopicDeleted
				require.NoError(t, e.DeleteTopic(top.Name()))
			} else {
				require.NoError(t, e.Close())
			}
			wg.Wait()
			close(wrong)
			for err := range wrong {
				var off *engine.OffsetError
				if !errors.As(err, &off) { // the memory has gone, and Follow was just beginning
					require.ErrorIs(t, err, want)
				}
			}
			require.NoError(t, e.Close())
		}
	}
}

// TestCold_Hangs has a disk not answer while readers of all kinds load: publishers, statistics and all that stops them go on, Close says
// what it waits for, and ends when the disk answers.
func TestCold_Hangs(t *testing.T) {
	watchdog(t)
	m, _ := coldFiles(t)
	var hang atomic.Bool
	entered, answer := make(chan struct{}, 100), make(chan struct{})
	slow := vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if o.Kind == vfs.OpRead && hang.Load() {
			entered <- struct{}{}
			<-answer
		}
		return nil
	})
	e, top, p := coldEngine(t, slow, engine.Config{CloseTimeout: 20 * time.Millisecond})
	hang.Store(true)
	var subs []*engine.Subscription
	for i, c := range []engine.SubscribeConfig{{}, {ByKey: engine.Parallelism{Handlers: 2}}, {Mode: engine.Manual}} {
		c.Start = engine.Earliest()
		if i > 0 {
			c.Start = engine.At(engine.Offset(600 * i))
		}
		sub := subscribe(t, top, ignore, c)
		subs = append(subs, sub)
		<-entered
	}
	g := newGroup(t, e, "g", engine.GroupConfig{Start: engine.At(1800)}, "t")
	con := consumer(t, g, engine.MemberConfig{})
	ended := make(chan error, 2)
	go func() {
		_, err := con.Poll(background, 10)
		ended <- err
	}()
	<-entered
	go func() {
		_, err := p.ReadAt(2400, make([]engine.Record, 1))
		ended <- err
	}()
	<-entered

	_, err := p.Publish(background, engine.Record{})
	require.NoError(t, err)
	_, err = p.Reader(engine.ReaderConfig{Start: engine.Latest()})
	require.NoError(t, err)
	require.Positive(t, e.Stats().MemoryUsed)
	_ = g.Stats()
	_, err = e.DescribeGroup("g")
	require.NoError(t, err)
	for _, sub := range subs {
		require.NoError(t, sub.Pause())
		require.NoError(t, sub.Resume())
		require.NoError(t, sub.Seek(0, engine.Latest()))
	}
	subs[0].Close()
	var hung *engine.HungError
	require.ErrorAs(t, e.Close(), &hung)
	assert.Contains(t, strings.Join(hung.Handlers, " "), "t/files/0")
	hang.Store(false)
	close(answer)
	for range 2 {
		if err := <-ended; err != nil { // who has loaded it may still read it
			require.ErrorIs(t, err, engine.ErrClosed)
		}
	}
	require.NoError(t, e.CloseContext(background))
}

// TestCold_Salvage has damage that Open does not see be found and salvaged by an Open that is asked to.
func TestCold_Salvage(t *testing.T) {
	m, flip := coldFiles(t)
	flip()
	e := on(t, m, engine.Config{Salvage: true}.WithWarm(1))
	p := part(t, topicOf(t, e, "t"), 0)
	require.EqualValues(t, coldRecords, p.Next())
	require.Greater(t, p.First(), engine.Offset(coldBad))
	for off, r := range p.Records(0) {
		require.Equal(t, fmt.Sprint(off), string(r.Value))
	}
	require.NoError(t, e.Close())
}

// TestCold_Retention drops by limits what nobody has read from the files.
func TestCold_Retention(t *testing.T) {
	m, flip := coldFiles(t)
	flip() // nobody reads it
	e, top, p := coldEngine(t, m, engine.Config{})
	require.NoError(t, p.TruncateBefore(background, 500))
	require.EqualValues(t, 500, p.First())
	require.NoError(t, p.TruncateBefore(background, coldRecords-10))
	send(t, top, 5)
	require.NoError(t, e.Close())
	e = on(t, m, engine.Config{}.WithWarm(1))
	p = part(t, topicOf(t, e, "t"), 0)
	require.EqualValues(t, coldRecords-10, p.First())
	require.EqualValues(t, coldRecords+5, p.Next())
}
