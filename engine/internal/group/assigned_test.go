package group_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/group"
)

func at(i int) group.Partition { return group.Partition{Topic: "t", Index: i} }

// newGroup returns a group with so many partitions of topic t, and a revoke timeout of ten seconds.
func newGroup(t *testing.T, partitions int) *sim {
	s := newSim(t, group.AssignedConfig{
		RevokeTimeout:   10 * time.Second,
		ProgressTimeout: 30 * time.Second,
		Grace:           time.Minute,
	})
	s.partitions("t", partitions)
	return s
}

// TestAssigned_HandOver is one move from beginning to end.
func TestAssigned_HandOver(t *testing.T) {
	s := newGroup(t, 2)
	m1 := s.mustJoin("m1", "t")
	gen := s.owned[at(1)].gen
	s.logs = nil

	m2 := s.mustJoin("m2", "t")
	assert.Equal(t, []string{fmt.Sprintf("revoke m1(%d) t/1 @%d until 10000000000", m1, gen)}, s.logs)
	w, ok := s.g.Word(at(1))
	require.True(t, ok)
	assert.False(t, w.MayDeliver(gen), "nothing new begins")
	assert.True(t, w.MayCommit(gen), "what is in progress may end and be committed")
	assert.Empty(t, s.of(m2), "not before it has been given back")

	s.release(at(1))
	assert.Equal(t, []int{0}, s.of(m1))
	assert.Equal(t, []int{1}, s.of(m2))
	_, ok = s.g.NextDeadline()
	assert.False(t, ok)
	_, ok = s.g.Word(at(2))
	assert.False(t, ok)
	assert.ErrorIs(t, s.g.Owns(at(2), m1, gen), group.ErrUnknownPartition)
	assert.ErrorIs(t, s.g.Owns(at(-1), m1, gen), group.ErrUnknownPartition)
}

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

// TestAssigned_TargetChangesInMidMove: a partition on its way to one member goes to another one, or back, and is taken over
// once.
func TestAssigned_TargetChangesInMidMove(t *testing.T) {
	s := newGroup(t, 2)
	m1 := s.mustJoin("m1", "t")
	m2 := s.mustJoin("m2", "t")
	m3 := s.mustJoin("m3", "t") // gets nothing yet: there are two partitions
	s.must(s.g.Leave(m2, s.now))
	s.release(at(1))
	assert.Equal(t, []int{1}, s.of(m3))

	m4 := s.mustJoin("m4", "t", "u")
	s.must(s.g.Leave(m1, s.now)) // 0 is on its way to m4
	s.must(s.g.Leave(m4, s.now))
	s.must(s.g.Leave(m3, s.now))
	m1b := s.mustJoin("m1", "t")
	s.releaseAll()
	assert.Equal(t, []int{0, 1}, s.of(m1b), "everything has come to the only one who is left")
	assert.Len(t, s.alive, 1)
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

// TestBUG038_NewPartitionsAreNoticed: a topic grows twice, the second time in the middle of a rebalance.
func TestBUG038_NewPartitionsAreNoticed(t *testing.T) {
	s := newGroup(t, 2)
	m1 := s.mustJoin("m1", "t")
	assert.False(t, s.owned[at(0)].grown, "the group starts these where it is configured to")
	s.partitions("t", 5)
	m2 := s.mustJoin("m2", "t")
	s.partitions("t", 6)
	s.releaseAll()
	assert.Len(t, s.of(m1), 3)
	assert.Len(t, s.of(m2), 3)
	for i := range 6 {
		assert.Equal(t, i >= 2, s.owned[at(i)].grown, "partition %d", i)
	}
	_, err := s.g.SetPartitions("t", 4, s.now)
	assert.ErrorIs(t, err, group.ErrShrink)
	assert.Len(t, s.owned, 6)

	// A topic that did not exist when the members subscribed.
	s.must(s.g.Subscribe(m1, []string{"t", "later"}, s.now))
	s.partitions("later", 1)
	own := s.owned[group.Partition{Topic: "later"}]
	assert.Equal(t, m1, own.member)
	assert.False(t, own.grown)
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

// TestBUG097_SlowIsNotDead: a member at rest has no deadline, one that makes progress is never put out, and one that has
// been put out can come back.
func TestBUG097_SlowIsNotDead(t *testing.T) {
	s := newGroup(t, 2)
	m1, m2 := s.mustJoin("m1", "t"), s.mustJoin("m2", "t")
	s.releaseAll()
	s.tick(int64(time.Hour))
	assert.Len(t, s.alive, 2, "nothing to do for an hour is no reason")

	// Both are at work. The engine keeps their progress elsewhere, and is asked who is overdue.
	require.NoError(t, s.g.Progress(m1, s.now))
	require.NoError(t, s.g.Progress(m2, s.now))
	start := s.now
	for range 10 {
		deadline, ok := s.g.NextDeadline()
		require.True(t, ok)
		require.Equal(t, []group.MemberID{m1, m2}, s.g.Overdue(deadline, nil))
		for _, id := range s.g.Overdue(deadline, nil) {
			require.NoError(t, s.g.Progress(id, deadline-1))
		}
		s.tick(deadline)
	}
	assert.Len(t, s.alive, 2)
	assert.Greater(t, s.now, start+int64(4*time.Minute))

	deadline, _ := s.g.NextDeadline()
	require.NoError(t, s.g.Rest(m2))
	s.tick(deadline)
	assert.Equal(t, []group.MemberID{m1}, s.gone, "one that is at work and makes no progress")
	assert.Equal(t, []int{0, 1}, s.of(m2))
	m1b := s.mustJoin("m1", "t")
	s.releaseAll()
	assert.Len(t, s.of(m1b), 1)
}

// TestAssigned_LeavingMember: one that has left and does not give back has no deadline but those of its partitions, and can
// be put out like any other.
func TestAssigned_LeavingMember(t *testing.T) {
	s := newSim(t, group.AssignedConfig{RevokeTimeout: time.Minute, ProgressTimeout: time.Second})
	s.partitions("t", 2)
	m1 := s.mustJoin("m1", "t")
	s.must(s.g.Leave(m1, s.now))
	require.NoError(t, s.g.Progress(m1, s.now))
	assert.Empty(t, s.g.Overdue(math.MaxInt64, nil))
	s.tick(int64(2 * time.Second))
	assert.Len(t, s.owned, 2, "it has a minute to give them back")
	s.must(s.g.Evict(m1, s.now))
	assert.Equal(t, []group.MemberID{m1}, s.gone)
	assert.Equal(t, 2, s.ends.lost)
	assert.True(t, s.g.Idle())
}

// TestBUG098_MemberNamesCollide: a second member of one name is refused and changes nothing, unless both are static: then it
// takes the place of the first.
func TestBUG098_MemberNamesCollide(t *testing.T) {
	s := newGroup(t, 2)
	m1 := s.mustJoin("m1", "t")
	generation := s.g.Generation()
	for _, static := range []bool{false, true} {
		_, err := s.join(group.Member{Name: "m1", Static: static, Topics: []string{"t"}})
		require.ErrorIs(t, err, group.ErrMemberExists)
	}
	_, err := s.join(group.Member{})
	require.ErrorIs(t, err, group.ErrName)
	assert.Equal(t, generation, s.g.Generation())
	assert.Equal(t, []int{0, 1}, s.of(m1))

	first, err := s.join(group.Member{Name: "s", Static: true, Topics: []string{"t"}})
	require.NoError(t, err)
	s.releaseAll()
	require.Equal(t, []int{1}, s.of(first))
	_, err = s.join(group.Member{Name: "s", Topics: []string{"t"}})
	require.ErrorIs(t, err, group.ErrMemberExists, "not static")
	old := s.owned[at(1)]
	kept := s.owned[at(0)]
	second, err := s.join(group.Member{Name: "s", Static: true, Topics: []string{"t"}})
	require.NoError(t, err)
	assert.Equal(t, []int{1}, s.of(second))
	assert.Equal(t, kept, s.owned[at(0)], "no rebalance")
	assert.Equal(t, []group.MemberID{first}, s.gone)
	s.fenced(s.g.Owns(at(1), first, old.gen), old)
}

// TestBUG104_NumbersAreUnique: a hundred thousand memberships and assignments at one time of the clock.
func TestBUG104_NumbersAreUnique(t *testing.T) {
	g := group.NewAssigned(group.AssignedConfig{}, 41)
	_, err := g.SetPartitions("t", 1, 0)
	require.NoError(t, err)
	seen := map[uint64]bool{}
	for range rounds(50_000) {
		id, actions, err := g.Join(group.Member{Name: "m", Topics: []string{"t"}}, 0)
		if err != nil || len(actions) != 1 {
			require.FailNow(t, "no assignment", "%v %v", actions, err)
		}
		for _, n := range []uint64{uint64(id), actions[0].Generation, g.Generation()} {
			if seen[n] || n <= 41 {
				require.FailNow(t, "used before", "%d", n)
			}
			seen[n] = true
		}
		if _, err = g.Evict(id, 0); err != nil {
			require.NoError(t, err)
		}
	}
	assert.True(t, g.Idle())
	assert.Greater(t, g.Last(), uint64(len(seen)))
}

// TestBUG107_DescribeIsACopy: what it returns can be changed by the caller and is not changed by the group.
func TestBUG107_DescribeIsACopy(t *testing.T) {
	s := newGroup(t, 2)
	topics := []string{"t"}
	m1, err := s.join(group.Member{Name: "m1", Topics: topics})
	require.NoError(t, err)
	topics[0] = "u"
	d := s.g.Describe()
	d.Members[0].Topics[0] = "v"
	d.Partitions[0].Owner = 99
	s.mustJoin("m2", "t")
	assert.Equal(t, "t", s.g.Describe().Members[0].Topics[0])
	assert.False(t, d.Partitions[1].Revoking())
	assert.Equal(t, m1, d.Partitions[1].Owner)
	s.check()
}

// TestBUG110_MembersLeaveNothing: members come and go under ever new names.
func TestBUG110_MembersLeaveNothing(t *testing.T) {
	s := newGroup(t, 1)
	for i := range 1000 {
		m, err := s.join(group.Member{Name: fmt.Sprint(i), Static: i%2 == 0, Topics: []string{"t"}})
		require.NoError(t, err)
		require.NoError(t, s.g.Progress(m, s.now))
		s.must(s.g.Leave(m, s.now))
		s.releaseAll()
		s.tick(s.now + int64(time.Minute))
		s.past, s.logs = nil, nil
	}
	assert.True(t, s.g.Idle())
	assert.Empty(t, s.g.Describe().Members)
	_, ok := s.g.NextDeadline()
	assert.False(t, ok)
}

// TestAssigned_StaticMemberComesBack: within the grace time without a move, and after it as a new member.
func TestAssigned_StaticMemberComesBack(t *testing.T) {
	s := newGroup(t, 2)
	s1, err := s.join(group.Member{Name: "s", Static: true, Topics: []string{"t"}})
	require.NoError(t, err)
	m2 := s.mustJoin("z", "t")
	s.releaseAll()
	require.Equal(t, []int{0}, s.of(s1))

	s.must(s.g.Leave(s1, s.now))
	s.release(at(0))
	assert.Equal(t, 2, s.g.Members())
	assert.Empty(t, s.owned[at(0)], "kept for it")
	s.tick(s.now + int64(time.Minute) - 1)
	assert.Equal(t, []int{1}, s.of(m2))
	s2, err := s.join(group.Member{Name: "s", Static: true, Topics: []string{"t"}})
	require.NoError(t, err)
	assert.Equal(t, []int{0}, s.of(s2))
	_, ok := s.g.NextDeadline()
	assert.False(t, ok)

	s.must(s.g.Leave(s2, s.now))
	s.must(s.g.Leave(s2, s.now))
	s.release(at(0))
	s.tick(s.now + int64(time.Minute))
	assert.Equal(t, []int{0, 1}, s.of(m2), "its time is over")

	s3, err := s.join(group.Member{Name: "s", Static: true, Topics: []string{"t"}})
	require.NoError(t, err)
	s.releaseAll()
	s.must(s.g.Leave(s3, s.now))
	s.releaseAll()
	s.must(s.g.Forget("s", s.now))
	assert.Equal(t, []int{0, 1}, s.of(m2), "somebody did not want to wait")
	_, err = s.g.Forget("s", s.now)
	assert.ErrorIs(t, err, group.ErrUnknownMember)
	_, err = s.g.Forget("z", s.now)
	assert.ErrorIs(t, err, group.ErrUnknownMember, "it is there")
}

// TestAssigned_StaticMemberComesBackForOtherTopics: that is a rebalance, even if it was away for a moment only.
func TestAssigned_StaticMemberComesBackForOtherTopics(t *testing.T) {
	s := newGroup(t, 2)
	s.partitions("u", 1)
	s1, err := s.join(group.Member{Name: "s", Static: true, Topics: []string{"t"}})
	require.NoError(t, err)
	m2 := s.mustJoin("z", "t")
	s.releaseAll()
	s.must(s.g.Leave(s1, s.now))
	s.releaseAll()
	s2, err := s.join(group.Member{Name: "s", Static: true, Topics: []string{"u", "u"}})
	require.NoError(t, err)
	assert.Equal(t, []int{0, 1}, s.of(m2))
	assert.Equal(t, s2, s.owned[group.Partition{Topic: "u"}].member)
	s.must(s.g.Subscribe(s2, []string{"u"}, s.now))
}

// TestAssigned_NothingIsGivenUnderAnOldPlan: when a member is put out, what it had goes to those who are to have it without
// it, and not first to those who were to get it from it.
func TestAssigned_NothingIsGivenUnderAnOldPlan(t *testing.T) {
	s := newSim(t, group.AssignedConfig{Assignor: group.Range, RevokeTimeout: time.Minute, ProgressTimeout: time.Second})
	s.partitions("t", 4)
	a := s.mustJoin("a", "t")
	require.NoError(t, s.g.Progress(a, s.now))
	b, c := s.mustJoin("b", "t"), s.mustJoin("c", "t") // 2 was to be b's
	s.tick(int64(time.Second))
	assert.Equal(t, []int{0, 1}, s.of(b))
	assert.Equal(t, []int{2, 3}, s.of(c))
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

func TestAssigned_TopicRemoved(t *testing.T) {
	s := newGroup(t, 2)
	m1 := s.mustJoin("m1", "t")
	s.do(s.g.RemoveTopic("t", s.now))
	s.do(s.g.RemoveTopic("t", s.now))
	assert.Empty(t, s.owned)
	assert.Equal(t, 2, s.ends.lost)
	s.partitions("t", 1)
	assert.Equal(t, []int{0}, s.of(m1), "a topic of the same name is a new one")
	assert.False(t, s.owned[at(0)].grown)
}

// TestBUG091_TimesNearTheEnd: deadlines stop at the last time there is.
func TestBUG091_TimesNearTheEnd(t *testing.T) {
	s := newSim(t, group.AssignedConfig{RevokeTimeout: math.MaxInt64, ProgressTimeout: math.MaxInt64, Grace: math.MaxInt64})
	s.partitions("t", 2)
	m1 := s.mustJoin("m1", "t")
	s.mustJoin("m2", "t")
	require.NoError(t, s.g.Progress(m1, math.MaxInt64-1))
	deadline, ok := s.g.NextDeadline()
	require.True(t, ok)
	assert.Equal(t, int64(math.MaxInt64), deadline)
	s.tick(math.MaxInt64 - 1)
	assert.Len(t, s.alive, 2)
}

func TestAssigned_NoSuchAssignor(t *testing.T) {
	assert.PanicsWithValue(t, "group: no such assignor: Assignor(3)", func() {
		group.NewAssigned(group.AssignedConfig{Assignor: 3}, 0)
	})
}

func TestAssigned_Strings(t *testing.T) {
	a := group.Action{Kind: group.Assign, Partition: at(3), Member: 7, Name: "m", Generation: 9, Grown: true}
	assert.Equal(t, "assign m(7) t/3 @9 grown", a.String())
	assert.Equal(t, "evict m(7) (made no progress)", group.Action{Kind: group.Evict, Member: 7, Name: "m", Cause: group.CauseNoProgress}.String())
	assert.Equal(t, "Kind(9)", group.Kind(9).String())
	assert.Equal(t, "Cause(99)", group.Cause(99).String())
	assert.Equal(t, "Fence(99)", group.Fence(99).String())
	assert.Equal(t, "leat: fenced: member 7: no such member of the group", (&group.FencedError{Reason: group.FenceMember, Member: 7}).Error())
	assert.Equal(t, "0 free", group.Word(0).String())
	assert.Equal(t, "4 owned", group.Word(4<<2|1).String())
	assert.Equal(t, "4 revoking", group.Word(4<<2|3).String())
}

// TestAssigned_OwnsAllocatesNothing: it may be asked for each record.
func TestAssigned_OwnsAllocatesNothing(t *testing.T) {
	s := newGroup(t, 1)
	m1 := s.mustJoin("m1", "t")
	gen := s.owned[at(0)].gen
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if s.g.Owns(at(0), m1, gen) != nil || s.g.Progress(m1, 5) != nil || s.g.Rest(m1) != nil {
			panic("fenced")
		}
	}))
}
