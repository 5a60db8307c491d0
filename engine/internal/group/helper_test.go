package group_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/group"
)

const (
	alice group.MemberID = iota + 1
	bob
	carol
)

const second = int64(time.Second)

// rounds is how often a long test does something: a hundredth of n with -short.
func rounds(n int) int {
	if testing.Short() {
		return n / 100
	}
	return n
}

// acquire lets a member acquire one record, which must work.
func acquire(t *testing.T, s *group.Shared, m group.MemberID, end uint64, now int64) group.Delivery {
	t.Helper()
	d, outcome := s.Acquire(m, end, now)
	require.Equal(t, group.Acquired, outcome)
	return d
}

// fault returns why a token was refused.
func fault(t *testing.T, err error) group.TokenFault {
	t.Helper()
	var e *group.TokenError
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, group.ErrFenced)
	return e.Reason
}

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

// failure returns the error of a call that returns something else as well.
func failure[A any](_ A, err error) error { return err }
