package target

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/baseline"
	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/stream"
)

// TestMemory_Refused: what a target must hold at the least is bounded, and what is too much is refused with the size that is not.
func TestMemory_Refused(t *testing.T) {
	bound := regexp.MustCompile(`size is \d+: with \d+ partitions.*, each of which holds some messages, it must be 24 to (\d+), or partitions fewer`)
	for _, x := range []struct {
		engine                              load.Target
		partitions, size, stages, producers int
		publish                             string
		group                               load.Group
	}{
		{engine: Leat{}, partitions: 8192, size: 1 << 20},
		{engine: Leat{}, partitions: 8192, size: 1 << 20, publish: "batch"},
		{engine: Leat{}, partitions: 8, size: 1 << 20, publish: "batch", producers: 4096},
		{engine: Leat{}, partitions: 64, size: 10 << 20, stages: 16},
		{engine: Leat{}, partitions: 65536, size: 20_000},
		{engine: Leat{}, partitions: 8192, size: 100_000, group: load.Group{Kind: load.Assigned, Members: 4}},
		{engine: Chan{}, partitions: 8192, size: 1 << 20},
		{engine: Chan{}, partitions: 1024, size: 1 << 20, stages: 16},
		{engine: MutexLog{}, partitions: 8192, size: 1 << 20},
	} {
		name := fmt.Sprintf("%+v", x)
		s := load.Scenario{
			Producers: max(x.producers, 3), Partitions: x.partitions, Size: x.size, Stages: x.stages, Publish: x.publish, Group: x.group, Duration: 1e9,
		}
		if x.group.Kind == "" {
			s.Readers = 1
		}
		err := load.Check(x.engine, s)
		require.ErrorIs(t, err, load.ErrUnsupported, name)
		m := bound.FindStringSubmatch(err.Error())
		require.NotNil(t, m, "%s: %v", name, err)
		most, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		assert.GreaterOrEqual(t, most, load.MinSize, name)
		s.Size = most
		require.NoError(t, load.Check(x.engine, s), name)
		s.Size++
		require.Error(t, load.Check(x.engine, s), name)
		_, err = x.engine.Open(s)
		require.ErrorIs(t, err, load.ErrUnsupported, "%s: nor can it be opened", name)
	}
}

// TestMemory_Bounded: whatever is not refused, what a target may hold of messages is a few times what all of them are to hold together.
func TestMemory_Bounded(t *testing.T) {
	for _, partitions := range []int{1, 2, 100, 1024, 8192, 65536} {
		for _, size := range []int{24, 64, 1000, 10_000, 100_000, 1 << 20, 1 << 28} {
			for _, stages := range []int{1, 16} {
				for _, producers := range []int{1, 3, 100} {
					s := load.Scenario{
						Producers: producers, Partitions: partitions, Size: size, Stages: stages, Readers: 1, Duration: 1e9, Publish: "batch",
					}
					var err error
					if s.Sizes, err = stream.ParseSizes(strconv.Itoa(size), load.MinSize); err != nil {
						t.Fatal(err)
					}
					if load.Check(Leat{}, s) == nil {
						keep, err := keeps(&s)
						require.NoError(t, err)
						assert.LessOrEqual(t, keep*places(&s), int64(fitMost))
						b, err := (&leat{s: s, publish: "batch"}).Producer(0)
						require.NoError(t, err)
						batches, ok := b.(*leatBatches)
						require.True(t, ok)
						assert.LessOrEqual(t, int64(batches.most*size)*int64(producers*partitions), int64(fitMost), "%+v", s)
					}
					s.Publish = ""
					if load.Check(Chan{}, s) == nil {
						n := int64(holds(places(&s), mean(&s)+sliceBytes, baseline.Capacity, heldLeast))
						assert.LessOrEqual(t, n*places(&s)*int64(size), int64(fitMost))
						n = int64(holds(places(&s), mean(&s)+sliceBytes, mutexLogLimit, heldLeast))
						assert.LessOrEqual(t, n*places(&s)*int64(size), int64(fitMost))
					}
				}
			}
		}
	}
}

// TestMemory_Windows: however many read, and read again, the records that they take at once are bounded.
func TestMemory_Windows(t *testing.T) {
	for _, readers := range []int{0, 1, 10_000} {
		for _, replays := range []int{0, 1, 10_000} {
			for _, partitions := range []int{1, 13, 65536} {
				s := load.Scenario{Producers: 1, Partitions: partitions, Readers: readers, Replays: replays, Duration: 1e9}
				if s.Validate() != nil {
					continue
				}
				n := (&leat{s: s}).window() * (readers + replays) * partitions
				assert.LessOrEqual(t, n, leatFew*leatWindows+leatWindow, "%+v", s)
			}
		}
	}
	assert.Equal(t, leatWindow, (&leat{s: load.Scenario{Partitions: 2, Readers: 3, Stages: 1, Replays: 4}}).window())
}

// TestMemory_AsEver: no scenario that has a name holds less for it.
func TestMemory_AsEver(t *testing.T) {
	for _, s := range slices.Concat(load.Scenarios(), load.DurableScenarios(), load.GroupScenarios()) {
		if s.Sizes.Most() > 0 {
			s.Size = s.Sizes.Most()
		}
		bytes := int64(max(s.Size, 64)) * int64(max(s.Consumers(), 1))
		assert.Equal(t, leatBatch, holds(int64(s.Producers)*int64(s.Partitions), bytes, leatBatch, 1), s.Name)
		assert.Equal(t, baseline.Capacity, holds(places(&s), bytes+sliceBytes, baseline.Capacity, heldLeast), s.Name)
		if s.Sizes.Most() > 0 {
			bytes = mean(&s)
		}
		if s.Name != "big-messages" { // which would be 8 GiB
			assert.Equal(t, mutexLogLimit, holds(places(&s), bytes+sliceBytes, mutexLogLimit, heldLeast), s.Name)
		}
		assert.Equal(t, int64(leatBytes), kept(&s)-max(0, 64*int64(s.Size)-leatBytes), s.Name)
	}
}
