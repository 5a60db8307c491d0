package bench_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/ratio"
	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/vfs"
)

// TestDurableRatios prints what files cost: durable topics beside what the disk can do and beside topics in memory, in short slices
// that take turns in one process. The files are in the tests' temporary directory. It asserts nothing about times.
//
//	go test ./bench -run 'TestDurableRatios$' -ratios -v
//	go test ./bench -run 'TestDurableRatios$/always' -ratios -ratios.slices 50 -v
func TestDurableRatios(t *testing.T) {
	if !*ratios {
		t.Log("give -ratios to measure")
		return
	}
	every := engine.Interval(10 * time.Millisecond)
	t.Run("always/publishers=64", func(t *testing.T) { groupCommit(t, 64) })
	t.Run("always/publishers=1", func(t *testing.T) { alone(t, context.Background()) })
	t.Run("always/publishers=1/ctx", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		alone(t, ctx)
	})
	for _, w := range ways {
		for _, s := range []engine.Sync{every, engine.Never} {
			t.Run(fmt.Sprintf("%v/%s/64B", s, w.name), func(t *testing.T) { besideMemory(t, s, w, 64) })
		}
	}
	for _, w := range ways {
		t.Run(fmt.Sprintf("%v/%s/1KiB", every, w.name), func(t *testing.T) { besideDisk(t, every, w, 1024) })
	}
	t.Run("latency", func(t *testing.T) { latencies(t, every) })
	t.Run("open", func(t *testing.T) { opening(t) })
}

// way is a way to publish as fast as possible.
type way struct {
	name  string
	procs int
	batch int
}

var ways = []way{{"async", 1, 0}, {"async3", 3, 0}, {"batch64", 1, 64}}

// part is one measurement.
type part struct {
	n        float64 // how much
	took     time.Duration
	cpu      int64
	writes   float64
	quantile time.Duration
}

func (p part) rate() float64 { return p.n / p.took.Seconds() }

// timed runs f for about a slice.
func timed(f func(until time.Time) int) part {
	cpu, began := load.CPUTime(), time.Now()
	n := f(began.Add(*ratioSlice))
	return part{n: float64(n), took: time.Since(began), cpu: load.CPUTime() - cpu}
}

// turns measures a and b by turns.
func turns(a, b func() part) (as, bs []part) {
	a()
	b()
	for range *ratioSlices {
		as, bs = append(as, a()), append(bs, b())
	}
	return as, bs
}

// divided is a figure of each slice of a by that of its neighbours in b.
func divided(as, bs []part, figure func(part) float64) ratio.Spread {
	var x []float64
	for i := range as {
		for _, j := range []int{i - 1, i} {
			if j >= 0 && figure(bs[j]) > 0 {
				x = append(x, figure(as[i])/figure(bs[j]))
			}
		}
	}
	return ratio.SpreadOf(x)
}

func show(t *testing.T, what string, x ratio.Spread, more string) {
	t.Helper()
	fmt.Printf("%-40s x %v   %s\n", t.Name()[len("TestDurableRatios/"):]+" "+what, x, more)
}

// durableTopic opens an engine in a directory of its own, with a topic; without a policy it is in memory.
func durableTopic(t *testing.T, s *engine.Sync) *engine.Topic {
	t.Helper()
	e, err := engine.Open(engine.Config{Dir: filepath.Join(t.TempDir(), "data")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	c := engine.TopicConfig{OnFull: engine.DropOldest}
	if s != nil {
		c.Durable = &engine.Durable{Sync: *s}
	}
	top, err := e.CreateTopic("t", c)
	require.NoError(t, err)
	return top
}

// writes returns how many writes the topic has made.
func writes(t *testing.T, top *engine.Topic) float64 {
	t.Helper()
	p, err := top.Partition(0)
	require.NoError(t, err)
	return float64(p.DurableStats().Writes)
}

// bare writes to files with space, one after the other, and syncs after each write, or every so often and at the end of a file.
type bare struct {
	name string
	f    vfs.File
	at   int64
	sync time.Duration
	last time.Time
}

const bareBytes = 8 << 20 // as the files of a topic that keeps 64 MiB

func newBare(t *testing.T, sync time.Duration) *bare {
	t.Helper()
	b := &bare{name: filepath.Join(t.TempDir(), "bare"), sync: sync, last: time.Now()}
	require.NoError(t, b.next())
	t.Cleanup(func() { require.NoError(t, b.f.Close()) })
	return b
}

// next begins a new file in the place of the one that is full.
func (b *bare) next() (err error) {
	if b.f != nil {
		if err := errors.Join(b.f.Sync(), b.f.Close(), vfs.OS{}.Remove(b.name)); err != nil {
			return err
		}
	}
	b.at = 0
	if b.f, err = (vfs.OS{}).Create(b.name); err != nil {
		return err
	}
	return errors.Join(b.f.Allocate(bareBytes), b.f.Sync())
}

func (b *bare) write(buf []byte) error {
	if b.at+int64(len(buf)) > bareBytes {
		if err := b.next(); err != nil {
			return err
		}
	}
	_, err := b.f.WriteAt(buf, b.at)
	b.at += int64(len(buf))
	if err == nil && time.Since(b.last) >= b.sync {
		b.last = time.Now()
		err = b.f.Sync()
	}
	return err
}

// publishAll publishes records of so many bytes until a time, and returns how many.
func publishAll(t *testing.T, top *engine.Topic, w way, size int, until time.Time) int {
	ctx, counts := context.Background(), make([]int, w.procs)
	var wg sync.WaitGroup
	for i := range w.procs {
		wg.Go(func() {
			r := engine.Record{Value: make([]byte, size)}
			batch := make([]engine.Record, max(w.batch, 1))
			for k := range batch {
				batch[k] = r
			}
			for time.Now().Before(until) {
				for k := 0; k < 256; k += max(w.batch, 1) {
					var err error
					if w.batch > 0 {
						err = top.PublishBatch(ctx, batch)
					} else {
						err = top.PublishAsync(ctx, r, nil)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
				counts[i] += 256
			}
		})
	}
	wg.Wait()
	p, err := top.Partition(0)
	require.NoError(t, err)
	// Until all is in the log, but not synced.
	_, err = p.Publish(ctx, engine.Record{})
	require.NoError(t, err)
	n := 1
	for _, c := range counts {
		n += c
	}
	return n
}

// groupCommit compares publishers that wait for each record with the syncs of the disk times the mean batch.
func groupCommit(t *testing.T, publishers int) {
	top, disk := durableTopic(t, &engine.Always), newBare(t, 0)
	mean := 1.0
	as, bs := turns(func() part {
		before := writes(t, top)
		x := timed(func(until time.Time) int {
			counts := make([]int, publishers)
			var wg sync.WaitGroup
			for i := range publishers {
				wg.Go(func() {
					r := engine.Record{Value: make([]byte, 256)}
					for time.Now().Before(until) {
						if _, err := top.Publish(context.Background(), r); err != nil {
							t.Error(err)
							return
						}
						counts[i]++
					}
				})
			}
			wg.Wait()
			n := 0
			for _, c := range counts {
				n += c
			}
			return n
		})
		x.writes = writes(t, top) - before
		mean = x.n / max(x.writes, 1)
		return x
	}, func() part {
		buf := make([]byte, 64+int(mean*259))
		x := timed(func(until time.Time) (n int) {
			for time.Now().Before(until) {
				require.NoError(t, disk.write(buf))
				n++
			}
			return n
		})
		x.n *= mean
		return x
	})
	show(t, "records", divided(as, bs, part.rate), fmt.Sprintf("%v records/s, mean batch %v",
		ratio.Each(as, part.rate), ratio.Each(as, func(p part) float64 { return p.n / max(p.writes, 1) })))
}

// alone compares the median of one publisher with that of writing and syncing as many bytes.
func alone(t *testing.T, ctx context.Context) {
	top, disk := durableTopic(t, &engine.Always), newBare(t, 0)
	r, buf := engine.Record{Value: make([]byte, 256)}, make([]byte, 328)
	p50 := func(f func() error) part {
		var times []time.Duration
		x := timed(func(until time.Time) (n int) {
			for at := time.Now(); at.Before(until); n++ {
				require.NoError(t, f())
				now := time.Now()
				times = append(times, now.Sub(at))
				at = now
			}
			return n
		})
		slices.Sort(times)
		x.quantile = times[len(times)/2]
		return x
	}
	as, bs := turns(func() part {
		return p50(func() error { _, err := top.Publish(ctx, r); return err })
	}, func() part {
		return p50(func() error { return disk.write(buf) })
	})
	us := func(p part) float64 { return p.quantile.Seconds() * 1e6 }
	show(t, "p50", divided(as, bs, us), fmt.Sprintf("%v / %v us", ratio.Each(as, us), ratio.Each(bs, us)))
}

// besideMemory compares with a topic in memory, and with writing as many bytes at a time as the topic has done on average: what is
// asked is a share of one or of the other, whichever is lower.
func besideMemory(t *testing.T, s engine.Sync, w way, size int) {
	top, mem, disk := durableTopic(t, &s), durableTopic(t, nil), newBare(t, 10*time.Millisecond)
	durable := func() part {
		before := writes(t, top)
		x := timed(func(until time.Time) int { return publishAll(t, top, w, size, until) })
		x.writes = writes(t, top) - before
		return x
	}
	as, bs := turns(durable, func() part {
		return timed(func(until time.Time) int { return publishAll(t, mem, w, size, until) })
	})
	cpu := func(p part) float64 { return float64(p.cpu) / p.n }
	each := ratio.Each(as, func(p part) float64 { return p.n / max(p.writes, 1) }).Median
	show(t, "rate", divided(as, bs, part.rate), fmt.Sprintf("%v / %v M/s, %v MB/s, %.0f records/write", ratio.Each(as, part.rate).In(1e6),
		ratio.Each(bs, part.rate).In(1e6), ratio.Each(as, part.rate).In(1e6/float64(size+3)), each))
	show(t, "cpu a record", divided(as, bs, cpu), fmt.Sprintf("%v / %v ns", ratio.Each(as, cpu), ratio.Each(bs, cpu)))
	as, bs = turns(durable, func() part { return disk.fill(t, 64+int(each*float64(size+2)), size+2) })
	show(t, "bytes, to the disk's", divided(as, bs, part.rate), fmt.Sprintf("%v / %v MB/s", ratio.Each(as, part.rate).In(1e6/float64(size+2)),
		ratio.Each(bs, part.rate).In(1e6/float64(size+2))))
}

// fill writes so many bytes at a time, as fast as it can, and counts in records of so many.
func (b *bare) fill(t *testing.T, bytes, record int) part {
	buf := make([]byte, min(bytes, bareBytes))
	x := timed(func(until time.Time) (n int) {
		for time.Now().Before(until) {
			require.NoError(t, b.write(buf))
			n++
		}
		return n
	})
	x.n *= float64(len(buf)) / float64(record)
	return x
}

// besideDisk compares with writing to a file 256 KiB at a time, with a sync as often.
func besideDisk(t *testing.T, s engine.Sync, w way, size int) {
	top, disk, mem := durableTopic(t, &s), newBare(t, 10*time.Millisecond), durableTopic(t, nil)
	as, bs := turns(func() part {
		before := writes(t, top)
		x := timed(func(until time.Time) int { return publishAll(t, top, w, size, until) })
		x.writes = writes(t, top) - before
		return x
	}, func() part { return disk.fill(t, 256<<10, size) })
	_, ms := turns(func() part { return part{took: 1} }, func() part {
		return timed(func(until time.Time) int { return publishAll(t, mem, w, size, until) })
	})
	mb := 1e6 / float64(size)
	show(t, "bandwidth", divided(as, bs, part.rate), fmt.Sprintf("%v / %v MB/s, in memory %v, %.0f records/write",
		ratio.Each(as, part.rate).In(mb), ratio.Each(bs, part.rate).In(mb), ratio.Each(ms, part.rate).In(mb),
		ratio.Each(as, func(p part) float64 { return p.n / max(p.writes, 1) }).Median))
}

// latencies compares the 99th percentile of publishes at 5,000 a second with that of a topic in memory, and with that of one write
// for each record and nothing else but a sync beside it as often.
func latencies(t *testing.T, s engine.Sync) {
	top, mem, disk := durableTopic(t, &s), durableTopic(t, nil), newBare(t, time.Hour)
	p99 := func(f func() error) part {
		var times []time.Duration
		x := timed(func(until time.Time) (n int) {
			for at := time.Now(); at.Before(until); at = at.Add(200 * time.Microsecond) {
				for time.Now().Before(at) {
				}
				began := time.Now()
				err := f()
				times = append(times, time.Since(began))
				require.NoError(t, err)
				n++
			}
			return n
		})
		slices.Sort(times)
		x.quantile = times[len(times)*99/100]
		return x
	}
	publish := func(top *engine.Topic) func() part {
		r := engine.Record{Value: make([]byte, 256)}
		return func() part {
			return p99(func() error { _, err := top.Publish(context.Background(), r); return err })
		}
	}
	us := func(p part) float64 { return p.quantile.Seconds() * 1e6 }
	tell := func(what string, as, bs []part) {
		show(t, what, divided(as, bs, us), fmt.Sprintf("%v / %v us", ratio.Each(as, us), ratio.Each(bs, us)))
	}
	as, bs := turns(publish(top), publish(mem))
	tell("p99", as, bs)
	buf := make([]byte, 328)
	write := func() part {
		stop, stopped := make(chan struct{}), make(chan error)
		go func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			var err error
			for {
				select {
				case <-tick.C:
					err = errors.Join(err, disk.f.Sync())
				case <-stop:
					stopped <- err
					return
				}
			}
		}()
		x := p99(func() error { return disk.write(buf) })
		close(stop)
		require.NoError(t, <-stopped)
		return x
	}
	as, bs = turns(publish(top), write)
	tell("p99, to a bare write", as, bs)
	as, bs = turns(write, publish(mem))
	tell("p99 of a bare write, to memory", as, bs)
}

// opening measures what it takes to open a topic of 1 GiB.
func opening(t *testing.T) {
	const size = 1 << 30
	dir := filepath.Join(t.TempDir(), "data")
	e, err := engine.Open(engine.Config{Dir: dir})
	require.NoError(t, err)
	top, err := e.CreateTopic("t", engine.TopicConfig{Retention: engine.Retention{MaxBytes: 2 * size}, OnFull: engine.DropOldest,
		Durable: &engine.Durable{Sync: engine.Never, FileBytes: 64 << 20}})
	require.NoError(t, err)
	batch := make([]engine.Record, 64)
	for i := range batch {
		batch[i].Value = make([]byte, 1024)
	}
	for n := 0; n < size; n += 64 << 10 {
		err := top.PublishBatch(context.Background(), batch)
		require.NoError(t, err)
	}
	require.NoError(t, top.Flush(context.Background()))
	require.NoError(t, e.Close())
	names, err := filepath.Glob(filepath.Join(dir, "*", "00000", "*.leat"))
	require.NoError(t, err)
	read := func() part {
		return timed(func(time.Time) (n int) {
			buf := make([]byte, 256<<10)
			for _, name := range names {
				f, err := vfs.OS{}.OpenRead(name)
				require.NoError(t, err)
				for at := int64(0); ; {
					k, err := f.ReadAt(buf, at)
					n += k
					at += int64(k)
					if err != nil {
						break
					}
				}
				require.NoError(t, f.Close())
			}
			return n
		})
	}
	open := func() part {
		x := timed(func(time.Time) int {
			e, err = engine.Open(engine.Config{Dir: dir})
			require.NoError(t, err)
			top, err := e.Topic("t")
			require.NoError(t, err)
			p, err := top.Partition(0)
			require.NoError(t, err)
			n := 0
			for range p.Records(p.First()) { // Open has left most of them in the files
				n++
			}
			require.Equal(t, size/1024, n)
			return size
		})
		require.NoError(t, e.Close())
		return x
	}
	*ratioSlices = min(*ratioSlices, 5)
	as, bs := turns(open, read)
	show(t, "1 GiB, bytes/s", divided(as, bs, part.rate), fmt.Sprintf("%v / %v GB/s; open, and to read all, takes %v s", ratio.Each(as, part.rate).In(1e9),
		ratio.Each(bs, part.rate).In(1e9), ratio.Each(as, func(p part) float64 { return p.took.Seconds() })))
}
