package partition_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment"
)

func aged(d time.Duration) setup { return setup{limits: retention.Limits{MaxAge: d}} }

func first(p part) int64 { f, _ := p.Snapshot(); return f }

// Every record goes after MaxAge, and a quarter later at the latest, however they come and whoever appends them; none goes
// before. Nothing but the passing of time is needed for it.
func TestAge_OfEveryRecord(t *testing.T) {
	watchdog(t)
	for seed := range uint64(rounds(60)) {
		synctest.Test(t, func(t *testing.T) {
			const maxAge = time.Hour
			p := start(t, aged(maxAge))
			rnd := rand.New(rand.NewPCG(seed, 0))
			var appended []time.Time
			for range 100 {
				switch rnd.IntN(4) {
				case 0:
					publish(t, p, 1)
					appended = append(appended, time.Now())
				case 1:
					_, err := p.PublishBatch(background, make([]segment.Record, 3))
					require.NoError(t, err)
					appended = append(appended, time.Now(), time.Now(), time.Now())
				case 2:
					require.NoError(t, p.TryPublish(value("x")))
					appended = append(appended, time.Now())
				case 3:
					x, err := p.Appender(background)
					require.NoError(t, err)
					_, err = x.Append(background, value("x"))
					require.NoError(t, err)
					appended = append(appended, time.Now())
					time.Sleep(time.Duration(rnd.Int64N(int64(maxAge / 3)))) // staged, and old by the time it is visible
					require.NoError(t, x.Close())
				}
				synctest.Wait()
				time.Sleep(time.Duration(rnd.ExpFloat64() * float64(maxAge/8)))
				synctest.Wait()
				for off, at := range appended {
					age := time.Since(at)
					switch gone := int64(off) < first(p); {
					case gone && age < maxAge:
						t.Fatalf("seed %d: record %d is gone after %v", seed, off, age)
					case !gone && age > maxAge*5/4:
						t.Fatalf("seed %d: record %d is there after %v", seed, off, age)
					}
				}
			}
			testkit.Pass(2 * maxAge)
			require.EqualValues(t, len(appended), first(p))
			require.Zero(t, p.pool.Used())
		})
	}
}

// TestBUG032: a record's own timestamp has no say in it.
func TestBUG032_AgeIsNotTheTimestamp(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		p := start(t, aged(time.Minute))
		now := time.Now()
		for _, at := range []time.Time{now.AddDate(10, 0, 0), now.Add(-time.Hour), now.AddDate(0, 0, 1), now.AddDate(-10, 0, 0)} {
			_, err := p.Publish(background, &segment.Record{Timestamp: at.UnixNano()})
			require.NoError(t, err)
		}
		testkit.Pass(time.Minute - 1)
		require.Zero(t, first(p))
		time.Sleep(1 + time.Minute/4)
		synctest.Wait()
		require.EqualValues(t, 4, first(p))
	})
}

// However short the age is, the timer runs.
func TestAge_Short(t *testing.T) {
	watchdog(t)
	for _, age := range []time.Duration{1, 2, 5, time.Microsecond} {
		synctest.Test(t, func(t *testing.T) {
			p := start(t, aged(age))
			for range 3 {
				publish(t, p, 1)
				time.Sleep(2 * age)
			}
			testkit.Pass(time.Millisecond)
			require.EqualValues(t, 3, first(p))
		})
	}
}

func TestAge_Longest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, aged(1<<63-1))
		publish(t, p, 1)
		time.Sleep(100 * 365 * 24 * time.Hour)
		publish(t, p, 1)
		synctest.Wait()
		require.Zero(t, first(p))
	})
}

// What has expired and is held by a gate stays until the gate moves, or goes, or is put out; then it goes at once. While it
// is held nothing runs: a loop would keep the bubble awake for ever.
func TestAge_HeldByAGate(t *testing.T) {
	for _, policy := range []partition.OnFull{partition.Block, partition.Reject} {
		for name, let := range map[string]func(p part, g *partition.Gate){
			"moves":   func(p part, g *partition.Gate) { g.Advance(1); g.Advance(2) },
			"removed": func(p part, g *partition.Gate) { p.RemoveGate(g) },
			"evicted": func(p part, g *partition.Gate) {
				_, _ = p.PublishBatch(background, make([]segment.Record, 9)) // which makes it lag too much
			},
			"truncated": func(p part, _ *partition.Gate) { _ = p.TruncateBefore(background, 2) },
			"Appender": func(p part, g *partition.Gate) {
				x, _ := p.Appender(background)
				_, _ = x.Append(background, value("x"))
				g.Advance(2) // the control runs under the Appender's role
				synctest.Wait()
				_ = x.Close()
			},
		} {
			t.Run(fmt.Sprint(name, policy), func(t *testing.T) {
				testkit.Bubble(t, func(t *testing.T) {
					p := start(t, setup{limits: retention.Limits{MaxAge: time.Second}, onFull: policy, segments: 2})
					g := &partition.Gate{Gating: true, MaxLag: 10, Evicted: func() {}}
					_, err := p.AddGate(g, earliest)
					require.NoError(t, err)
					publish(t, p, 2)
					for range 3 {
						testkit.Pass(time.Hour)
						require.Zero(t, first(p))
						require.NoError(t, p.TruncateBefore(background, 0)) // broadcasts room, for nothing
					}
					let(p, g)
					synctest.Wait()
					require.EqualValues(t, 2, first(p), "at once")
				})
			})
		}
	}
}

func TestAge_DropOldestMindsNoGate(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		p := start(t, setup{limits: retention.Limits{MaxAge: time.Second}, onFull: partition.DropOldest})
		gate(t, p)
		publish(t, p, 2)
		testkit.Pass(2 * time.Second)
		require.EqualValues(t, 2, first(p))
	})
}

// What an open Appender has published goes, what it has staged stays.
func TestAge_UnderAnAppender(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		p := start(t, aged(time.Second))
		x := appender(t, p)
		for i := range 3 {
			_, err := x.Append(background, value("x"))
			require.NoError(t, err)
			if i < 2 {
				require.NoError(t, x.Flush())
			}
			time.Sleep(500 * time.Millisecond)
		}
		testkit.Pass(10 * time.Second)
		require.EqualValues(t, 2, first(p))
		require.NoError(t, x.Flush())
		require.Equal(t, []string{"x"}, values(t, p))
		testkit.Pass(10 * time.Second)
		require.EqualValues(t, 3, first(p))
	})
}

// Publishers that wait for room get it when age makes some.
func TestAge_MakesRoom(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		p := start(t, setup{memory: 4 << 10, limits: retention.Limits{MaxAge: time.Second}})
		q := start(t, setup{pool: p.pool})
		publish(t, p, 1)
		begin := time.Now()
		_, err := q.Publish(background, value("x"))
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(begin))
	})
}

// After the end no timer is left, even if a gate moves then.
func TestAge_End(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		p := start(t, aged(time.Second))
		g := gate(t, p)
		publish(t, p, 1)
		time.Sleep(time.Hour)
		p.Close(errOver)
		<-p.Done()
		g.Advance(1)
		testkit.Pass(time.Hour)
		require.Zero(t, first(p))
		require.Zero(t, p.WaitingForRoom())
	})
}
