package target

import (
	"fmt"
	"sort"

	"github.com/leatlog/leat/bench/load"
)

const (
	// holdMost is how many bytes of messages a target may hold for what is on its way, all together. Where there are so many partitions,
	// or messages are so large, that it would be more, each place holds fewer.
	holdMost = 2 << 30
	// fitMost is how many bytes it may need though each place holds as few as it can. What takes more is refused.
	fitMost = 8 << 30
	// heldLeast is how many messages the rivals hold in each partition at the least, and sliceBytes what a slice takes besides its bytes.
	heldLeast  = 4
	sliceBytes = 24
)

// holds returns how many messages of so many bytes each of the places may hold: as many as are wanted, or as few as fit.
func holds(places, bytes int64, want, least int) int {
	return max(least, int(min(int64(want), holdMost/max(places*bytes, 1))))
}

// fits refuses a scenario whose messages are so large that a target has no room for the few of them that it must hold. It takes what the
// target needs for messages of a size.
func fits(s *load.Scenario, needs func(size int64) int64) error {
	if needs(int64(s.Size)) <= fitMost {
		return nil
	}
	most := sort.Search(s.Size, func(size int) bool { return needs(int64(size)) > fitMost }) - 1
	also := ""
	if s.Stages > 1 {
		also = fmt.Sprintf(" in each of %d stages", s.Stages)
	}
	if s.Publish == "batch" {
		also += fmt.Sprintf(", for which %d producers collect batches", s.Producers)
	}
	return fmt.Errorf("%w: size is %d: with %d partitions%s, each of which holds some messages, it must be %d to %d, or partitions fewer",
		load.ErrUnsupported, s.Size, s.Partitions, also, load.MinSize, most)
}

// places returns in how many places a scenario's messages are: each partition of each stage.
func places(s *load.Scenario) int64 { return int64(s.Partitions) * int64(max(s.Stages, 1)) }

// mean returns how large messages are in the mean, and so what many of them take.
func mean(s *load.Scenario) int64 { return max(int64(s.Sizes.Mean()), 1) }
