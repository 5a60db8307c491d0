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
