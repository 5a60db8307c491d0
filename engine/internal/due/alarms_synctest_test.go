package due_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/engine/internal/due"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/testkit"
)

// clockwork is alarms in a bubble, and what has rung so far: at which times after the start.
type clockwork struct {
	*due.Alarms
	clock  atomicx.Clock
	start  int64
	alarms []*due.Alarm
	mu     sync.Mutex
	rung   []strike // under mu
}

func (c *clockwork) strikes() []strike {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.rung)
}

type strike struct {
	which int
	at    int64
}

// inBubble gives the test n alarms, of which each calls ring, if it is not nil, after it was noted.
func inBubble(t *testing.T, n int, ring func(c *clockwork, which int), test func(t *testing.T, c *clockwork)) {
	synctest.Test(t, func(t *testing.T) {
		c := &clockwork{clock: atomicx.NewClock()}
		c.start = c.clock.Now()
		c.Alarms = due.NewAlarms(&c.clock)
		for i := range n {
			c.alarms = append(c.alarms, new(due.Alarm))
			c.alarms[i].Init(c.Alarms, func(now int64) {
				assert.Equal(t, c.clock.Now(), now)
				c.mu.Lock()
				c.rung = append(c.rung, strike{i, now - c.start})
				c.mu.Unlock()
				if ring != nil {
					ring(c, i)
				}
			})
		}
		test(t, c)
		c.Close()
		<-c.Done()
	})
}

func (c *clockwork) set(which int, after int64) { c.alarms[which].Set(c.start + after) }

func TestAlarms_RingAtTheirTimesInOrder(t *testing.T) {
	inBubble(t, 5, nil, func(t *testing.T, c *clockwork) {
		c.set(0, 30)
		c.set(1, 10)
		c.set(2, 20)
		c.set(3, 10)
		c.set(4, 50)
		testkit.Pass(9)
		assert.Empty(t, c.strikes())
		testkit.Pass(1)
		assert.Equal(t, []strike{{1, 10}, {3, 10}}, c.strikes())
		c.set(2, 40) // later
		c.set(4, 15) // earlier, and in front of the timer
		c.alarms[0].SetEarlier(c.start + 35)
		testkit.Pass(time.Hour)
		assert.Equal(t, []strike{{1, 10}, {3, 10}, {4, 15}, {0, 30}, {2, 40}}, c.strikes())
	})
}

func TestAlarms_PastIsNow(t *testing.T) {
	inBubble(t, 1, nil, func(t *testing.T, c *clockwork) {
		testkit.Pass(100)
		for _, after := range []int64{100, 99, -5} {
			c.set(0, after)
			synctest.Wait()
		}
		assert.Equal(t, []strike{{0, 100}, {0, 100}, {0, 100}}, c.strikes())
	})
}

func TestAlarm_Clear(t *testing.T) {
	inBubble(t, 2, nil, func(t *testing.T, c *clockwork) {
		c.alarms[0].Clear()
		c.set(0, 10)
		c.set(1, 20)
		c.alarms[0].Clear()
		testkit.Pass(time.Hour)
		assert.Equal(t, []strike{{1, 20}}, c.strikes())
		c.set(0, int64(time.Hour)+7)
		testkit.Pass(time.Hour)
		assert.Equal(t, []strike{{1, 20}, {0, int64(time.Hour) + 7}}, c.strikes())
	})
}

// TestAlarms_RingSetsItAgain: one paces itself; the other one sets itself to times that have passed, a thousand times, and
// a third one that is due meanwhile has its turn between.
func TestAlarms_RingSetsItAgain(t *testing.T) {
	restless, turn := 0, 0
	inBubble(t, 3, func(c *clockwork, which int) {
		switch which {
		case 0:
			c.set(0, c.clock.Now()-c.start+10)
		case 1:
			if restless++; restless < 1000 {
				c.set(1, -1000)
			}
			if restless == 10 {
				c.set(2, 0)
			}
		case 2:
			turn = restless
		}
	}, func(t *testing.T, c *clockwork) {
		c.set(0, 10)
		c.set(1, 15)
		testkit.Pass(30)
		paced := slices.DeleteFunc(c.strikes(), func(x strike) bool { return x.which != 0 })
		assert.Equal(t, []strike{{0, 10}, {0, 20}, {0, 30}}, paced)
		assert.Equal(t, 1000, restless)
		assert.Equal(t, 11, turn, "right after the one that had been set before it")
	})
}

// TestAlarms_SetDuringARing: the ringer looks again for what is due, and sets the timer for what is not.
func TestAlarms_SetDuringARing(t *testing.T) {
	var hold chan struct{}
	inBubble(t, 3, func(_ *clockwork, which int) {
		if which == 0 {
			<-hold // not what a ring should do
		}
	}, func(t *testing.T, c *clockwork) {
		hold = make(chan struct{})
		c.set(0, 10)
		testkit.Pass(10)
		c.set(1, 10)
		c.set(2, 25)
		testkit.Pass(5)
		assert.Len(t, c.strikes(), 1, "one at a time")
		close(hold)
		synctest.Wait()
		assert.Equal(t, []strike{{0, 10}, {1, 15}}, c.strikes())
		testkit.Pass(time.Hour)
		assert.Equal(t, []strike{{0, 10}, {1, 15}, {2, 25}}, c.strikes())
	})
}

// TestAlarms_OneAtATime sets the timer again in the instant in which it fires, so that it may fire twice.
func TestAlarms_OneAtATime(t *testing.T) {
	for range 100 {
		inside := 0
		inBubble(t, 3, func(c *clockwork, which int) {
			c.mu.Lock()
			inside++
			assert.Equal(t, 1, inside)
			c.mu.Unlock()
			time.Sleep(5) // not what a ring should do
			c.mu.Lock()
			inside--
			c.mu.Unlock()
		}, func(t *testing.T, c *clockwork) {
			c.set(0, 10)
			c.set(2, 10)
			time.Sleep(10)
			c.set(1, 9)
			testkit.Pass(time.Hour)
			assert.Len(t, c.strikes(), 3)
		})
	}
}

// TestAlarms_CloseInsideARing: the others that are due do not ring, and Done waits for the ring.
func TestAlarms_CloseInsideARing(t *testing.T) {
	inBubble(t, 3, func(c *clockwork, which int) {
		c.Close()
		c.set(which, 0)
		select {
		case <-c.Done():
			panic("done inside a ring")
		default:
		}
	}, func(t *testing.T, c *clockwork) {
		for i := range c.alarms {
			c.set(i, 10)
		}
		testkit.Pass(time.Hour)
		<-c.Done()
		assert.Equal(t, []strike{{0, 10}}, c.strikes())
		for _, x := range c.alarms {
			assert.Equal(t, due.Never, x.At())
		}
	})
}

func TestAlarms_CloseTakesThemDown(t *testing.T) {
	inBubble(t, 2, nil, func(t *testing.T, c *clockwork) {
		c.set(0, 10)
		c.set(1, 20)
		testkit.Pass(10)
		c.Close()
		<-c.Done()
		assert.Equal(t, due.Never, c.alarms[1].At())
		c.set(1, 30)
		testkit.Pass(time.Hour)
		assert.Equal(t, []strike{{0, 10}}, c.strikes())
	})
}

// TestBUG094_AlarmAtItsDeadline moves or clears an alarm just before, at, and just after the instant at which it rings. At
// that instant either may win; the new time is kept in any case.
func TestBUG094_AlarmAtItsDeadline(t *testing.T) {
	for i := range 300 {
		after := int64(9 + i%3)
		inBubble(t, 1, nil, func(t *testing.T, c *clockwork) {
			c.set(0, 10)
			time.Sleep(time.Duration(after))
			c.set(0, 100)
			testkit.Pass(200)
			if after < 10 || after == 10 && len(c.strikes()) == 1 {
				assert.Equal(t, []strike{{0, 100}}, c.strikes())
			} else {
				assert.Equal(t, []strike{{0, 10}, {0, 100}}, c.strikes())
			}
		})
		inBubble(t, 1, nil, func(t *testing.T, c *clockwork) {
			c.set(0, 10)
			time.Sleep(time.Duration(after))
			c.alarms[0].Clear()
			testkit.Pass(200)
			if after != 10 {
				assert.Len(t, c.strikes(), int(after)/10)
			}
		})
	}
}

// TestBUG026_NobodyLooksWhenNothingIsDue: an alarm that was cleared may fire the timer once; after that nothing wakes up,
// however much time passes.
func TestBUG026_NobodyLooksWhenNothingIsDue(t *testing.T) {
	inBubble(t, 1, nil, func(t *testing.T, c *clockwork) {
		for range 100 {
			c.set(0, 10)
			c.alarms[0].Clear()
		}
		assert.True(t, c.Armed())
		testkit.Pass(1000 * time.Hour)
		assert.Empty(t, c.strikes())
		assert.False(t, c.Armed())
	})
}
