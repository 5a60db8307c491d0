package group_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/group"
)

// TestAssigned_DeadlineFences: an owner that does not give back is fenced by the Tick at its deadline, and not before.
func TestAssigned_DeadlineFences(t *testing.T) {
	s := newGroup(t, 2)
	m1 := s.mustJoin("m1", "t")
	m2 := s.mustJoin("m2", "t")
	gen := s.owned[at(1)].gen
	deadline, ok := s.g.NextDeadline()
	require.True(t, ok)
	require.Equal(t, int64(10*time.Second), deadline)

	s.tick(deadline - 1)
	assert.NoError(t, s.g.Owns(at(1), m1, gen))
	s.tick(deadline)
	assert.Equal(t, []int{1}, s.of(m2))
	err := s.g.Owns(at(1), m1, gen)
	assert.EqualError(t, err, fmt.Sprintf("leat: fenced: member %d, partition t/1, generation %d: no longer owned (generation %d, owner %d)",
		m1, gen, s.owned[at(1)].gen, m2))
	_, err = s.g.Released(at(1), m1, gen, s.now)
	assert.ErrorIs(t, err, group.ErrFenced, "too late")
	assert.Equal(t, []int{1}, s.of(m2))
}

// TestBUG010_LateCommitOfFormerOwner: m1 owns the partition, stalls, loses it to m2, and in the end owns it again. What it
// holds of its first time is refused at every moment after that.
func TestBUG010_LateCommitOfFormerOwner(t *testing.T) {
	s := newGroup(t, 1)
	m1 := s.mustJoin("m1", "t")
	old := s.owned[at(0)]
	m2 := s.mustJoin("m2", "t")
	require.Equal(t, []int{0}, s.of(m1), "one partition: it stays")

	s.must(s.g.Subscribe(m1, nil, s.now))
	s.tick(s.now + int64(10*time.Second)) // m1 has not answered
	require.Equal(t, []int{0}, s.of(m2))
	second := s.owned[at(0)]
	s.fenced(s.g.Owns(at(0), m1, old.gen), old)

	s.must(s.g.Subscribe(m1, []string{"t"}, s.now))
	s.must(s.g.Leave(m2, s.now))
	s.fenced(s.g.Owns(at(0), m1, old.gen), old)
	s.release(at(0))
	require.Equal(t, []int{0}, s.of(m1))
	s.fenced(s.g.Owns(at(0), m1, old.gen), old)
	s.fenced(s.g.Owns(at(0), m2, second.gen), second)
}

// TestBUG016_NothingBeginsWhileRevoking: from the Revoke on the word lets the owner finish and commit, and start nothing;
// and the partition is nobody else's until it has been given back.
func TestBUG016_NothingBeginsWhileRevoking(t *testing.T) {
	s := newGroup(t, 4)
	m1 := s.mustJoin("m1", "t")
	m2 := s.mustJoin("m2", "t")
	for i := range 4 {
		own := s.owned[at(i)]
		require.Equal(t, m1, own.member)
		w, _ := s.g.Word(at(i))
		assert.Equal(t, i < 2, w.MayDeliver(own.gen), "partition %d", i)
		assert.True(t, w.MayCommit(own.gen))
	}
	s.release(at(2))
	assert.Equal(t, []int{2}, s.of(m2), "each goes over by itself")
	assert.Equal(t, []int{0, 1, 3}, s.of(m1))
	s.release(at(3))
}

// TestBUG050_OldClaimsAfterMissedRebalances: m1 sleeps over two rebalances and is put out; what it claims then is refused,
// and claims that are forged are, too. The simulated engine checks that no partition ever has two owners.
func TestBUG050_OldClaimsAfterMissedRebalances(t *testing.T) {
	s := newGroup(t, 6)
	m1, m2, m3 := s.mustJoin("m1", "t"), s.mustJoin("m2", "t"), s.mustJoin("m3", "t")
	s.releaseAll()
	require.NoError(t, s.g.Progress(m1, s.now)) // and then nothing more
	claim := map[group.Partition]interval{}
	for _, i := range s.of(m1) {
		claim[at(i)] = s.owned[at(i)]
	}
	require.Len(t, claim, 2)

	s.must(s.g.Leave(m3, s.now))
	s.releaseAll()
	s.tick(s.now + int64(30*time.Second))
	require.Contains(t, s.gone, m1)
	m4 := s.mustJoin("m4", "t")
	s.releaseAll()

	for at, own := range claim {
		s.fenced(s.g.Owns(at, m1, own.gen), own)
		_, err := s.g.Released(at, m1, own.gen, s.now)
		s.fenced(err, own)
	}
	for _, forged := range []struct {
		who group.MemberID
		gen uint64
	}{{m2, s.owned[at(0)].gen + 1000}, {m2, 0}, {0, 0}, {m4, 1}, {m1, s.owned[at(0)].gen}} {
		assert.ErrorIs(t, s.g.Owns(at(0), forged.who, forged.gen), group.ErrFenced)
	}
	other := m2
	if s.owned[at(0)].member == m2 {
		other = m4
	}
	var fenced *group.FencedError
	require.ErrorAs(t, s.g.Owns(at(0), other, s.owned[at(0)].gen), &fenced)
	assert.Equal(t, group.FenceForeign, fenced.Reason)
	assert.Len(t, s.owned, 6)

	m1b := s.mustJoin("m1", "t")
	s.releaseAll()
	assert.Len(t, s.of(m1b), 2, "it comes back as a new member")
}

// TestBUG053_StaleAssignmentAfterRejoin: a member leaves and comes back under the same name while its first assignment, its
// revoke, or its release is still under way. What belongs to the old plan is refused, and each assignment ends once.
func TestBUG053_StaleAssignmentAfterRejoin(t *testing.T) {
	for _, pause := range []string{"assigned", "commit", "revoked"} {
		t.Run(pause, func(t *testing.T) {
			s := newGroup(t, 2)
			m1 := s.mustJoin("m1", "t")
			m2 := s.mustJoin("m2", "t")
			if pause != "assigned" {
				s.release(at(1)) // m2 has 1, and is asked for it next
			}
			old := s.owned[at(0)]
			s.must(s.g.Leave(m1, s.now))
			again := s.mustJoin("m1", "t")
			require.NotEqual(t, m1, again)
			assert.Empty(t, s.of(again), "it has nothing of what its former self has not given back")

			if pause == "revoked" {
				s.release(at(0))
				_, err := s.g.Released(at(0), m1, old.gen, s.now)
				s.fenced(err, old)
			} else {
				s.tick(s.now + int64(10*time.Second))
				s.fenced(s.g.Owns(at(0), m1, old.gen), old)
			}
			s.releaseAll()
			assert.Len(t, s.of(again), 1)
			assert.Len(t, s.of(m2), 1)
			assert.NotContains(t, s.alive, m1)
		})
	}
}

// TestBUG067_OneEndForEachAssignment: kept partitions are not announced again by a second rebalance, and one that is fenced
// is lost and not revoked as well.
func TestBUG067_OneEndForEachAssignment(t *testing.T) {
	s := newGroup(t, 3)
	s.mustJoin("m1", "t")
	kept := s.owned[at(0)]
	s.mustJoin("m2", "t")
	s.mustJoin("m3", "t")
	assert.Equal(t, kept, s.owned[at(0)])
	assigns, revokes := 0, 0
	for _, line := range s.logs {
		if line == fmt.Sprintf("assign m1(%d) t/0 @%d", kept.member, kept.gen) {
			assigns++
		}
	}
	assert.Equal(t, 1, assigns)

	s.release(at(1))
	s.tick(s.now + int64(10*time.Second)) // 2 is lost
	assert.Equal(t, 1, s.ends.lost)
	assert.Equal(t, 1, s.ends.released)
	for _, line := range s.logs {
		if len(line) > 6 && line[:6] == "revoke" {
			revokes++
		}
	}
	assert.Equal(t, 2, revokes)
	assert.Len(t, s.owned, 3)
}

// TestBUG052_ZombieIsStoppedByTheWord: a member is put out while it has a thousand records in its hands.
func TestBUG052_ZombieIsStoppedByTheWord(t *testing.T) {
	s := newGroup(t, 1)
	m1 := s.mustJoin("m1", "t")
	m2 := s.mustJoin("m2", "t")
	gen := s.owned[at(0)].gen
	handled := 0
	for i := range 1000 {
		if w, _ := s.g.Word(at(0)); !w.MayDeliver(gen) {
			break
		}
		if i == 100 {
			s.must(s.g.Evict(m1, s.now)) // while record 100 is in its handler
		}
		handled++
	}
	assert.Equal(t, 101, handled)
	assert.Equal(t, []int{0}, s.of(m2))
	assert.ErrorIs(t, s.g.Owns(at(0), m1, gen), group.ErrFenced)
}

// TestAssigned_NoRevokeTimeout: an owner is not asked, and nothing is left for a Tick to do.
func TestAssigned_NoRevokeTimeout(t *testing.T) {
	s := newSim(t, group.AssignedConfig{})
	s.partitions("t", 2)
	s.mustJoin("m1", "t")
	m2 := s.mustJoin("m2", "t")
	assert.Equal(t, []int{1}, s.of(m2))
	assert.Equal(t, 1, s.ends.lost)
	_, ok := s.g.NextDeadline()
	assert.False(t, ok)
}

// TestAssigned_ResetFences: the owner goes on under a new generation, and what it had in progress is refused.
func TestAssigned_ResetFences(t *testing.T) {
	s := newGroup(t, 1)
	m1 := s.mustJoin("m1", "t")
	old := s.owned[at(0)]
	s.must(s.g.Reset(at(0), s.now))
	assert.Equal(t, []int{0}, s.of(m1))
	s.fenced(s.g.Owns(at(0), m1, old.gen), old)
	_, err := s.g.Reset(at(1), s.now)
	assert.ErrorIs(t, err, group.ErrUnknownPartition)
}
