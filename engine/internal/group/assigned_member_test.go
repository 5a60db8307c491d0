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
