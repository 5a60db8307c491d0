package bench_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/testkit"
)

// BenchmarkSharedSlowHandler has a handler that waits a millisecond, and more and more members to share the records of one
// partition. It reports the rate, and how many times the rate of one member that is.
func BenchmarkSharedSlowHandler(b *testing.B) {
	var alone float64
	for _, members := range []int{1, 2, 4, 8, 16} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			rate := slowHandlers(b, members)
			if members == 1 {
				alone = rate
			}
			b.ReportMetric(rate, "msgs/s")
			if alone > 0 {
				b.ReportMetric(rate/alone, "x_one_member")
			}
		})
	}
}

func slowHandlers(b *testing.B, members int) (rate float64) {
	e, err := engine.Open(engine.Config{})
	require.NoError(b, err)
	defer e.Close()
	t, err := e.CreateTopic("bench", engine.TopicConfig{})
	require.NoError(b, err)
	g, err := e.CreateGroup("g", engine.GroupConfig{Topics: []string{"bench"}, Kind: engine.Shared})
	require.NoError(b, err)
	for range members {
		_, err := g.Join(engine.HandlerFunc(func(context.Context, *engine.Message) error {
			time.Sleep(time.Millisecond) // this is what makes it slow
			return nil
		}), engine.MemberConfig{Dedicated: true})
		require.NoError(b, err)
	}
	n := max(b.N, 200*members)
	begin := time.Now()
	require.NoError(b, t.PublishBatch(context.Background(), make([]engine.Record, n)))
	testkit.Await(func() bool {
		at, err := g.Committed("bench", 0)
		require.NoError(b, err)
		return at == int64(n)
	})
	return float64(n) / time.Since(begin).Seconds()
}

// BenchmarkRebalance lets one member join, and leave again, a group of 99 that has 1000 partitions with traffic on all of them. It reports
// the time until every partition is where it should be, how many moved, and the longest time that a partition which stayed
// had no delivery; and the same of all partitions while nobody joins.
func BenchmarkRebalance(b *testing.B) {
	const partitions, members = 1000, 99
	e, err := engine.Open(engine.Config{})
	require.NoError(b, err)
	defer e.Close()
	t, err := e.CreateTopic("bench", engine.TopicConfig{
		Partitions:    partitions,
		Partitioner:   engine.RoundRobin(),
		HandoverSlots: 16,
		Retention:     engine.Retention{MaxBytes: 64 << 10},
	})
	require.NoError(b, err)
	g, err := e.CreateGroup("g", engine.GroupConfig{Topics: []string{"bench"}})
	require.NoError(b, err)
	var last, gap [partitions]atomic.Int64
	begin := time.Now()
	h := engine.HandlerFunc(func(_ context.Context, m *engine.Message) error {
		now := int64(time.Since(begin))
		if before := last[m.Partition].Swap(now); before != 0 {
			gap[m.Partition].Store(max(gap[m.Partition].Load(), now-before))
		}
		return nil
	})
	for range members {
		_, err := g.Join(h, engine.MemberConfig{})
		require.NoError(b, err)
	}
	settled := func() bool {
		s := g.Stats()
		for i := range s.Partitions {
			if s.Partitions[i].Owner == "" || s.Partitions[i].Revoking {
				return false
			}
		}
		for i := range s.Members {
			if n := len(s.Members[i].Assignment); n < partitions/(members+1) || s.Members[i].Leaving {
				return false
			}
		}
		return true
	}
	for !settled() {
		runtime.Gosched()
	}
	stop, publishers := make(chan struct{}), sync.WaitGroup{}
	publishers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = t.PublishAsync(context.Background(), engine.Record{}, nil)
			}
		}
	})
	owners := func() (all [partitions]string) {
		s := g.Stats()
		for i := range s.Partitions {
			all[i] = s.Partitions[i].Owner
		}
		return all
	}
	// reset forgets the gaps, and longest returns the longest since then of those that it is asked for.
	reset := func() {
		for i := range gap {
			gap[i].Store(0)
		}
	}
	longest := func(which func(i int) bool) (most time.Duration) {
		for i := range gap {
			if which(i) {
				most = max(most, time.Duration(gap[i].Load()))
			}
		}
		return most
	}
	var moved int
	var took, quiet, stayed time.Duration
	b.ResetTimer()
	for range b.N {
		before := owners()
		reset()
		begin := time.Now()
		m, err := g.Join(h, engine.MemberConfig{})
		require.NoError(b, err)
		for len(m.Assignment()) < partitions/(members+1) {
			runtime.Gosched()
		}
		join := time.Since(begin)
		took += join
		after := owners()
		stayed += longest(func(i int) bool { return before[i] == after[i] })
		reset()
		for begin := time.Now(); time.Since(begin) < join; { // the same once more, but that nobody joins
			_ = m.Assignment()
			runtime.Gosched()
		}
		quiet += longest(func(i int) bool { return before[i] == after[i] })
		for i := range after {
			if before[i] != after[i] {
				moved++
			}
		}
		m.Close()
		<-m.Done()
		for !settled() {
			runtime.Gosched()
		}
	}
	b.StopTimer()
	close(stop)
	publishers.Wait()
	b.ReportMetric(float64(took.Microseconds())/float64(b.N), "us/join")
	b.ReportMetric(float64(moved)/float64(b.N), "moved/join")
	b.ReportMetric(float64(stayed.Microseconds())/float64(b.N), "us-longest-gap-of-stayers")
	b.ReportMetric(float64(quiet.Microseconds())/float64(b.N), "us-longest-gap-without-join")
}

// BenchmarkIdleGroups publishes to a topic that has many groups without members, and reports what each of them takes.
func BenchmarkIdleGroups(b *testing.B) {
	for _, groups := range []int{1, 10, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("groups=%d", groups), func(b *testing.B) {
			e, err := engine.Open(engine.Config{})
			require.NoError(b, err)
			defer e.Close()
			t, err := e.CreateTopic("bench", engine.TopicConfig{Retention: engine.Retention{MaxBytes: hot}})
			require.NoError(b, err)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for i := range groups {
				_, err := e.CreateGroup(fmt.Sprint("g", i), engine.GroupConfig{Topics: []string{"bench"}})
				require.NoError(b, err)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			ctx, r := context.Background(), engine.Record{Value: make([]byte, size)}
			for range 200_000 {
				require.NoError(b, t.PublishAsync(ctx, r, nil))
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				_ = t.PublishAsync(ctx, r, nil)
			}
			b.StopTimer()
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(groups), "B/group")
		})
	}
}
