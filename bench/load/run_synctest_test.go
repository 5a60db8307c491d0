package load_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/stream"
)

// open is an open-loop scenario for a synctest bubble, where times are exact.
func open(rate float64, d time.Duration) load.Scenario {
	s := load.Scenario{Name: "open", Producers: 1, Partitions: 1, Subscribers: 1, Rate: rate, Duration: d, Seed: 1}
	s.UseSynctestClock()
	return s
}

// at says that a time is what arithmetic says, to the histogram's precision and the scheduling of one message.
func at(t *testing.T, want time.Duration, got int64, what string) {
	t.Helper()
	assert.InEpsilon(t, float64(want), float64(got), 0.002, "%s: %v, want %v", what, time.Duration(got), want)
}

// TestBUG031_StallIsInThePercentiles has the target freeze for 500 ms once in 10 s at 10 k/s. 5 % of all messages were
// scheduled during the freeze, and their latencies go evenly from 500 ms down to 0. A harness that measured from the actual
// send would show one late message.
func TestBUG031_StallIsInThePercentiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(10_000, 10*time.Second)
		res, err := load.Run(t.Context(), &direct{publish: func(_ context.Context, _, n int) error {
			if n == 50_000 {
				time.Sleep(500 * time.Millisecond)
			}
			return nil
		}}, s)
		require.NoError(t, err)
		require.NoError(t, res.Err(), "the rate was held: the messages of the freeze were sent right after it")
		require.Equal(t, uint64(100_000), res.Sent)
		assert.InDelta(t, 10_000, res.PublishMsgsPerS, 10)

		e2e, delay, publish := res.Latency.E2E, res.Latency.Delay, res.Latency.Publish
		assert.Equal(t, uint64(100_000), e2e.Count)
		assert.Equal(t, int64(500*time.Millisecond), e2e.Max)
		assert.Zero(t, e2e.P90, "95 % of the messages never met the freeze")
		at(t, 400*time.Millisecond, e2e.P99, "e2e p99: 4 of the 5 % are below")
		at(t, 490*time.Millisecond, e2e.P999, "e2e p99.9")
		at(t, 499*time.Millisecond, e2e.P9999, "e2e p99.99")

		// The first message of the freeze started on time and its call took long; the others started late.
		assert.Equal(t, int64(500*time.Millisecond), publish.Max)
		assert.Zero(t, publish.P9999)
		at(t, 400*time.Millisecond, delay.P99, "delay p99")
		at(t, 500*time.Millisecond-100*time.Microsecond, delay.Max, "delay max")
	})
}

// TestBUG031_SlowTargetMissesTheRate: a target that takes twice the time there is must not look like one that keeps up.
func TestBUG031_SlowTargetMissesTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(1000, 5*time.Second)
		res, err := load.Run(t.Context(), &direct{publish: func(context.Context, int, int) error {
			time.Sleep(2 * time.Millisecond)
			return nil
		}}, s)
		require.NoError(t, err)
		require.ErrorIs(t, res.Err(), load.ErrRateMissed)
		assert.False(t, res.RateHeld)
		assert.Equal(t, uint64(5000), res.Scheduled)
		// In 5 s it sends 2500; then it is given another second to send what is due.
		assert.Equal(t, uint64(3000), res.Sent)
		assert.Equal(t, uint64(500), res.Late)
		assert.Equal(t, uint64(2000), res.Unsent)
		assert.False(t, res.Faults.Any(), "unsent is not lost")
		// The k-th message is k ms late when it starts.
		at(t, 1500*time.Millisecond, res.Latency.Delay.P50, "delay p50")
		at(t, 2999*time.Millisecond, res.Latency.Delay.Max, "delay max")
	})
}

// TestBUG031_SlowTargetMissesTheRateOfSoMany: the same for a run that ends by its number of messages, long before its time.
func TestBUG031_SlowTargetMissesTheRateOfSoMany(t *testing.T) {
	for took, held := range map[time.Duration]bool{time.Millisecond: true, 2 * time.Millisecond: false} {
		synctest.Test(t, func(t *testing.T) {
			s := open(1000, time.Hour)
			s.Messages = 2000
			res, err := load.Run(t.Context(), &direct{publish: func(context.Context, int, int) error {
				time.Sleep(took)
				return nil
			}}, s)
			require.NoError(t, err)
			assert.Equal(t, uint64(2000), res.Sent)
			assert.Equal(t, held, res.RateHeld)
			if held {
				assert.Zero(t, res.Late)
			} else {
				assert.InDelta(t, 1000, res.Late, 10)
			}
		})
	}
}

// TestBUG031_StallAtTheVeryEnd: the messages that should have been sent during it are still sent, and counted as late.
func TestBUG031_StallAtTheVeryEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(1000, 5*time.Second)
		res, err := load.Run(t.Context(), &direct{publish: func(_ context.Context, _, n int) error {
			if n == 4800 {
				time.Sleep(500 * time.Millisecond)
			}
			return nil
		}}, s)
		require.NoError(t, err)
		assert.Equal(t, uint64(5000), res.Sent)
		assert.Equal(t, uint64(199), res.Late)
		require.ErrorIs(t, res.Err(), load.ErrRateMissed, "4 % were late")
		assert.Equal(t, int64(500*time.Millisecond), res.Latency.E2E.Max)
		at(t, 450*time.Millisecond, res.Latency.E2E.P99, "e2e p99")
	})
}

// TestRun_InterruptedIsNoMiss: a run that is interrupted has missed what its target held up, and not what it would have sent next.
func TestRun_InterruptedIsNoMiss(t *testing.T) {
	interrupted := func(t *testing.T, blocked, after time.Duration) (res load.Result) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var err error
			res, err = load.Run(ctx, &direct{publish: func(_ context.Context, _, n int) error {
				if n == 20 {
					time.AfterFunc(after, cancel)
					time.Sleep(blocked)
				}
				return nil
			}}, open(10, time.Minute))
			require.NoError(t, err)
			assert.True(t, res.Interrupted)
			assert.Equal(t, uint64(21), res.Sent)
		})
		return res
	}
	t.Run("waiting for its next message", func(t *testing.T) {
		res := interrupted(t, 0, 50*time.Millisecond)
		assert.Zero(t, res.Unsent)
		assert.NoError(t, res.Err())
	})
	t.Run("in a call that takes 1 s", func(t *testing.T) {
		res := interrupted(t, time.Second, 999*time.Millisecond)
		assert.Equal(t, uint64(9), res.Unsent)
		assert.ErrorIs(t, res.Err(), load.ErrRateMissed)
	})
}

// TestRun_WarmupIsThrownAway has the target slow for the first second only.
func TestRun_WarmupIsThrownAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(1000, 2*time.Second)
		s.Warmup = time.Second
		res, err := load.Run(t.Context(), &direct{publish: func(_ context.Context, _, n int) error {
			if n < 500 {
				time.Sleep(time.Millisecond + time.Microsecond)
			}
			return nil
		}}, s)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		assert.Equal(t, uint64(3000), res.Sent, "warm-up is checked")
		assert.Equal(t, uint64(2000), res.Latency.E2E.Count, "but not measured")
		assert.Zero(t, res.Latency.E2E.Max)
		assert.InDelta(t, 2, res.DurationS, 0.01)
		assert.InDelta(t, 1000, res.RateMsgsPerS, 5)
	})
}

// TestRun_ProducersTakeTurns checks that the rate is that of all producers together, and evenly spread.
func TestRun_ProducersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(100, time.Second)
		s.Producers, s.Partitions, s.Subscribers = 4, 2, 2
		begin := time.Now()
		sent := make(map[int][]time.Duration)
		var mu = make(chan struct{}, 1)
		res, err := load.Run(t.Context(), &direct{publish: func(_ context.Context, producer, _ int) error {
			mu <- struct{}{}
			sent[producer] = append(sent[producer], time.Since(begin))
			<-mu
			return nil
		}}, s)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		for p := range 4 {
			require.Len(t, sent[p], 25)
			for k, d := range sent[p] {
				assert.Equal(t, sent[0][0]+time.Duration(4*k+p)*10*time.Millisecond, d, "producer %d, message %d", p, k)
			}
		}
	})
}

// TestRun_Live checks the windows: one a second, with what happened in it.
func TestRun_Live(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(1000, 4*time.Second)
		s.Warmup = time.Second
		var windows []load.Window
		s.Live = func(w load.Window) { windows = append(windows, w) }
		res, err := load.Run(t.Context(), &direct{publish: func(_ context.Context, _, n int) error {
			if n >= 2000 && n < 3000 { // in the third second
				time.Sleep(500 * time.Microsecond)
			}
			return nil
		}}, s)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		require.GreaterOrEqual(t, len(windows), 4)
		for i, w := range windows[:4] {
			assert.InDelta(t, float64(i+1), w.Elapsed.Seconds(), 0.01)
			assert.InDelta(t, 1000, w.Rate, 5)
			assert.Zero(t, w.Lag)
			assert.Equal(t, i == 0, w.Warmup)
			assert.NotEmpty(t, w.String())
		}
		assert.Zero(t, windows[0].Samples)
		assert.Zero(t, windows[1].P99)
		at(t, 500*time.Microsecond, int64(windows[2].P50), "p50 of the slow second")
		assert.Equal(t, int64(500*time.Microsecond), int64(windows[2].Max))
		assert.Zero(t, windows[3].P50)
		var samples uint64
		for _, w := range windows {
			samples += w.Samples
		}
		assert.LessOrEqual(t, samples, res.Latency.E2E.Count)
		assert.Equal(t, uint64(4000), res.Latency.E2E.Count, "the windows take nothing away from the result")
	})
}

func TestRun_StuckInPublish(t *testing.T) {
	t.Run("that looks at its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := open(0, time.Second)
			_, err := load.Run(t.Context(), &direct{publish: func(ctx context.Context, _, n int) error {
				if n == 3 {
					<-ctx.Done()
					return ctx.Err()
				}
				time.Sleep(time.Millisecond)
				return nil
			}}, s)
			require.ErrorIs(t, err, load.ErrTarget)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, "nothing moved for 5s")
		})
	})
	t.Run("that does not", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hold := make(chan struct{})
			_, err := load.Run(t.Context(), &direct{publish: func(context.Context, int, int) error {
				<-hold
				return nil
			}}, open(0, time.Second))
			require.ErrorIs(t, err, load.ErrStuck)
			close(hold)
		})
	})
}

func TestRun_StuckInClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		s := open(10, time.Second)
		s.Patience = time.Millisecond
		_, err := load.Run(t.Context(), &direct{hold: hold}, s)
		require.ErrorIs(t, err, load.ErrStuck)
		close(hold)
	})
}

// TestRun_FlushesBeforeItWaits: a target that collects messages must not keep one back until the next is due.
func TestRun_FlushesBeforeItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var did []string
		s := open(10, time.Second)
		s.Messages = 3
		res, err := load.Run(t.Context(), &direct{
			publish: func(context.Context, int, int) error { did = append(did, "publish"); return nil },
			flush:   func() { did = append(did, "flush") },
		}, s)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		assert.Equal(t, []string{"flush", "publish", "flush", "publish", "flush", "publish", "flush"}, did)
	})
}

// TestRun_OverloadIsMeasured: a target that falls behind during the warm-up already must not get away without latencies.
func TestRun_OverloadIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(1000, time.Second)
		s.Warmup = time.Second
		res, err := load.Run(t.Context(), &direct{publish: func(context.Context, int, int) error {
			time.Sleep(10 * time.Millisecond)
			return nil
		}}, s)
		require.NoError(t, err)
		require.ErrorIs(t, res.Err(), load.ErrRateMissed)
		assert.Equal(t, uint64(300), res.Sent, "in 2 s, and in the one more that it is given to catch up")
		assert.Equal(t, uint64(200), res.Latency.Delay.Count)
		// The k-th message is due at k ms and begins at 10k ms; the last begins at 2990 ms.
		at(t, 9*299*time.Millisecond, res.Latency.Delay.Max, "delay max")
		at(t, 9*199*time.Millisecond, res.Latency.Delay.P50, "delay p50")
	})
}

// TestRun_TooSoon: a run of so many messages that are due at once says that it cannot tell whether the rate was held.
func TestRun_TooSoon(t *testing.T) {
	const note = "which is too soon to say whether the rate was held"
	for messages, soon := range map[int64]bool{10: true, 199: true, 200: false, 1000: false, 0: false} {
		synctest.Test(t, func(t *testing.T) {
			s := open(1000, time.Second)
			s.Messages = messages
			res, err := load.Run(t.Context(), &direct{}, s)
			require.NoError(t, err)
			assert.Equal(t, soon, strings.Contains(strings.Join(res.Notes, "\n"), note), "%d: %q", messages, res.Notes)
			assert.Equal(t, soon, s.Rate > s.RateMost(), "%d", messages)
		})
	}
}

// TestRun_NothingDue: messages that come at random may not come at all, and then the result says that it says nothing.
func TestRun_NothingDue(t *testing.T) {
	none, some := 0, 0
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			s := open(1, time.Second)
			s.Seed = seed
			var err error
			s.Arrival, err = stream.ParseArrival("poisson")
			require.NoError(t, err)
			res, err := load.Run(t.Context(), &direct{}, s)
			require.NoError(t, err)
			said := strings.Contains(strings.Join(res.Notes, "\n"), "no message was due")
			assert.Equal(t, res.Scheduled == 0, said, "%q", res.Notes)
			if said {
				none++
			} else {
				some++
			}
		})
	}
	assert.Positive(t, none)
	assert.Positive(t, some)
}
