package delivery_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
)

// TestSeat_NothingToCommit: a seat of which nothing has been taken does not go to the share to say so. Who polls has one for each
// partition, and commits at all of them before each poll.
func TestSeat_NothingToCommit(t *testing.T) {
	p := newPart(t, partitionSetup{})
	s := newShare(t, p, delivery.ShareConfig{})
	x := s.pull(t, 4)
	p.publish(t, 1)
	require.Len(t, x.take(t, 4), 1)
	x.Commit()
	require.Equal(t, int64(1), s.Position())
	s.Locked(func() {
		x.Commit()
		x.HandIn()
	})
}

// TestShare_CrowdCostsNothing: many seats of which few have anything to do are not gone through each time that one comes, takes,
// commits or leaves. It counts the seats that are looked at.
func TestShare_CrowdCostsNothing(t *testing.T) {
	const many = 1000
	p := newPart(t, partitionSetup{})
	s := newShare(t, p, delivery.ShareConfig{})
	p.publish(t, 10)
	first := s.pull(t, 4)
	require.Len(t, first.take(t, 4), 4)
	walked := 0
	var crowd []*delivery.Seat
	for range many {
		x := s.NewSeat(delivery.SeatConfig{Slots: 1, Notify: func() {}})
		x.Start()
		crowd = append(crowd, x)
		walked += s.Walk()
	}
	assert.LessOrEqual(t, walked, 4*many)
	s.check(t)
	for range 2 {
		first.Commit()
		first.take(t, 4)
	}
	first.Commit()
	walked = 0 // all wait, for what is not there
	for _, x := range crowd {
		_, _, err := x.Take(nil, 1)
		require.NoError(t, err)
		walked += s.Walk()
	}
	assert.LessOrEqual(t, walked, 4*many)
	s.check(t)
	rand.Shuffle(many, func(i, j int) { crowd[i], crowd[j] = crowd[j], crowd[i] })
	for _, x := range crowd {
		x.Stop(errOver)
		x.Leave()
		x.Leave()
		require.NoError(t, s.Check(false))
	}
	assert.LessOrEqual(t, s.Walk(), 1, "nobody has anything")
}
