package delivery_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine/internal/delivery"
)

// keyedModel is what a Keyed with handlers that take no time is meant to do: one loop over all records, without strands, runs and
// runners.
type keyedModel struct {
	once        bool
	most        int64 // MaxInFlight
	keys        int   // MaxKeys
	deliveries  int   // MaxDeliveries
	backoff     []time.Duration
	key         []string // of each record
	mu          sync.Mutex
	fails       []int // under mu: how often its handler fails, of its attempts since the last reset
	now         time.Duration
	paused      bool
	floor, read int64
	open        map[int64]*openRecord // read and not settled
	want        map[string][]entry    // what handlers get
	failed      int64
}

type openRecord struct {
	attempt int
	due     time.Duration
}

func (m *keyedModel) addFailures(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails = append(m.fails, n)
}

func (m *keyedModel) failures(off int64) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fails[off]
}

func (m *keyedModel) reset(at int64) {
	m.floor, m.read = at, at
	clear(m.open)
}

// run does all that can be done now.
func (m *keyedModel) run() {
	for !m.paused && (m.readOne() || m.deliverOne()) {
	}
}

func (m *keyedModel) readOne() bool {
	if m.read == int64(len(m.key)) || m.read >= m.floor+m.most {
		return false
	}
	open := map[string]bool{}
	for off := range m.open {
		open[m.group(off)] = true
	}
	if !open[m.group(m.read)] && len(open) >= min(m.keys, int(m.most)) {
		return false
	}
	m.open[m.read] = &openRecord{}
	m.read++
	return true
}

// group returns what a record shares its order with.
func (m *keyedModel) group(off int64) string {
	if k := m.key[off]; k != "" {
		return k
	}
	return fmt.Sprint("#", off)
}

func (m *keyedModel) deliverOne() bool {
	seen := map[string]bool{}
	for off := m.floor; off < m.read; off++ {
		r := m.open[off]
		if r == nil || seen[m.group(off)] {
			continue
		}
		seen[m.group(off)] = true
		if r.due > m.now {
			continue
		}
		r.attempt++
		m.want[m.key[off]] = append(m.want[m.key[off]], entry{off, r.attempt})
		if r.attempt <= m.failures(off) {
			m.failed++
			if !m.once && (m.deliveries == 0 || r.attempt < m.deliveries) {
				r.due = m.now + m.backoff[min(r.attempt, len(m.backoff))-1]
				return true
			}
		}
		delete(m.open, off)
		for m.floor < m.read && m.open[m.floor] == nil {
			m.floor++
		}
		return true
	}
	return false
}

// TestKeyed_Model publishes, lets time pass, pauses, moves and hands over a lane whose records fail at random, and compares each
// delivery of each key, and the position, with those of the model.
func TestKeyed_Model(t *testing.T) {
	watchdog(t)
	rapid.Check(t, func(rt *rapid.T) {
		var v any // rapid ends a test by a panic, which must not leave the bubble
		synctest.Test(t, func(t *testing.T) {
			defer func() { v = recover() }()
			checkKeyed(t, rt)
		})
		switch name := fmt.Sprintf("%T", v); {
		case v == nil:
		case strings.Contains(name, "invalidData"): // no failure; rapid tells the two apart by their lines
			panic(v)
		default:
			panic(v)
		}
	})
}

func checkKeyed(t *testing.T, rt *rapid.T) {
	p := newPart(t, partitionSetup{segments: 5})
	m := &keyedModel{
		once:       rapid.IntRange(0, 3).Draw(rt, "one in four is at most once") == 0,
		most:       int64(rapid.SampledFrom([]int{1, 4, 30}).Draw(rt, "records")),
		keys:       rapid.SampledFrom([]int{1, 3, 20}).Draw(rt, "most keys"),
		deliveries: rapid.SampledFrom([]int{0, 1, 3}).Draw(rt, "deliveries"),
		backoff:    []time.Duration{time.Second, 5 * time.Second},
		open:       map[int64]*openRecord{}, want: map[string][]entry{},
	}
	nkeys := rapid.SampledFrom([]int{0, 1, 5, 30}).Draw(rt, "keys")
	got := newKeyBook(t)
	c := delivery.Config{
		AtMostOnce: m.once, MaxInFlight: int(m.most), MaxKeys: m.keys, MaxDeliveries: m.deliveries, Backoff: m.backoff,
		Parallel: rapid.SampledFrom([]int{1, 3}).Draw(rt, "parallel"),
		Handler: delivery.Handler{One: func(_ context.Context, msg *Message) error {
			defer got.enter(msg)()
			if msg.Attempt <= m.failures(msg.Offset) {
				return errPoison
			}
			return nil
		}},
	}
	k := newKeyed(t, p, c, nil)
	k.Start()
	started := time.Now()
	failed := int64(0) // under owners before
	rt.Repeat(map[string]func(*rapid.T){
		"publish": func(rt *rapid.T) {
			for range rapid.IntRange(1, 20).Draw(rt, "records") {
				key := ""
				if i := rapid.IntRange(0, nkeys).Draw(rt, "key"); i > 0 {
					key = fmt.Sprint("k", i)
				}
				m.key = append(m.key, key)
				m.addFailures(max(0, rapid.IntRange(-6, 4).Draw(rt, "fails")))
				p.publishKeys(t, key)
			}
		},
		"time": func(rt *rapid.T) {
			pass(time.Duration(rapid.IntRange(1, 7).Draw(rt, "seconds")) * time.Second)
		},
		"pause":  func(*rapid.T) { k.Pause(); m.paused = true },
		"resume": func(*rapid.T) { k.Resume(); m.paused = false },
		"seek": func(rt *rapid.T) {
			to := rapid.Int64Range(0, int64(len(m.key))).Draw(rt, "to")
			require.NoError(rt, k.Seek(at(uint64(to))))
			m.reset(to)
		},
		"hand over": func(rt *rapid.T) {
			if rapid.Bool().Draw(rt, "fence") {
				k.Fence(errOver)
			} else {
				k.Stop(errOver)
			}
			<-k.ended
			require.Equal(rt, m.floor, k.Position())
			failed += k.Stats(p.clock.Now()).Failed
			k = newKeyed(t, p, c, at(uint64(k.Position())))
			m.reset(m.floor)
			if m.paused {
				k.Pause()
			}
			k.Start()
		},
		"": func(rt *rapid.T) {
			synctest.Wait()
			for now := time.Since(started); m.now < now; { // second by second, as things fall due
				m.run()
				m.now = min(now, m.now.Truncate(time.Second)+time.Second)
			}
			m.run()
			require.Equal(rt, m.floor, k.Position())
			require.Equal(rt, m.paused || m.floor == int64(len(m.key)), k.Drained())
			require.Equal(rt, m.failed, failed+k.Stats(p.clock.Now()).Failed)
			for key, want := range m.want {
				entries := got.entries(key)
				if key == "" { // these have no order
					require.ElementsMatch(rt, want, entries)
					continue
				}
				require.Equal(rt, want, entries, "key %s", key)
			}
		},
	})
	k.Stop(errOver)
	<-k.ended
}
