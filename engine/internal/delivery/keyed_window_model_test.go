package delivery

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// windowModel is what a window is meant to be: the records that are read, each with what has become of it, and no lists.
type windowModel struct {
	t       *rapid.T
	w       window
	most    int
	keys    int
	read    uint64
	floor   uint64
	records map[uint64]*modelRecord // read and not settled
	settled map[uint64]bool         // above the floor
	out     []*modelRun             // what runners have, in the order in which they took it
	now     int64
	final   bool
}

type modelRecord struct {
	key     string // "" is none
	attempt int
	due     int64
	dying   error
	run     *modelRun // that has it
}

// modelRun is what one runner has.
type modelRun struct {
	items []item
	from  int  // the first that is not over
	stale bool // taken before a reset
}

// group returns what a record shares its order with.
func (r *modelRecord) group(off uint64) string {
	if r.key == "" {
		return fmt.Sprint("#", off)
	}
	return r.key
}

// first returns the first record of each key, and the keys of which somebody has a record, be it a stale one.
func (m *windowModel) first() (first map[string]uint64, taken map[string]bool) {
	first, taken = map[string]uint64{}, map[string]bool{}
	for _, off := range m.offsets() {
		r := m.records[off]
		if _, ok := first[r.group(off)]; !ok {
			first[r.group(off)] = off
		}
	}
	for _, run := range m.out {
		for i := run.from; i < len(run.items); i++ {
			taken[m.keyOf(run.items[i].off)] = true
		}
	}
	return first, taken
}

// keyOf returns the key that the record at an offset has, or had before a reset.
func (m *windowModel) keyOf(off uint64) string { return (&modelRecord{key: m.key(off)}).group(off) }

// key gives each offset its key, the same at each reading.
func (m *windowModel) key(off uint64) string {
	if k := off * 2654435761 >> 7 % uint64(m.keys+1); k > 0 {
		return fmt.Sprint("k", k)
	}
	return ""
}

func (m *windowModel) offsets() (offs []uint64) {
	for off := range m.records {
		offs = append(offs, off)
	}
	slices.Sort(offs)
	return offs
}

func (m *windowModel) settle(off uint64) {
	delete(m.records, off)
	m.settled[off] = true
	for m.settled[m.floor] {
		delete(m.settled, m.floor)
		m.floor++
	}
}

// pick draws one of the runs that are out.
func (m *windowModel) pick(t *rapid.T) *modelRun {
	if len(m.out) == 0 {
		t.Skip("nobody has anything")
	}
	return rapid.SampledFrom(m.out).Draw(t, "run")
}

func (m *windowModel) drop(run *modelRun) {
	m.out = slices.DeleteFunc(m.out, func(r *modelRun) bool { return r == run })
}

// giveBack gives back what run has from i on.
func (m *windowModel) giveBack(run *modelRun, i int) {
	m.w.giveBack(run.items[i:])
	for _, it := range run.items[i:] {
		if r := m.records[it.off]; r != nil && r.run == run {
			r.run = nil
		}
	}
	run.items = run.items[:i]
	if run.from == i {
		m.drop(run)
	}
}

// over ends the first item of a run, which is no longer out if that was its last.
func (m *windowModel) over(run *modelRun) {
	m.w.release(&run.items[run.from])
	run.from++
	if run.from == len(run.items) {
		m.drop(run)
	}
}

// TestWindow_Model has runners take records, finish them, fail with them and give them back, while records are read, lost, and
// the window is reset.
func TestWindow_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &windowModel{
			t: t, most: rapid.SampledFrom([]int{1, 2, 10, 100}).Draw(t, "records"), keys: rapid.SampledFrom([]int{0, 1, 3, 20}).Draw(t, "keys"),
			records: map[uint64]*modelRecord{}, settled: map[uint64]bool{},
		}
		m.floor = rapid.Uint64Range(0, 200).Draw(t, "start")
		m.read = m.floor
		maxKeys := rapid.SampledFrom([]int{1, 3, 50}).Draw(t, "most keys")
		m.w.init(m.most, maxKeys, m.floor)
		maxKeys = min(maxKeys, m.most)
		t.Repeat(map[string]func(*rapid.T){
			"read": func(t *rapid.T) {
				for range rapid.IntRange(1, 10).Draw(t, "records") {
					full := m.read-m.floor >= uint64(m.most)
					require.Equal(t, full, m.w.full())
					if full {
						return
					}
					first, taken := m.first()
					for k := range taken {
						first[k] = 0
					}
					r := &modelRecord{key: m.key(m.read)}
					_, known := first[r.group(m.read)]
					var key []byte
					if r.key != "" {
						key = []byte(r.key)
					}
					ok := m.w.add(key)
					require.Equal(t, known || len(first) < maxKeys, ok, "%d keys", len(first))
					if !ok {
						return
					}
					m.records[m.read] = r
					m.read++
				}
			},
			"take": func(t *rapid.T) {
				if m.final {
					t.Skip("nobody takes anything after that")
				}
				first, taken := m.first()
				avail := 0
				for off, r := range m.records {
					g := r.group(off)
					if !taken[g] && m.records[first[g]].due == 0 {
						avail++
					}
				}
				require.Equal(t, avail, m.w.avail)
				dst := make([]item, rapid.IntRange(1, 8).Draw(t, "want"))
				n := m.w.take(dst)
				require.Equal(t, avail > 0, n > 0)
				run := &modelRun{items: dst[:n]}
				for i := range run.items {
					it := &run.items[i]
					r := m.records[it.off]
					require.NotNil(t, r, "offset %d", it.off)
					g := r.group(it.off)
					require.False(t, taken[g], "somebody has %s", g)
					require.Nil(t, r.run)
					require.Zero(t, r.due)
					require.EqualValues(t, r.attempt+1, it.attempt)
					require.Equal(t, r.dying, it.dying)
					for off := range it.off { // it is the first that nobody has
						if b := m.records[off]; b != nil && b.group(off) == g {
							require.Same(t, run, b.run, "%d is before %d", off, it.off)
						}
					}
					r.run = run
				}
				if n > 0 {
					m.out = append(m.out, run)
				}
			},
			"settle": func(t *rapid.T) {
				run := m.pick(t)
				for range rapid.IntRange(1, len(run.items)-run.from).Draw(t, "records") {
					it := &run.items[run.from]
					require.Equal(t, !run.stale && !m.final, m.w.settle(it))
					require.False(t, m.w.settle(it), "again")
					if !run.stale && !m.final {
						m.settle(it.off)
					} else if r := m.records[it.off]; r != nil && r.run == run {
						r.run = nil
					}
					m.over(run)
					if run.from < len(run.items) && m.final {
						return // it would not have gone on
					}
				}
			},
			"fail": func(t *rapid.T) {
				run := m.pick(t)
				m.giveBack(run, run.from+1)
				it := &run.items[run.from]
				due := m.now + rapid.Int64Range(1, 20).Draw(t, "wait")
				var dying error
				if rapid.IntRange(0, 3).Draw(t, "one in four") == 0 {
					dying = ErrGoexit
				}
				m.w.delay(it, it.attempt, due, dying)
				if r := m.records[it.off]; r != nil && !run.stale {
					r.attempt, r.due, r.dying, r.run = int(it.attempt), due, dying, nil
				}
				m.over(run)
			},
			"give back": func(t *rapid.T) {
				run := m.pick(t)
				m.giveBack(run, rapid.IntRange(run.from, len(run.items)).Draw(t, "from"))
			},
			"time": func(t *rapid.T) {
				m.now += rapid.Int64Range(1, 10).Draw(t, "time")
				m.w.wake(m.now)
				for _, r := range m.records {
					if r.run == nil && r.due <= m.now {
						r.due = 0
					}
				}
			},
			"lose": func(t *rapid.T) {
				first := m.floor + rapid.Uint64Range(0, uint64(m.most)).Draw(t, "first")
				var want []span
				lost := m.w.lost
				for _, off := range m.offsets() {
					if r := m.records[off]; r.run != nil || off >= first {
						continue
					}
					m.settle(off)
					lost++
					if n := len(want); n > 0 && want[n-1].to == off {
						want[n-1].to++
					} else {
						want = append(want, span{off, off + 1})
					}
				}
				require.Equal(t, want, m.w.lose(first))
				require.Equal(t, lost, m.w.lost)
			},
			"pass": func(t *rapid.T) {
				if m.floor != m.read || m.final {
					t.Skip("something is not settled")
				}
				to := m.read + rapid.Uint64Range(1, 1000).Draw(t, "gap")
				require.Equal(t, span{m.read, to}, m.w.pass(to))
				m.read, m.floor = to, to
			},
			"reset": func(t *rapid.T) {
				for _, run := range slices.Clone(m.out) { // what nobody has begun with comes back first
					m.giveBack(run, run.from+1)
				}
				m.floor = rapid.Uint64Range(0, m.read+10).Draw(t, "to")
				m.read = m.floor
				m.w.reset(m.floor)
				clear(m.records)
				clear(m.settled)
				for _, run := range m.out {
					run.stale = true
				}
			},
			"final": func(t *rapid.T) {
				if rapid.IntRange(0, 50).Draw(t, "one in fifty") == 0 {
					for _, run := range slices.Clone(m.out) {
						m.giveBack(run, run.from+1)
					}
					m.final, m.w.final = true, true
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, m.floor, m.w.floor())
				require.Equal(t, m.read, m.w.read)
				require.Equal(t, len(m.records), m.w.pending)
				first, taken := m.first()
				for k := range taken {
					first[k] = 0
				}
				require.Equal(t, len(first), m.w.used)
			},
		})
	})
}
