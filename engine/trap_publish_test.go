package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// The tests of this file and of trap_read_test.go are named after failures that other systems had; see TRAPS.md of the
// project for where. Each says what would go wrong.

// signed returns a record that says which it is, and proves it.
func signed(producer, n, size int) engine.Record {
	b := make([]byte, 24+size)
	binary.LittleEndian.PutUint64(b, uint64(producer))
	binary.LittleEndian.PutUint64(b[8:], uint64(n))
	for i := range b[24:] {
		b[24+i] = byte(i * (n + 1))
	}
	binary.LittleEndian.PutUint64(b[16:], checksum(b))
	return engine.Record{Value: b}
}

func checksum(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b[:16])
	h.Write(b[24:])
	return h.Sum64()
}

// verify returns which signed record it is.
func verify(t testing.TB, r *engine.Record) (producer, n int) {
	if b := r.Value; len(b) < 24 || binary.LittleEndian.Uint64(b[16:]) != checksum(b) {
		t.Errorf("record %d of %d bytes is damaged", r.Offset, len(b))
		return -1, -1
	}
	return int(binary.LittleEndian.Uint64(r.Value)), int(binary.LittleEndian.Uint64(r.Value[8:]))
}

// TestBUG002: Close wakes every publisher that waits for room, and none of them owns an offset.
func TestBUG002_CloseWakesPublishers(t *testing.T) {
	watchdog(t)
	for _, way := range publishers {
		if way.name == "TryPublish" || way.name == "PublishAsync without a callback" {
			continue // they do not wait
		}
		e := open(t, engine.Config{})
		topic, err := e.CreateTopic("topic", engine.TopicConfig{Retention: engine.Retention{MaxRecords: 4}, HandoverSlots: 2})
		require.NoError(t, err)
		p := part(t, topic, 0)
		newReader(t, p, engine.ReaderConfig{Gating: true})
		numbers(t, p, 4)
		results := make(chan error)
		n := 8
		if way.name == "Appender" {
			n = 1
		}
		for range n {
			go func() { results <- way.publish(background, topic, value("x")) }()
		}
		await(func() bool { return p.Stats().Full })
		require.NoError(t, e.Close())
		for range n {
			require.ErrorIs(t, <-results, engine.ErrClosed, way.name)
		}
		require.EqualValues(t, 4, p.Next())
	}
}

// TestBUG004: nothing that can fail happens between a producer's claim of its place and its filling, so no other record
// waits behind a hole: not behind a partitioner that panics, a context that ends, a record that is refused.
func TestBUG004_NoHoles(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{
		HandoverSlots:  2,
		MaxRecordBytes: 1000,
		SegmentRecords: 3,
		Partitioner: engine.PartitionerFunc(func(r *engine.Record, _ int) int {
			if len(r.Key) > 0 {
				panic("the third")
			}
			return 0
		}),
	})
	p := part(t, topic, 0)
	r := newReader(t, p, engine.ReaderConfig{Start: engine.Earliest()})
	n := rounds(3000)
	var accepted [4]int
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for k := range n {
				rec := signed(i, k, k%300)
				ctx, cancel := context.WithCancel(background)
				switch i {
				case 1:
					if k%3 == 2 {
						rec.Key = []byte("panic")
					}
				case 2:
					go cancel()
				case 3:
					if k%3 == 0 {
						rec.Key, rec.Headers = nil, engine.MakeHeaders(engine.Header{Name: "large", Value: make([]byte, 1000)})
					}
				}
				if _, err := topic.Publish(ctx, rec); err == nil {
					accepted[i]++
				}
				cancel()
			}
		})
	}
	wg.Wait()
	require.Equal(t, n, accepted[0])
	require.Equal(t, n-n/3, accepted[1])
	require.Equal(t, n-(n+2)/3, accepted[3])
	var read [4]int
	for range p.Next() {
		rec, err := r.Next(background)
		require.NoError(t, err)
		producer, _ := verify(t, &rec)
		read[producer]++
	}
	require.Equal(t, accepted, read)
}

// TestBUG011: contexts that end around the moment when room appears lose neither a wake-up nor room: what was accepted is
// what is read, and nobody is left waiting.
func TestBUG011_CancelWhileWaitingForRoom(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{Retention: engine.Retention{MaxRecords: 4}, SegmentRecords: 1, HandoverSlots: 8, MaxRecordBytes: 100, Partitions: 2, Partitioner: engine.Explicit()})
	p := part(t, topic, 0)
	r := newReader(t, p, engine.ReaderConfig{Gating: true})
	var accepted, refused, cancelled atomic.Int64
	n := rounds(200)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 0))
			for k := range n {
				rec := signed(i, k, 10)
				switch rnd.IntN(20) {
				case 0:
					rec.Partition = 9
				case 1:
					rec.Value = make([]byte, 101)
				}
				ctx, cancel := context.WithCancel(background)
				if turns := rnd.IntN(100); turns < 50 {
					go func() {
						for range turns {
							runtime.Gosched()
						}
						cancel()
					}()
				}
				switch _, err := topic.Publish(ctx, rec); {
				case err == nil:
					accepted.Add(1)
				case errors.Is(err, context.Canceled):
					cancelled.Add(1)
				case errors.Is(err, engine.ErrTooLarge), errors.Is(err, engine.ErrUnknownPartition):
					refused.Add(1)
				default:
					t.Error(err)
				}
				cancel()
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	ctx, cancel := context.WithCancel(background)
	go func() { <-done; cancel() }()
	read := int64(0)
	for {
		rec, err := r.Next(ctx)
		if err != nil {
			require.Equal(t, context.Canceled, err)
			if r.Lag() == 0 {
				break
			}
			continue
		}
		verify(t, &rec)
		read++
		runtime.Gosched() // slow
	}
	require.Equal(t, accepted.Load(), read)
	require.Equal(t, int64(64*n), read+refused.Load()+cancelled.Load())
	s := p.Stats()
	require.Zero(t, s.Blocked)
	require.Zero(t, s.InHandover)
	numbers(t, p, 3) // it goes on
}

// TestBUG017: the log has its own bytes. Publishers write over theirs as soon as the call returns; what readers hold for as
// long as they may does not change while memory is used again and again.
func TestBUG017_BytesBelongToTheLog(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{Retention: engine.Retention{MaxBytes: 32 << 10}, SegmentBytes: 4 << 10, OnFull: engine.DropOldest, HandoverSlots: 16})
	p := part(t, topic, 0)
	n := rounds(4000)
	var publishing, reading sync.WaitGroup
	for i, way := range publishers[:5] {
		publishing.Go(func() {
			for k := range n {
				rec := signed(i, k, k%700)
				rec.Headers = engine.MakeHeaders(engine.Header{Name: "sum", Value: rec.Value[16:24]})
				rec.Key = append([]byte(nil), rec.Value[:16]...)
				if err := way.publish(background, topic, rec); err != nil && !errors.Is(err, engine.ErrFull) {
					t.Error(err)
				}
				for _, b := range [][]byte{rec.Key, rec.Value} {
					for j := range b {
						b[j] = 0xEE
					}
				}
			}
		})
	}
	check := func(r *engine.Record) {
		verify(t, r)
		sum, _ := r.Headers.Get("sum")
		if string(r.Key) != string(r.Value[:16]) || string(sum) != string(r.Value[16:24]) {
			t.Errorf("record %d: key or header is damaged", r.Offset)
		}
		if cap(r.Key) != len(r.Key) || cap(r.Value) != len(r.Value) {
			t.Errorf("record %d: an append to it would write into the log", r.Offset)
		}
	}
	ctx, cancel := context.WithCancel(background)
	for i := range 3 {
		r := newReader(t, p, engine.ReaderConfig{})
		reading.Go(func() {
			var kept []engine.Record
			batch := make([]engine.Record, 10)
			for {
				n, err := r.NextBatch(ctx, batch)
				if gap := (*engine.GapError)(nil); errors.As(err, &gap) {
					continue
				}
				if err != nil {
					break
				}
				for range 3 { // they stay what they are until the next call
					for j := range batch[:n] {
						check(&batch[j])
					}
					runtime.Gosched()
				}
				switch i {
				case 0:
					if len(kept) < 1000 {
						kept = append(kept, batch[0].Clone())
					}
				case 1:
					if len(kept) < 1000 {
						at := make([]engine.Record, 1)
						if n, _ := p.ReadAt(batch[0].Offset, at); n == 1 {
							kept = append(kept, at[0])
						}
					}
				}
			}
			for j := range kept {
				check(&kept[j])
			}
		})
	}
	publishing.Wait()
	require.NoError(t, topic.Flush(background))
	cancel()
	reading.Wait()
}

// TestBUG041: publishers that wait for room for different sizes, and readers at different places. Whoever can go on does;
// a wake-up that one cannot use is not kept from another.
func TestBUG041_WaitersOfDifferentNeeds(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{Retention: engine.Retention{MaxRecords: 8}, SegmentRecords: 1, HandoverSlots: 16})
	p := part(t, topic, 0)
	var readers []*engine.Reader
	for range 3 {
		readers = append(readers, newReader(t, p, engine.ReaderConfig{Gating: true}))
	}
	n := rounds(1500)
	var wg sync.WaitGroup
	total := int64(0)
	for i, size := range []int{1, 8, 1, 3} {
		total += int64(size * n)
		wg.Go(func() {
			for range n {
				if err := topic.PublishBatch(background, make([]engine.Record, size)); err != nil {
					t.Error(i, err)
				}
			}
		})
	}
	total += int64(2 * n)
	for _, size := range []int{0, 300} { // one slot of the hand-over, and four
		wg.Go(func() {
			for range n {
				if err := topic.PublishAsync(background, engine.Record{Value: make([]byte, size)}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i, r := range readers {
		wg.Go(func() {
			batch := make([]engine.Record, i+1)
			for r.Position() < total {
				if _, err := r.NextBatch(background, batch); err != nil {
					t.Error(err)
					return
				}
			}
			_ = r.Seek(engine.Latest())
		})
	}
	wg.Wait()
	require.Equal(t, total, p.Next())
}

// TestBUG044: calls that race with Close either take effect or say that it is closed. None waits after Close has returned.
func TestBUG044_CallsThatRaceWithClose(t *testing.T) {
	watchdog(t)
	for range rounds(200) {
		e, err := engine.Open(engine.Config{})
		require.NoError(t, err)
		topic, err := e.CreateTopic("topic", engine.TopicConfig{Retention: engine.Retention{MaxRecords: 8}, HandoverSlots: 4})
		require.NoError(t, err)
		p := part(t, topic, 0)
		gating := newReader(t, p, engine.ReaderConfig{Gating: true})
		var wg sync.WaitGroup
		again := func(f func() error) {
			wg.Go(func() {
				for {
					err := f()
					out, gap := (*engine.OffsetError)(nil), (*engine.GapError)(nil)
					switch {
					case err == nil, errors.Is(err, engine.ErrFull), errors.Is(err, engine.ErrExclusive), errors.As(err, &out), errors.As(err, &gap):
						runtime.Gosched()
					case errors.Is(err, engine.ErrClosed):
						return
					default:
						t.Error(err)
						return
					}
				}
			})
		}
		var told, accepted atomic.Int64
		for _, way := range publishers {
			again(func() error { return way.publish(background, topic, value("x")) })
		}
		again(func() error {
			err := topic.PublishAsync(background, value("x"), func(engine.Published, error) { told.Add(1) })
			if err == nil {
				accepted.Add(1)
			}
			return err
		})
		again(func() error {
			if err := topic.Flush(background); err != nil {
				return err
			}
			return p.TruncateBefore(background, 0)
		})
		r := newReader(t, p, engine.ReaderConfig{})
		again(func() error {
			_, err := r.Next(background)
			if err == nil {
				err = r.Seek(engine.Earliest())
			}
			return err
		})
		again(func() error { _, err := gating.NextBatch(background, make([]engine.Record, 3)); return err })
		again(func() error { _, err := p.ReadAt(p.First(), make([]engine.Record, 3)); return err })
		again(func() error {
			for _, err := range p.Follow(background, p.First()) {
				if err != nil {
					return err
				}
			}
			return nil
		})
		await(func() bool { return p.Next() > 20 })
		require.NoError(t, e.Close())
		wg.Wait()
		require.NoError(t, topic.Flush(background), "and at once")
		require.Equal(t, accepted.Load(), told.Load())
	}
}

// TestBUG046: what was accepted before Close gets in if there is room; the rest fails; each result is told once.
func TestBUG046_AcceptedBeforeClose(t *testing.T) {
	watchdog(t)
	for _, full := range []bool{false, true} {
		for range rounds(100) {
			e, err := engine.Open(engine.Config{})
			require.NoError(t, err)
			c := engine.TopicConfig{}
			if full {
				c.Retention.MaxRecords = 100
			}
			topic, err := e.CreateTopic("topic", c)
			require.NoError(t, err)
			p := part(t, topic, 0)
			r := newReader(t, p, engine.ReaderConfig{Gating: true})
			const n = 300
			var in, failed atomic.Int64
			for range n {
				require.NoError(t, topic.PublishAsync(background, value("x"), func(_ engine.Published, err error) {
					switch {
					case err == nil:
						in.Add(1)
					case errors.Is(err, engine.ErrClosed):
						failed.Add(1)
					default:
						t.Error(err)
					}
				}))
			}
			require.NoError(t, e.Close())
			r.Close()
			require.EqualValues(t, n, in.Load()+failed.Load())
			require.Equal(t, p.Next(), in.Load())
			if full {
				require.EqualValues(t, 100, in.Load())
			} else {
				require.EqualValues(t, n, in.Load())
			}
		}
	}
}

// TestBUG056: the smallest capacities there are.
func TestBUG056_SmallestCapacities(t *testing.T) {
	watchdog(t)
	n := rounds(300)
	for _, records := range []int64{1, 2} {
		for _, slots := range []int{1, 2} {
			for _, policy := range []engine.OnFull{engine.Block, engine.Reject, engine.DropOldest} {
				topic := newTopic(t, engine.TopicConfig{
					Retention: engine.Retention{MaxRecords: records}, SegmentRecords: 1, HandoverSlots: slots, OnFull: policy,
				})
				p := part(t, topic, 0)
				r := newReader(t, p, engine.ReaderConfig{Gating: true})
				var wg sync.WaitGroup
				var accepted atomic.Int64
				for _, way := range publishers[:5] {
					wg.Go(func() {
						for range n {
							switch err := way.publish(background, topic, value("x")); {
							case err == nil:
								accepted.Add(1)
							case !errors.Is(err, engine.ErrFull):
								t.Error(err)
							}
						}
					})
				}
				ctx, cancel := context.WithCancel(background)
				go func() {
					wg.Wait()
					if err := topic.Flush(background); err != nil {
						t.Error(err)
					}
					cancel()
				}()
				seen := int64(0)
				for {
					_, err := r.Next(ctx)
					if gap := (*engine.GapError)(nil); errors.As(err, &gap) {
						require.Equal(t, engine.DropOldest, policy)
						seen += gap.Lost()
						continue
					}
					if err != nil {
						require.Equal(t, context.Canceled, err)
						if r.Lag() == 0 {
							break
						}
						continue
					}
					seen++
				}
				require.Equal(t, p.Next(), seen)
				require.Equal(t, accepted.Load(), seen+p.Stats().AsyncFailed)
			}
		}
	}
}

// TestBUG070: nil and empty are different, in and out, in whatever way.
func TestBUG070_NilAndEmpty(t *testing.T) {
	for _, way := range publishers {
		topic := newTopic(t, engine.TopicConfig{})
		p := part(t, topic, 0)
		shapes := []engine.Record{{}, {Key: []byte{}}, {Value: []byte{}}, {Key: []byte{}, Value: []byte{}}}
		for _, r := range shapes {
			r.Headers = engine.MakeHeaders(engine.Header{Name: "", Value: nil}, engine.Header{Name: "e", Value: []byte{}})
			require.NoError(t, way.publish(background, topic, r))
		}
		require.NoError(t, topic.Flush(background))
		r := newReader(t, p, engine.ReaderConfig{Start: engine.Earliest()})
		for off, want := range shapes {
			rec, err := r.Next(background)
			require.NoError(t, err)
			at := make([]engine.Record, 1)
			_, err = p.ReadAt(int64(off), at)
			require.NoError(t, err)
			for _, got := range []engine.Record{rec, at[0], rec.Clone()} {
				require.Equal(t, want.Key == nil, got.Key == nil, way.name)
				require.Equal(t, want.Value == nil, got.Value == nil, way.name)
				require.Empty(t, got.Key)
				require.Empty(t, got.Value)
				v, ok := got.Headers.Get("")
				require.True(t, ok && v == nil)
				v, ok = got.Headers.Get("e")
				require.True(t, ok && v != nil && len(v) == 0)
			}
		}
	}
}

// TestBUG074: of every record of every batch there is exactly one result, whatever becomes of the others: a partition that is
// full, one that does not exist, a Close in the middle.
func TestBUG074_OneResultForEachRecord(t *testing.T) {
	watchdog(t)
	for range rounds(40) {
		e, err := engine.Open(engine.Config{})
		require.NoError(t, err)
		topic, err := e.CreateTopic("topic", engine.TopicConfig{
			Partitions: 8, Partitioner: engine.Explicit(), OnFull: engine.Reject, HandoverSlots: 8, Retention: engine.Retention{MaxRecords: 128},
		})
		require.NoError(t, err)
		newReader(t, part(t, topic, 3), engine.ReaderConfig{Gating: true})
		for topic.TryPublish(engine.Record{Partition: 3}) == nil && part(t, topic, 3).Next() < 128 {
			runtime.Gosched()
		}
		var wg sync.WaitGroup
		var enough atomic.Int64
		var in [8]atomic.Int64
		for i := range 3 {
			wg.Go(func() {
				for n := 1; ; n = n%100 + 1 {
					batch := make([]engine.Record, n)
					for k := range batch {
						batch[k] = engine.Record{Partition: int32(k % 9), Offset: -1}
					}
					err := topic.PublishBatch(background, batch)
					var failed *engine.BatchError
					if !errors.As(err, &failed) {
						failed = &engine.BatchError{Errs: make([]error, n)}
					}
					closed := false
					for k, err := range failed.Errs {
						switch {
						case err == nil && batch[k].Offset >= 0:
							in[k%9].Add(1)
						case k%9 == 3 && errors.Is(err, engine.ErrFull):
						case k%9 == 8 && errors.Is(err, engine.ErrUnknownPartition):
						case errors.Is(err, engine.ErrClosed):
							closed = true
						default:
							t.Errorf("publisher %d, record %d of %d: %v", i, k, n, err)
						}
					}
					if closed {
						return
					}
					enough.Add(1)
				}
			})
		}
		var accepted, told, well [8]atomic.Int64
		wg.Go(func() { // asynchronous ones
			for k := 0; ; k = (k + 1) % 8 {
				err := topic.PublishAsync(background, engine.Record{Partition: int32(k)}, func(at engine.Published, err error) {
					told[k].Add(1)
					if err == nil {
						well[at.Partition].Add(1)
					}
				})
				if err != nil {
					if !errors.Is(err, engine.ErrClosed) {
						t.Error(err)
					}
					return
				}
				accepted[k].Add(1)
			}
		})
		await(func() bool { return enough.Load() > 100 })
		require.NoError(t, e.Close())
		wg.Wait()
		for i := range 8 {
			require.Equal(t, accepted[i].Load(), told[i].Load())
			if i != 3 {
				require.Equal(t, part(t, topic, i).Next(), in[i].Load()+well[i].Load())
			}
		}
	}
}

// TestBUG092: batches of every size by several publishers, over the ends of segments: each is contiguous, and visible all at
// once: whenever somebody looks, the log ends at the end of a batch.
func TestBUG092_BatchesAppearAtOnce(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{SegmentRecords: 5, HandoverSlots: 8})
	p := part(t, topic, 0)
	n := rounds(400)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range n {
				batch := make([]engine.Record, 1+(i+k)%17)
				for j := range batch {
					batch[j] = signed(i, k, 10)
					batch[j].Key = []byte{byte(j), byte(len(batch))}
				}
				if err := topic.PublishBatch(background, batch); err != nil {
					t.Error(err)
				}
				if first := batch[0].Offset; batch[len(batch)-1].Offset != first+int64(len(batch))-1 {
					t.Error("not contiguous")
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	at, read := make([]engine.Record, 1), int64(0)
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		if end := p.Next(); end > 0 {
			_, err := p.ReadAt(end-1, at)
			require.NoError(t, err)
			require.Equal(t, at[0].Key[1], at[0].Key[0]+1, "%d is not the end of a batch", end)
		}
		var last *engine.Record
		for off, r := range p.Records(read) { // and what is inside is in order
			require.Equal(t, read, off)
			i, k := verify(t, &r)
			if r.Key[0] > 0 {
				li, lk := verify(t, last)
				require.True(t, li == i && lk == k && last.Key[0]+1 == r.Key[0], "at %d", off)
			}
			c := r.Clone()
			last = &c
			read++
		}
	}
	require.Equal(t, p.Next(), read)
}

// TestBUG124: many publishers of records that are all different, tiny segments: offsets are unique and dense, and what is
// read is what was published, each at its offset.
func TestBUG124_EveryRecordOnce(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{SegmentRecords: 2, HandoverSlots: 4})
	p := part(t, topic, 0)
	n := rounds(1000)
	const producers = 16
	told := make([][]int64, producers)
	var wg sync.WaitGroup
	for i := range producers {
		told[i] = make([]int64, n)
		wg.Go(func() {
			for k := range n {
				if i%2 == 0 {
					at, err := topic.Publish(background, signed(i, k, k%100))
					if err != nil {
						t.Error(err)
					}
					told[i][k] = at.Offset
					continue
				}
				if err := topic.PublishAsync(background, signed(i, k, k%100), func(at engine.Published, err error) {
					told[i][k] = at.Offset
					if err != nil {
						t.Error(err)
					}
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, topic.Flush(background))
	require.EqualValues(t, producers*n, p.Next())
	for off, r := range p.Records(0) {
		i, k := verify(t, &r)
		if told[i][k] != off {
			t.Fatalf("record %d of publisher %d is at %d, and was told %d", k, i, off, told[i][k])
		}
		told[i][k] = -1
	}
	for i := range told {
		for k := range told[i] {
			require.EqualValues(t, -1, told[i][k], "record %d of publisher %d is missing", k, i)
		}
	}
}

// TestBUG125: every way in and out on whatever this platform is. On one of 32 bits, a counter that is not aligned would
// panic.
func TestBUG125_EveryWay(t *testing.T) {
	watchdog(t)
	for _, way := range publishers {
		topic := newTopic(t, engine.TopicConfig{Retention: engine.Retention{MaxAge: 1 << 50}, SegmentRecords: 1})
		p := part(t, topic, 0)
		r := newReader(t, p, engine.ReaderConfig{Gating: true, MaxLag: 1 << 40})
		for range 3 {
			require.NoError(t, way.publish(background, topic, value(way.name)))
		}
		require.NoError(t, topic.Flush(background))
		for range 3 {
			rec, err := r.Next(background)
			require.NoError(t, err)
			require.Equal(t, way.name, string(rec.Value))
		}
		require.NoError(t, p.TruncateBefore(background, 2))
		s := topic.Stats()
		require.EqualValues(t, 3, s.Partitions[0].Next, fmt.Sprint(s))
	}
}
