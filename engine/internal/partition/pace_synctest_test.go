package partition_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
)

// In a bubble no time passes but by Sleep. So the first append is not hot, all that follow at once are, and the one after HotStreak
// of them hands the role over.
const handsOver = partition.HotStreak + 1

// async publishes n records without waiting for them, so far apart.
func async(t *testing.T, p part, n int, apart time.Duration) {
	t.Helper()
	for range n {
		require.NoError(t, p.PublishAsync(background, value("x"), nil))
		if apart > 0 {
			time.Sleep(apart)
		}
	}
}

// streak returns what the partition knows of its publishers, once nobody has the role.
func streak(t *testing.T, p part) (hot, cool, keen int) {
	t.Helper()
	synctest.Wait()
	require.True(t, p.TakeRole())
	hot, cool, keen = p.Streak()
	p.HoldRole()
	return hot, cool, keen
}

// The goroutine that finds nothing to do waits for twice as many appends each time; not for so many if publishers have come again
// at once for long.
func TestPace_OfNoUse(t *testing.T) {
	watchdog(t)
	for name, apart := range map[string]time.Duration{"nothing else to do": 0, "something to do in between": time.Microsecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, setup{})
				need, before, ever := handsOver, 0, false
				for turn := range partition.Coolest + 2 {
					async(t, p, need-1, apart)
					hot, _, _ := streak(t, p)
					require.Equal(t, partition.HotStreak-1, hot, "before turn %d", turn)
					async(t, p, 1, apart)
					hot, cool, keen := streak(t, p)
					most := partition.Coolest
					if keen >= partition.KeenFrom {
						most, ever = partition.CoolKeen, true
					}
					before = min(before, most)
					require.Equal(t, -(partition.HotStreak << before), hot, "turn %d", turn)
					require.Equal(t, min(before+1, most), cool, "turn %d", turn)
					need, before = partition.HotStreak<<before+partition.HotStreak, cool
				}
				assert.Equal(t, apart == 0, ever)
			})
		})
	}
}

// Nobody hands over who comes seldom, and a pause takes back a part of a streak.
func TestPace_Slow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, setup{})
		async(t, p, 3*handsOver, 2*time.Microsecond)
		hot, cool, keen := streak(t, p)
		assert.Zero(t, [3]int{hot, cool, keen})
		async(t, p, handsOver, 0)
		hot, _, _ = streak(t, p)
		assert.Equal(t, -partition.HotStreak, hot, "handed over")
		async(t, p, 2*partition.HotStreak-1, 0)
		time.Sleep(time.Millisecond)
		async(t, p, 1, 0)
		hot, _, _ = streak(t, p)
		assert.Less(t, hot, partition.HotStreak-1)
		assert.Positive(t, hot)
	})
}

// Who is refused, since there is no room, has appended nothing: however often it tries that is no stream that the goroutine is to serve.
func TestPace_Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, setup{limits: retention.Limits{MaxRecords: 10}})
		gate := &partition.Gate{Gating: true}
		_, err := p.AddGate(gate, earliest)
		require.NoError(t, err)
		async(t, p, 10, 0)
		before, _, _ := streak(t, p)
		for range 3 * handsOver {
			require.ErrorIs(t, p.TryPublish(value("x")), partition.ErrFull)
		}
		hot, cool, _ := streak(t, p)
		assert.Equal(t, before, hot)
		assert.Zero(t, cool, "nothing was handed over")
		p.RemoveGate(gate)
		require.NoError(t, p.TryPublish(value("x")))
	})
}

// Who has handed the role over goes on, at full speed, before the goroutine has run: alone, or through the hand-over. What is not
// visible then becomes so when the goroutine runs.
func TestPace_HandsOverOnOffer(t *testing.T) {
	watchdog(t)
	const slots = 16
	for _, alone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := prepare(setup{slots: slots, workers: newWorkers(t, 1)})
			async(t, p, handsOver, 0)
			require.False(t, p.TakeRole(), "it has been handed over")
			p.SetAlone(alone)
			const more, rest = 3 * partition.DirectBatch, 5
			async(t, p, more+rest, 0) // many more than the hand-over has room for
			_, visible := p.Snapshot()
			if alone {
				assert.EqualValues(t, handsOver+more, visible)
			} else {
				// After a few drains that have met nobody it goes on as if alone.
				assert.GreaterOrEqual(t, visible, int64(handsOver+more+rest-slots-partition.DirectBatch))
			}
			go p.Run()
			synctest.Wait()
			_, visible = p.Snapshot()
			assert.EqualValues(t, handsOver+more+rest, visible)
			require.True(t, p.TakeRole())
			p.HoldRole()
			p.Close(errOver)
			<-p.Done()
			p.Free()
		})
	}
}

func TestUseful(t *testing.T) {
	const least = 256
	assert.True(t, partition.Useful(true, false, 1, 1), "records came fast while it lent the role")
	assert.True(t, partition.Useful(false, true, 1, least), "it had to wait, and found many")
	assert.False(t, partition.Useful(false, true, 1, least-1))
	assert.False(t, partition.Useful(false, false, 1, 1<<20), "publishers have something else to do")
	assert.False(t, partition.Useful(false, true, 1000, 3999), "it found few each time")
	assert.True(t, partition.Useful(false, true, 1000, 4000))
}
