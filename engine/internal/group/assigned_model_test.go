package group_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine/internal/group"
)

// TestAssigned_Model lets everything happen to a group in any order, while the engine that carries out the actions checks
// each of them; and in the end it lets the group come to rest.
func TestAssigned_Model(t *testing.T) { rapid.Check(t, checkAssigned) }

// FuzzAssigned is the same with choices that the fuzzer makes.
func FuzzAssigned(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkAssigned)) }

func checkAssigned(t *rapid.T) {
	second := time.Second
	cfg := group.AssignedConfig{
		Assignor:        rapid.SampledFrom([]group.Assignor{group.Sticky, group.Range, group.RoundRobin}).Draw(t, "assignor"),
		RevokeTimeout:   rapid.SampledFrom([]time.Duration{0, 10, 10, 10}).Draw(t, "revoke timeout") * second,
		ProgressTimeout: rapid.SampledFrom([]time.Duration{0, 5, 30}).Draw(t, "progress timeout") * second,
		Grace:           rapid.SampledFrom([]time.Duration{0, 20}).Draw(t, "grace") * second,
	}
	s := newSim(t, cfg)
	// What has to be drawn from what there is does nothing if there is none.
	member := func(do func(*rapid.T, group.MemberID)) func(*rapid.T) {
		return func(t *rapid.T) {
			if ids := slices.Sorted(maps.Keys(s.alive)); len(ids) > 0 {
				do(t, rapid.SampledFrom(ids).Draw(t, "member"))
			}
		}
	}
	partition := func(revoking bool, do func(*rapid.T, interval)) func(*rapid.T) {
		return func(t *rapid.T) {
			var all []interval
			for _, p := range s.g.Describe().Partitions {
				if p.Owned() && p.Revoking() == revoking {
					all = append(all, s.owned[p.Partition])
				}
			}
			if len(all) > 0 {
				do(t, rapid.SampledFrom(all).Draw(t, "partition"))
			}
		}
	}
	reset := func(t *rapid.T, own interval) {
		s.must(s.g.Reset(own.at, s.now))
		require.NotEqual(t, own.gen, s.owned[own.at].gen)
	}
	topics := rapid.SliceOfDistinct(rapid.SampledFrom(topicNames[:2]), rapid.ID)
	static := map[string]bool{}

	actions := map[string]func(*rapid.T){
		"join": func(t *rapid.T) {
			m := group.Member{
				Name:   rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "name"),
				Static: rapid.Bool().Draw(t, "static"),
				Topics: topics.Draw(t, "topics"),
			}
			exists := false
			for _, d := range s.g.Describe().Members {
				exists = exists || d.Name == m.Name && !d.Leaving
			}
			_, err := s.join(m)
			if exists && !(static[m.Name] && m.Static) {
				require.ErrorIs(t, err, group.ErrMemberExists)
				return
			}
			require.NoError(t, err)
			static[m.Name] = m.Static
		},
		"leave":    member(func(_ *rapid.T, id group.MemberID) { s.must(s.g.Leave(id, s.now)) }),
		"evict":    member(func(_ *rapid.T, id group.MemberID) { s.must(s.g.Evict(id, s.now)) }),
		"progress": member(func(t *rapid.T, id group.MemberID) { require.NoError(t, s.g.Progress(id, s.now)) }),
		"rest":     member(func(t *rapid.T, id group.MemberID) { require.NoError(t, s.g.Rest(id)) }),
		"subscribe": member(func(t *rapid.T, id group.MemberID) {
			actions, err := s.g.Subscribe(id, topics.Draw(t, "topics"), s.now)
			leaving := slices.ContainsFunc(s.g.Describe().Members, func(d group.MemberDescription) bool { return d.ID == id && d.Leaving })
			require.Equal(t, leaving, err != nil)
			s.do(actions)
		}),
		"forget": func(t *rapid.T) {
			for _, d := range s.g.Describe().Members {
				if d.Away {
					s.must(s.g.Forget(d.Name, s.now))
					return
				}
			}
		},
		"more partitions": func(t *rapid.T) {
			topic := rapid.SampledFrom(topicNames[:2]).Draw(t, "topic")
			n := 0
			for _, p := range s.g.Describe().Partitions {
				if p.Topic == topic {
					n++
				}
			}
			s.partitions(topic, n+rapid.IntRange(0, 3).Draw(t, "more"))
		},
		"topic removed": func(t *rapid.T) {
			if rapid.IntRange(0, 5).Draw(t, "one in six") == 0 {
				s.do(s.g.RemoveTopic(rapid.SampledFrom(topicNames[:2]).Draw(t, "topic"), s.now))
			}
		},
		"reset":                partition(false, reset),
		"reset while revoking": partition(true, reset),
		"released":             partition(true, func(_ *rapid.T, own interval) { s.release(own.at) }),
		"released too early": partition(false, func(t *rapid.T, own interval) {
			_, err := s.g.Released(own.at, own.member, own.gen, s.now)
			require.ErrorIs(t, err, group.ErrNotRevoking)
		}),
		"released too late": func(t *rapid.T) {
			if len(s.past) > 0 {
				own := rapid.SampledFrom(s.past).Draw(t, "which")
				_, err := s.g.Released(own.at, own.member, own.gen, s.now)
				s.fenced(err, own)
			}
		},
		"released by another": member(func(t *rapid.T, other group.MemberID) {
			partition(true, func(t *rapid.T, own interval) {
				if other != own.member {
					_, err := s.g.Released(own.at, other, own.gen, s.now)
					var fenced *group.FencedError
					require.ErrorAs(t, err, &fenced)
					require.Equal(t, group.FenceForeign, fenced.Reason)
				}
			})(t)
		}),
		"gone": func(t *rapid.T) {
			if len(s.gone) == 0 {
				return
			}
			id := rapid.SampledFrom(s.gone).Draw(t, "who")
			for _, err := range []error{
				s.g.Progress(id, s.now), s.g.Rest(id), failure(s.g.Leave(id, s.now)), failure(s.g.Evict(id, s.now)),
				failure(s.g.Subscribe(id, nil, s.now)),
			} {
				require.ErrorIs(t, err, group.ErrFenced)
			}
		},
		"time passes": func(t *rapid.T) {
			now := s.now + rapid.Int64Range(0, 15).Draw(t, "seconds")*int64(second)
			overdue := s.g.Overdue(now, nil)
			for _, id := range overdue {
				require.NotEmpty(t, s.alive[id])
			}
			gone := len(s.gone)
			s.tick(now)
			for _, id := range overdue {
				require.Contains(t, s.gone[gone:], id, "overdue, and still there")
			}
		},
		"": func(t *rapid.T) { s.check() },
	}
	for range 3 {
		t.Repeat(actions)
	}

	// Everybody does what is asked for, and nothing else happens.
	s.releaseAll()
	for _, p := range s.g.Describe().Partitions {
		require.False(t, p.Revoking())
		require.Equal(t, p.Target, p.Owner)
	}
	// Members that nobody has to wait for are all that is left once the last deadline has struck.
	for at, ok := s.g.NextDeadline(); ok; at, ok = s.g.NextDeadline() {
		s.tick(max(at, s.now))
		s.releaseAll()
	}
	d := s.g.Describe()
	loads, equal := map[group.MemberID]int{}, true
	for _, m := range d.Members {
		require.False(t, m.Away || m.Leaving)
		loads[m.ID] = m.Owned
		equal = equal && slices.Equal(m.Topics, d.Members[0].Topics)
	}
	for _, p := range d.Partitions {
		wanted := slices.ContainsFunc(d.Members, func(m group.MemberDescription) bool { return slices.Contains(m.Topics, p.Topic) })
		require.Equal(t, wanted, p.Owned(), "%v", p)
	}
	if equal && len(d.Members) > 0 {
		low, high := d.Members[0].Owned, 0
		for _, n := range loads {
			low, high = min(low, n), max(high, n)
		}
		require.LessOrEqual(t, high-low, 1)
	}
	require.Equal(t, len(s.past), s.ends.lost+s.ends.released)
}
