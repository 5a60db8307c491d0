package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// The tests of this file and of the other trap_ files are named after failures that other systems had (TRAPS.md, shared by
// all who work on the project, says where). Each says what must hold.

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
	require.Zero(t, p.Stats().Blocked)
	await(func() bool { return p.Stats().InHandover == 0 }) // what was given up is found so by the partition's goroutine
	numbers(t, p, 3)                                        // it goes on
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
	at, read := make([]engine.Record, 1), int64(0)
	during(&wg, func() {
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
	})
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
