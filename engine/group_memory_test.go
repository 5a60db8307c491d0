package engine_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// liveBytes returns how many bytes are reachable.
func liveBytes() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestGroup_MemoryOfIdleGroups: a group without members costs little, whether it has never had one or has had its last, and
// nothing once it is deleted.
func TestGroup_MemoryOfIdleGroups(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has a memory of its own")
	}
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for _, used := range []bool{false, true} {
			n := 10_000
			if used {
				n = 2000
			}
			e := open(t, engine.Config{})
			topic := create(t, e, "t", engine.TopicConfig{})
			before := liveBytes()
			for i := range n {
				g := newGroup(t, e, fmt.Sprint("g", i), engine.GroupConfig{Kind: kind}, "t")
				if !used {
					continue
				}
				m := join(t, g, ignore, engine.MemberConfig{})
				if i%100 == 0 {
					publish(t, topic, 0, 1)
					committedIs(t, g, "t", 0, part(t, topic, 0).Next())
				}
				m.Close()
				<-m.Done()
			}
			each := (liveBytes() - before) / int64(n)
			t.Logf("%v, used %v: %d bytes each", kind, used, each)
			assert.Less(t, each, int64(4<<10))
			for i := range n {
				require.NoError(t, e.DeleteGroup(fmt.Sprint("g", i)))
			}
			assert.Less(t, (liveBytes()-before)/int64(n), int64(256), "the map of groups does not shrink")
		}
	}
}

// TestGroup_NothingLeaks: lives of members, of each kind and with each end, leave nothing behind.
func TestGroup_NothingLeaks(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has a memory of its own")
	}
	kinds(t, func(t *testing.T, e *engine.Engine, c engine.GroupConfig) {
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 2, OnFull: engine.DropOldest, Retention: engine.Retention{MaxRecords: 100}})
		g := newGroup(t, e, "g", c, "t")
		var goroutines int
		var before int64
		n := rounds(1000)
		for i := range 2 * n {
			if i == n {
				goroutines, before = runtime.NumGoroutine(), liveBytes()
			}
			mc := engine.MemberConfig{Name: "m", OnLost: func([]engine.Assignment, error) {}}
			if i%2 == 0 {
				mc.OnAssigned = func([]engine.Assignment) {}
				mc.OnRevoked = mc.OnAssigned
			}
			var m *engine.Member
			var k *engine.Consumer
			if i%3 == 0 {
				k = consumer(t, g, mc)
				m = k.Member
			} else {
				mc.Dedicated = i%5 == 0
				m = join(t, g, ignore, mc)
			}
			publish(t, topic, i%2, 1)
			if k != nil {
				_, _ = k.Poll(gone(), 10)
			}
			if i%4 == 0 {
				require.NoError(t, g.Evict("m"))
			}
			if k != nil {
				k.Close()
			}
			m.Close()
			<-m.Done()
		}
		await(func() bool { return runtime.NumGoroutine() <= goroutines })
		assert.Less(t, liveBytes()-before, int64(200*n+32<<10))
	})
}

// TestGroup_PublishAllocatesNothing, whoever reads.
func TestGroup_PublishAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	kinds(t, func(t *testing.T, e *engine.Engine, c engine.GroupConfig) {
		topic := create(t, e, "t", engine.TopicConfig{Retention: engine.Retention{MaxBytes: 1 << 20}})
		g := newGroup(t, e, "g", c, "t")
		for range 2 {
			join(t, g, handle(func(m *engine.Message) error {
				return done(m, c.Mode)
			}), engine.MemberConfig{})
		}
		p := part(t, topic, 0)
		record := engine.Record{Key: []byte("key"), Value: make([]byte, 64)}
		call := func() {
			_, err := p.Publish(background, record)
			if err != nil {
				t.Fatal(err)
			}
		}
		n := rounds(40_000)
		for range n {
			call()
		}
		some := allocations(n, call)
		assert.Less(t, some, 0.02*float64(n)+32, "for each record, published and delivered")
		assert.Equal(t, "g", g.Name())
	})
}
