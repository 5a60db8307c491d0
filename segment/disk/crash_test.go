package disk_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

// crashStates is how many states that a power cut may leave are looked at.
const crashStates = 100_000

// TestBUG082_BUG083_PowerCutAnywhere runs random users. Before each operation on a file, and after the last, it looks at what a
// power cut would leave there: what was said to be durable is there with the right bytes, nothing is there that was not
// written, batches are whole, the log can be written, and a second crash, right then or in the middle of recovery, changes
// nothing of that.
func TestBUG082_BUG083_PowerCutAnywhere(t *testing.T) {
	states := crashStates
	if testing.Short() || raceEnabled {
		states /= 20
	}
	seen, ops, users := 0, 0, uint64(0)
	for seen < states {
		u := newUser(users, 0)
		require.NoError(t, u.run(40), "user %d", users)
		seen, ops, users = seen+u.states, ops+u.ops, users+1
	}
	t.Logf("%d states before %d operations of %d users", seen, ops, users)
}

// faultUsers are users to whom faults happen: one whose Write finishes rolls, and one for whom that is done behind it.
var faultUsers = []uint64{0, 1}

// faultsOf are the ways in which an operation fails.
var faultsOf = map[string]vfs.Fault{
	"fails":            {},
	"is done anyway":   {Done: true},
	"is short":         {Keep: 100},
	"is torn":          {Tear: true},
	"loses the pages":  {Lose: true},
	"finds no space":   {Err: vfs.ErrFull},
	"writes the space": {Err: vfs.ErrFull, Keep: 40},
}

// TestFault_AtEachOperation lets each operation of a user's work fail in turn, once and from then on until the user turns to
// Resume or Open.
func TestFault_AtEachOperation(t *testing.T) {
	seeds, step, runs, states := faultUsers, 1, 0, 0
	if testing.Short() || raceEnabled {
		seeds, step = seeds[1:], 7
	}
	for _, seed := range seeds {
		seen := map[state]bool{} // by all of these users, who are the same but for the fault
		for _, name := range slices.Sorted(maps.Keys(faultsOf)) {
			fault := faultsOf[name]
			if fault.Err == nil {
				fault.Err = errBoom
			}
			for _, sticky := range []bool{false, true} {
				for n := 1; ; n += step {
					u, hit, err := sufferFault(seed, 0, fault, n, sticky, seen)
					require.NoError(t, err, "user %d, operation %d %s, sticky %v", seed, n, name, sticky)
					runs, states = runs+1, states+u.states
					if !hit {
						break
					}
				}
			}
		}
	}
	t.Logf("%d runs, %d states", runs, states)
}

// sufferFault runs a user for whom the n-th operation fails, and who does not look at what others have seen. hit is false if there were
// not as many operations.
func sufferFault(seed uint64, flaw disk.Flaw, fault vfs.Fault, n int, sticky bool, seen map[state]bool) (u *user, hit bool, err error) {
	u = newUser(seed, flaw)
	u.seen = seen
	u.quiet = true
	count := 0
	mended := false
	u.fault = func(o vfs.Op) *vfs.Fault {
		if count++; count < n || mended || count > n && !sticky {
			return nil
		}
		hit = true
		return &fault
	}
	// States are looked at only where something has failed.
	err = u.suffer(30, func() { mended = true })
	return u, hit, err
}

// TestMutants puts each flaw into the log in turn, and wants the tests above, or those of damage, to find it.
func TestMutants(t *testing.T) {
	if raceEnabled {
		t.Skip("one goroutine, and long enough as it is")
	}
	require.Len(t, disk.Flaws, disk.FlawCount)
	for _, name := range slices.Sorted(maps.Keys(disk.Flaws)) {
		flaw := disk.Flaws[name]
		find := func() error {
			if err := damageEverywhere(flaw, 7); err != nil {
				return err
			}
			for seed := range uint64(12) {
				u := newUser(seed, flaw)
				u.limit, u.few, u.nested = 12, 2, 40
				if err := u.run(30); err != nil {
					return err
				}
			}
			for _, kind := range []string{"loses the pages", "fails", "is short"} {
				fault := faultsOf[kind]
				fault.Err = errBoom
				for _, seed := range faultUsers {
					seen := map[state]bool{}
					for n := 1; n < 200; n += 3 {
						if _, _, err := sufferFault(seed, flaw, fault, n, n%2 == 0, seen); err != nil {
							return fmt.Errorf("operation %d %s: %w", n, kind, err)
						}
					}
				}
			}
			return nil
		}
		err := find()
		assert.Error(t, err, "nobody noticed the flaw %s", name)
		if err != nil {
			t.Logf("%s: %.120s", name, err)
		}
	}
}
