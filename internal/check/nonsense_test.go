package check_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/leatlog/leat/internal/check"
	"github.com/stretchr/testify/require"
)

// TestCheck_Nonsense: whatever a history says, Check comes to an end, and its report can be printed.
func TestCheck_Nonsense(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	offset := func() int64 {
		switch rng.IntN(20) {
		case 0:
			return math.MaxInt64 - rng.Int64N(3)
		case 1:
			return -1
		case 2:
			return math.MinInt64
		case 3:
			return 1 << 40
		}
		return rng.Int64N(12)
	}
	for range seeds(500) {
		h := &check.History{
			Partitions: []check.PartitionInfo{{Name: "a"}, {Name: "b", Copies: rng.IntN(2) == 0, First: offset()}},
			Members:    []string{"x"},
		}
		for range 4 {
			h.Consumers = append(h.Consumers, check.ConsumerInfo{Config: check.ConsumerConfig{
				Kind: check.ConsumerKind(rng.IntN(3)), Mode: check.Mode(rng.IntN(4)), ByKey: rng.IntN(2) == 0,
				MaxDeliveries: rng.IntN(3), AckWait: 1, Protected: rng.IntN(2) == 0,
			}})
		}
		for range 1 + rng.IntN(60) {
			o := check.Op{
				Kind: check.Kind(rng.IntN(int(check.OpCounter) + 1)), Res: check.Res(rng.IntN(3)), Final: rng.IntN(5) == 0, Attempt: rng.Int32N(4),
				Part: check.Partition(rng.Int32N(4) - 1), Consumer: check.Consumer(rng.IntN(6)), Member: check.Member(rng.IntN(3)),
				Gen: rng.Uint64N(5), Epoch: rng.Uint64N(3), Call: rng.Int64N(100), Off: offset(), To: offset(),
				Val: rng.Uint64N(3)<<40 | rng.Uint64N(20), Key: rng.Uint64N(3), Batch: rng.Uint32N(4), Log: rng.Int32N(3),
			}
			if o.Ret = o.Call + rng.Int64N(20); rng.IntN(10) == 0 {
				o.Ret = check.Never
			}
			if o.Kind == check.OpPoll || o.Kind == check.OpHandle {
				for range rng.IntN(4) {
					o.Recs = append(o.Recs, check.Rec{Off: offset(), Val: rng.Uint64N(3)<<40 | rng.Uint64N(20), Key: rng.Uint64N(3),
						Bad: check.Damage(rng.IntN(20))})
				}
			}
			h.Ops = append(h.Ops, o)
		}
		r := h.Check(check.Options{Durability: check.Durability(rng.IntN(3)), Interval: 3})
		require.NotEmpty(t, r.String())
		require.Equal(t, len(r.Findings) == 0, r.Ok())
	}
}
