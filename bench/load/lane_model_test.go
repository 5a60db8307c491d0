package load_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/bench/load"
)

// laneModel is what the checks are meant to say, written so that nobody can get it wrong: a set and the highest number.
type laneModel struct {
	seen map[[2]uint64]bool // producer, number
	next map[uint64]uint64
	want load.Lane
}

func (m *laneModel) deliver(producer, seq uint64) {
	m.want.Received++
	key := [2]uint64{producer, seq}
	switch next := m.next[producer]; {
	case m.seen[key]:
		m.want.Duplicated++
	case seq < next:
		m.want.Reordered++
	case seq > next:
		m.want.Gap++
	}
	m.seen[key] = true
	m.next[producer] = max(m.next[producer], seq+1)
}

func (m *laneModel) close(sent []uint64) load.Lane {
	for p, n := range sent {
		for seq := range n {
			if !m.seen[[2]uint64{uint64(p), seq}] {
				m.want.Lost++
			}
		}
	}
	return m.want
}

func TestLane_CountsAsTheModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := load.Scenario{Producers: rapid.IntRange(1, 3).Draw(t, "producers"), Partitions: 1, Size: load.MinSize}
		l := load.NewTestLane(s, 0)
		m := &laneModel{seen: map[[2]uint64]bool{}, next: map[uint64]uint64{}}
		messages := make([]load.TestMessage, s.Producers)
		for p := range messages {
			messages[p] = load.NewTestMessage(s, p)
		}
		sent := make([]uint64, s.Producers)
		const most = 30
		for range rapid.IntRange(0, 200).Draw(t, "deliveries") {
			p := rapid.IntRange(0, s.Producers-1).Draw(t, "producer")
			seq := rapid.OneOf(
				rapid.Just(m.next[uint64(p)]), rapid.Just(m.next[uint64(p)]), rapid.Just(m.next[uint64(p)]),
				rapid.Uint64Range(0, most),
			).Draw(t, "seq")
			m.deliver(uint64(p), seq)
			l.Deliver(messages[p].Set(0, seq, 1))
			sent[p] = max(sent[p], seq+1)
		}
		for p := range sent {
			sent[p] += uint64(rapid.IntRange(0, 3).Draw(t, "never delivered"))
		}
		jumped := uint64(0)
		for p, next := range m.next {
			for seq := range next {
				if !m.seen[[2]uint64{p, seq}] {
					jumped++
				}
			}
		}
		require.Equal(t, jumped, l.Dropped())
		got, want := l.Close(func(p int) uint64 { return sent[p] }), m.close(sent)
		require.Equal(t, want.Faults.Any(), got.FirstFault != "", "a fault has a story")
		got.FirstFault = ""
		require.Equal(t, want, got)
		require.Equal(t, uint64(len(m.seen)), l.Accepted(), "different messages")
		require.Equal(t, l.Accepted(), l.Measured(), "duplicates are not measured")
	})
}

func TestLane_CorruptAndForeign(t *testing.T) {
	s := load.Scenario{Producers: 1, Partitions: 2, Size: 64}
	l := load.NewTestLane(s, 1)
	m := load.NewTestMessage(s, 0)
	bad := bytes.Clone(m.Set(1, 0, 0))
	bad[40] ^= 1
	l.Deliver(bad)
	l.Deliver(m.Set(1, 1, 0))
	l.Deliver(m.Set(0, 2, 0))                         // of another partition
	l.Deliver(load.NewTestMessage(s, 7).Set(1, 0, 0)) // of a producer that there is not
	l.Deliver(m.Set(1, 2, 0)[:40])                    // cut short
	l.Deliver(m.Set(1, 2, 0))
	got := l.Close(func(int) uint64 { return 3 })
	assert.Equal(t, load.Faults{Lost: 1, Gap: 1, Corrupt: 4}, got.Faults)
	assert.Equal(t, uint64(6), got.Received)
	assert.Contains(t, got.FirstFault, "delivery 1 ")
	assert.Zero(t, l.Measured(), "none had a time")
}

// TestLane_ManyHoles has more holes than a lane remembers: memory stays bounded and the losses are still all counted.
func TestLane_ManyHoles(t *testing.T) {
	s := load.Scenario{Producers: 1, Partitions: 1, Size: load.MinSize}
	l := load.NewTestLane(s, 0)
	m := load.NewTestMessage(s, 0)
	const n = load.HolesMost * 2
	for seq := uint64(1); seq < 2*n; seq += 2 { // every even number is missing
		l.Deliver(m.Set(0, seq, 0))
	}
	l.Deliver(m.Set(0, 2*n-2, 0)) // the newest hole is filled late
	l.Deliver(m.Set(0, 0, 0))     // the oldest has been forgotten
	got := l.Close(func(int) uint64 { return 2 * n })
	assert.Equal(t, load.Faults{Lost: n - 1, Reordered: 1, Duplicated: 1, Gap: n}, got.Faults)
}
