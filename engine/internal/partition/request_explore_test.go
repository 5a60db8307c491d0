//go:build explore

package partition

import (
	"errors"
	"fmt"
	"testing"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
)

// TestExplore_Copied: a publisher of a partition with files against its holder and somebody who cancels.
func TestExplore_Copied(t *testing.T) {
	for _, hang := range []bool{false, true} { // the holder is done only when the publisher has returned: then it must return
		t.Run(fmt.Sprint("hang ", hang), func(t *testing.T) {
			explore.Run(t, explore.Options{Bound: 3, MaxSchedules: 10_000_000}, explore.Scenario{Name: "copied", Setup: func(s *explore.S) {
				r := &request{parker: atomicx.NewParker(), slow: true}
				c := make(chan struct{})
				var bytes, returned atomicx.Uint64
				var taken, in, late bool
				s.Go("publisher", func() {
					in, late = r.await(c, atomicx.Backoff{})
					bytes.Store(1)
					returned.Store(1)
				})
				s.Go("holder", func() {
					if taken = r.take(); !taken {
						return
					}
					explore.Assert(bytes.Load() == 0, "the bytes are the publisher's again")
					r.copy()
					for turn := uint32(0); hang && returned.Load() == 0; turn++ {
						atomicx.Relax(turn)
					}
					r.finish(7, nil)
				})
				s.Go("canceller", func() { s.Close(c) })
				s.Finally(func() error {
					switch {
					case in && late, (in || late) != taken, in && r.off != 7, hang && in:
						return fmt.Errorf("taken %v, in %v, late %v, offset %d", taken, in, late, r.off)
					}
					closed := make(chan struct{})
					close(closed)
					if leftover(r.parker, closed) != 0 {
						return errors.New("a token is left")
					}
					return nil
				})
			}})
		})
	}
}
