package load_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
)

// keeper is a direct that says what was left of a partition.
type keeper struct {
	direct
	left func(partition int) (uint64, error)
}

// KeepsFiles implements load.DurableTarget.
func (*keeper) KeepsFiles() {}

func (k *keeper) Open(s load.Scenario) (load.Instance, error) {
	in, err := k.direct.Open(s)
	return survivor{in, k.left}, err
}

type survivor struct {
	load.Instance
	left func(partition int) (uint64, error)
}

func (k survivor) Survived(partition int) (uint64, error) { return k.left(partition) }

// TestRun_Survived: what is not there when the files are opened again is lost, and the first such partition is told.
func TestRun_Survived(t *testing.T) {
	run := func(sync string, left func(int) (uint64, error)) load.Result {
		s := saturating(1, 1, 100)
		s.Partitions, s.Sync = 2, sync
		if sync != "" {
			s.Dir = t.TempDir()
		}
		res, err := load.Run(t.Context(), &keeper{left: left}, s)
		require.NoError(t, err)
		return res
	}
	short := func(partition int) (uint64, error) { return 50 - uint64(partition)*3, nil }
	res := run("always", short)
	assert.Equal(t, load.Faults{Lost: 3}, res.Faults)
	require.ErrorIs(t, res.Err(), load.ErrFaults)
	assert.ErrorContains(t, res.Err(), "first at opened again, partition 1: 47 of 50 messages were there")
	assert.Equal(t, uint64(100), res.Received, "only what was delivered counts")

	res = run("always", func(int) (uint64, error) { return 0, errors.New("damaged") })
	assert.Equal(t, load.Faults{Lost: 100}, res.Faults)
	assert.ErrorContains(t, res.Err(), "damaged")

	require.NoError(t, run("always", func(int) (uint64, error) { return 50, nil }).Err())
	require.NoError(t, run("", short).Err(), "in memory nothing is to survive")

	s := saturating(1, 1, 100)
	s.Sync = "always"
	_, err := load.Run(t.Context(), &direct{}, s)
	require.ErrorIs(t, err, load.ErrNoFiles)
}
