package group_test

import (
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/group"
)

// sim carries out the actions of an Assigned group like an engine would, and fails the test when one of them breaks an
// invariant.
type sim struct {
	t    require.TestingT
	g    *group.Assigned
	cfg  group.AssignedConfig
	now  int64
	logs []string

	owned map[group.Partition]interval
	past  []interval // those that have ended
	alive map[group.MemberID]string
	gone  []group.MemberID
	used  map[uint64]bool // generations and ids
	ends  struct{ released, lost int }
}

// interval is one ownership.
type interval struct {
	at       group.Partition
	member   group.MemberID
	gen      uint64
	revoking bool
	deadline int64
	grown    bool
}

func newSim(t require.TestingT, cfg group.AssignedConfig) *sim {
	return &sim{
		t:     t,
		g:     group.NewAssigned(cfg, 0),
		cfg:   cfg,
		owned: map[group.Partition]interval{},
		alive: map[group.MemberID]string{},
		used:  map[uint64]bool{},
	}
}

// do carries out the actions of one event.
func (s *sim) do(actions []group.Action) {
	before := map[group.Partition]interval{}
	for at, own := range s.owned {
		before[at] = own
	}
	touched, assigned := map[group.Partition]bool{}, map[group.Partition]bool{}
	for _, a := range actions {
		s.logs = append(s.logs, a.String())
		if a.Kind <= group.Lost {
			require.False(s.t, assigned[a.Partition], "%v: assigned by the same event", a)
			touched[a.Partition] = true
			assigned[a.Partition] = a.Kind == group.Assign
		}
		own, has := s.owned[a.Partition]
		switch a.Kind {
		case group.Assign:
			require.False(s.t, has, "two owners: %v, owned %+v", a, own)
			require.Equal(s.t, a.Name, s.alive[a.Member], "%v: not a member", a)
			require.False(s.t, s.used[a.Generation], "%v: a number used twice", a)
			for _, old := range s.past {
				require.Less(s.t, old.gen, a.Generation, "%v: a generation that is not newer", a)
			}
			s.used[a.Generation] = true
			s.owned[a.Partition] = interval{at: a.Partition, member: a.Member, gen: a.Generation, grown: a.Grown}
		case group.Revoke:
			require.True(s.t, has && own.member == a.Member && own.gen == a.Generation && !own.revoking, "%v: owned %+v", a, own)
			require.Equal(s.t, s.now+int64(s.cfg.RevokeTimeout), a.Deadline)
			own.revoking, own.deadline = true, a.Deadline
			s.owned[a.Partition] = own
		case group.Lost:
			require.True(s.t, has && own.member == a.Member && own.gen == a.Generation, "%v: owned %+v", a, own)
			require.NotZero(s.t, a.Cause)
			if a.Cause == group.CauseDeadline {
				require.True(s.t, own.revoking && own.deadline <= s.now || s.cfg.RevokeTimeout == 0, "%v: owned %+v", a, own)
			}
			s.end(own)
			s.ends.lost++
		case group.Left, group.Evict:
			require.Equal(s.t, a.Name, s.alive[a.Member], "%v: not a member", a)
			for _, own := range s.owned {
				require.NotEqual(s.t, a.Member, own.member, "%v: has %+v", a, own)
			}
			require.Equal(s.t, a.Kind == group.Evict, a.Cause != 0)
			delete(s.alive, a.Member)
			s.gone = append(s.gone, a.Member)
		default:
			require.Fail(s.t, "unknown", "%v", a)
		}
	}
	for at, own := range before {
		if s.owned[at] == own {
			require.False(s.t, touched[at], "%v was not to be touched: %v", at, actions)
		}
	}
	s.check()
}

func (s *sim) end(own interval) {
	delete(s.owned, own.at)
	s.past = append(s.past, own)
}

// check compares what the group says of itself with what it has had done.
func (s *sim) check() {
	d := s.g.Describe()
	require.Equal(s.t, s.g.Generation(), d.Generation)
	require.NoError(s.t, s.g.CheckPlan())
	known := 0
	for _, p := range d.Partitions {
		own, has := s.owned[p.Partition]
		if has {
			known++
		}
		require.Equal(s.t, has, p.Owned(), "%v", p)
		require.Equal(s.t, own.member, p.Owner, "%v", p)
		require.Equal(s.t, own.revoking, p.Revoking(), "%v", p)
		require.Equal(s.t, own.deadline, p.Deadline, "%v", p)
		if has {
			require.Equal(s.t, own.gen, p.Word.Generation())
			require.Equal(s.t, !own.revoking, p.MayDeliver(own.gen))
			require.NoError(s.t, s.g.Owns(p.Partition, own.member, own.gen))
		}
		if !own.revoking {
			require.Equal(s.t, p.Target, p.Owner, "%v: nothing is on its way", p)
		}
	}
	require.Len(s.t, s.owned, known, "partitions that do not exist are owned")

	owned := map[group.MemberID]int{}
	for _, own := range s.owned {
		owned[own.member]++
	}
	members := 0
	for _, m := range d.Members {
		if m.ID == 0 {
			require.True(s.t, m.Away && m.Static)
			continue
		}
		members++
		require.Equal(s.t, m.Name, s.alive[m.ID])
		require.Equal(s.t, owned[m.ID], m.Owned)
	}
	require.Len(s.t, s.alive, members)
	for _, own := range s.past[max(0, len(s.past)-20):] {
		s.fenced(s.g.Owns(own.at, own.member, own.gen), own)
	}
}

// fenced fails the test if err is not the right one for an ownership that has ended.
func (s *sim) fenced(err error, own interval) {
	if errors.Is(err, group.ErrUnknownPartition) {
		return // the topic is gone
	}
	var fenced *group.FencedError
	require.ErrorAs(s.t, err, &fenced)
	require.ErrorIs(s.t, err, group.ErrFenced)
	require.Equal(s.t, own.gen, fenced.Generation)
	require.Greater(s.t, fenced.Current, own.gen)
	require.Equal(s.t, s.owned[own.at].member, fenced.Owner)
	want := group.FenceOwner
	if s.alive[own.member] == "" {
		want = group.FenceMember
	}
	require.Equal(s.t, want, fenced.Reason)
}

func (s *sim) join(m group.Member) (group.MemberID, error) {
	members := len(s.alive)
	id, actions, err := s.g.Join(m, s.now)
	if err != nil {
		require.Empty(s.t, actions)
		require.Zero(s.t, id)
		require.Len(s.t, s.alive, members)
		return 0, err
	}
	require.False(s.t, s.used[uint64(id)], "a number used twice")
	s.used[uint64(id)] = true
	s.alive[id] = m.Name
	s.do(actions)
	return id, nil
}

func (s *sim) must(actions []group.Action, err error) {
	require.NoError(s.t, err)
	s.do(actions)
}

func (s *sim) mustJoin(name string, topics ...string) group.MemberID {
	id, err := s.join(group.Member{Name: name, Topics: topics})
	require.NoError(s.t, err)
	return id
}

func (s *sim) partitions(topic string, n int) {
	s.must(s.g.SetPartitions(topic, n, s.now))
}

// release gives back a partition that is being revoked.
func (s *sim) release(at group.Partition) {
	own := s.owned[at]
	require.True(s.t, own.revoking, "%v", at)
	actions, err := s.g.Released(at, own.member, own.gen, s.now)
	require.NoError(s.t, err)
	s.end(own)
	s.ends.released++
	s.do(actions)
}

// releaseAll gives back everything that is asked for, and what is asked for because of that.
func (s *sim) releaseAll() {
	for again := true; again; {
		again = false
		for _, p := range s.g.Describe().Partitions {
			if p.Revoking() {
				s.release(p.Partition)
				again = true
			}
		}
	}
}

// tick lets the time pass.
func (s *sim) tick(now int64) {
	s.now = now
	s.do(s.g.Tick(now))
	if at, ok := s.g.NextDeadline(); ok {
		require.Greater(s.t, at, now, "a deadline that has passed")
	}
	for _, own := range s.owned {
		require.False(s.t, own.revoking && own.deadline <= now, "%+v: its deadline has passed", own)
	}
}

// of returns the partitions that a member owns, in order.
func (s *sim) of(id group.MemberID) (all []int) {
	for _, p := range s.g.Describe().Partitions {
		if p.Owner == id {
			all = append(all, p.Index)
		}
	}
	return all
}
