package disk_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

// ledger is what the user of a log has been told.
type ledger struct {
	lives         []uint32 // by offset: which life of the record at that offset was written last
	ends          []bool   // by offset: a batch may end there
	durable       uint64   // below are records that must survive
	written       uint64   // below are records that Write has taken
	tried         uint64   // below are records that may be found
	low, lowTried uint64   // where the log begins, or may begin
	epoch         uint64   // of the last open that succeeded
	life          uint32
}

// clone returns a copy.
func (l ledger) clone() ledger {
	l.lives, l.ends = slices.Clone(l.lives), slices.Clone(l.ends)
	return l
}

// sum returns a hash of it.
func (l *ledger) sum() uint64 {
	b, _ := binary.Append(nil, binary.LittleEndian, l.lives)
	b, _ = binary.Append(b, binary.LittleEndian, l.ends)
	b, _ = binary.Append(b, binary.LittleEndian, []uint64{l.durable, l.written, l.tried, l.low, l.lowTried, l.epoch, uint64(l.life)})
	return maphash.Bytes(seed, b)
}

// seed is that of the sums of ledgers.
var seed = maphash.MakeSeed()

// attempt notes a batch that may be found from now on.
func (l *ledger) attempt(first uint64, n int) {
	l.lives, l.ends = l.lives[:first], l.ends[:first+1]
	for range n {
		l.lives = append(l.lives, l.life)
		l.ends = append(l.ends, false)
	}
	l.tried = first + uint64(n)
	l.ends[l.tried] = true
}

// matches says what is wrong with an open log, given what the user knows.
func (l *ledger) matches(log *disk.Log) error {
	first, next := log.First(), log.Next()
	switch {
	case next < l.durable:
		return fmt.Errorf("durable records lost: the log ends at %d, not %d", next, l.durable)
	case next > l.tried:
		return fmt.Errorf("records from nowhere: the log ends at %d, not %d", next, l.tried)
	case !l.ends[next]:
		return fmt.Errorf("half a batch: the log ends at %d", next)
	case first < l.low || first > l.lowTried:
		return fmt.Errorf("the log begins at %d, not [%d, %d]", first, l.low, l.lowTried)
	case log.Epoch() <= l.epoch:
		return fmt.Errorf("epoch %d again", log.Epoch())
	}
	got, err := lives(log, first)
	if err != nil {
		return fmt.Errorf("reading [%d, %d): %w", first, next, err)
	}
	if !slices.Equal(got, l.lives[first:next]) {
		return fmt.Errorf("other records: %v, not %v", got, l.lives[first:next])
	}
	return nil
}

// opened notes what an open, or a Resume, has found.
func (l *ledger) opened(log *disk.Log) {
	next := log.Next()
	l.lives, l.ends = l.lives[:next], l.ends[:next+1]
	l.durable, l.written, l.tried = next, next, next
	l.low, l.lowTried = log.First(), log.First()
	l.epoch = log.Epoch()
	l.life++
}

// user works with a log on a file system in memory, and looks what a power cut would leave.
type user struct {
	mem   *vfs.Mem
	rng   *rand.Rand
	led   ledger
	log   *disk.Log
	cfg   disk.Config
	fault func(vfs.Op) *vfs.Fault // what goes wrong, if anything

	limit, few int // states to look at before a sync, and before other operations
	states     int
	wrong      error // the first violation
	syncing    bool
	nested     int  // one state of so many is crashed again while it is recovered; 0: none
	quiet      bool // states are looked at only where the test says so
	ops        int
	looking    bool // nothing goes wrong: the test looks
	seen       map[state]bool
	rests      []func()
}

// state is all that decides what survives finds: what there is, and what the user knows.
type state struct{ files, ledger uint64 }

// newUser returns a user. flaws make the log wrong.
func newUser(seed uint64, flaw disk.Flaw) *user {
	u := &user{mem: vfs.NewMem(), rng: rand.New(rand.NewPCG(seed, 1)), limit: 64, few: 3, nested: 50,
		seen: map[state]bool{}}
	u.led.ends = []bool{true}
	u.cfg = disk.Broken(small(vfs.NewFaulty(u.mem, u.before)), flaw)
	u.cfg.SegmentBytes += int64(u.rng.IntN(3)) * 1000
	if seed%3 > 0 {
		u.cfg.Behind = func(rest func()) { u.rests = append(u.rests, rest) } // which has time until somebody needs it
	}
	return u
}

// before is called before each operation on a file.
func (u *user) before(o vfs.Op) *vfs.Fault {
	if o.Kind.Changes() {
		limit := u.few
		if o.Kind == vfs.OpSync || o.Kind == vfs.OpSyncDir {
			limit = u.limit
		}
		u.ops++
		if !u.quiet {
			u.crash(limit)
		}
		if u.syncing && o.Kind == vfs.OpSync && u.rng.IntN(2) == 0 {
			u.syncing = false
			f := u.log.Files()
			if f := f[len(f)-1]; f.Bytes+disk.SealRoom+800 < u.cfg.SegmentBytes && u.fault == nil && sameFile(f.Name, o.Name) {
				return u.writeBeside()
			}
		}
	}
	if u.fault != nil && !u.looking {
		return u.fault(o)
	}
	return nil
}

// sameFile reports whether two names are those of one file, one of them maybe before it had its name.
func sameFile(a, b string) bool {
	return strings.TrimSuffix(a, vfs.TempExt) == strings.TrimSuffix(b, vfs.TempExt)
}

// writeBeside writes a batch when a sync has been done, and has not returned yet.
func (u *user) writeBeside() *vfs.Fault {
	files := u.log.Files()
	f, err := u.mem.Open(files[len(files)-1].Name) // the operation has the name under which it was made
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = u.write(1 + u.rng.IntN(3))
	}
	u.fail(err)
	return &vfs.Fault{} // it has been done
}

// matches says what is wrong with the log, without faults on the way.
func (u *user) matches(led *ledger) error {
	u.looking = true
	defer func() { u.looking = false }()
	return led.matches(u.log)
}

// fail notes a violation.
func (u *user) fail(err error) {
	if u.wrong == nil && err != nil {
		u.wrong = err
	}
}

// crash looks at what a power cut now would leave.
func (u *user) crash(limit int) {
	for after := range u.mem.Crashes(limit, u.rng.Uint64()) {
		if u.wrong != nil {
			return
		}
		u.states++
		if u.nested > 0 && u.states%u.nested == 0 {
			u.fail(u.doubleCrash(after))
		}
		u.fail(u.survives(after))
	}
}

// survives says what is wrong with the log on a file system as a power cut has left it. The user goes on there. Most states are left
// at several moments; each is looked at once.
func (u *user) survives(m *vfs.Mem) error {
	x := state{m.Sum(), u.led.sum()}
	if u.seen[x] {
		return nil
	}
	u.seen[x] = true
	c := u.cfg
	c.FS = m
	if c.Behind != nil {
		c.Behind = func(func()) {} // whoever needs it does it
	}
	led := u.led.clone()
	l, err := disk.Open(dir, c)
	if err != nil {
		return fmt.Errorf("open after a crash: %w\n%s", err, m)
	}
	if err := led.matches(l); err != nil {
		return fmt.Errorf("after a crash: %w", err)
	}
	if bad := l.Recovery().Mended; bad != nil {
		return fmt.Errorf("after a crash: files without a sound end: %s", bad)
	}
	led.opened(l)
	for range 2 {
		led.attempt(l.Next(), 3)
		if _, err := l.Write(batch(l.Next(), 3, led.life)); err != nil {
			return fmt.Errorf("write after a crash: %w", err)
		}
	}
	if led.durable, err = l.Sync(); err != nil {
		return fmt.Errorf("sync after a crash: %w", err)
	}
	_ = l.Abandon()

	c.FS = m.Crash(func(int) bool { return false }) // the worst
	if l, err = disk.Open(dir, c); err != nil {
		return fmt.Errorf("open after a second crash: %w", err)
	}
	if err := led.matches(l); err != nil {
		return fmt.Errorf("after a second crash: %w", err)
	}
	led.opened(l)
	if err := l.Close(); err != nil {
		return fmt.Errorf("close after a second crash: %w", err)
	}
	if l, err = disk.Open(dir, c); err != nil {
		return fmt.Errorf("third open: %w", err)
	}
	if err := led.matches(l); err != nil {
		return fmt.Errorf("at the third open: %w", err)
	}
	return l.Abandon()
}

// doubleCrash recovers a file system, and looks what a power cut in the middle of that would leave.
func (u *user) doubleCrash(m *vfs.Mem) error {
	m = m.Crash(func(int) bool { return true })
	c := u.cfg
	var wrong error
	c.FS = vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if o.Kind.Changes() && wrong == nil {
			for after := range m.Crashes(8, u.rng.Uint64()) {
				u.states++
				if err := u.survives(after); err != nil && wrong == nil {
					wrong = fmt.Errorf("crash during recovery, before %s: %w", o, err)
				}
			}
		}
		return nil
	})
	l, err := disk.Open(dir, c)
	if err != nil {
		return err
	}
	_ = l.Abandon()
	return wrong
}

// open opens the log.
func (u *user) open() (err error) {
	u.log, err = disk.Open(dir, u.cfg)
	if err != nil {
		u.log = nil
		return err
	}
	u.fail(u.matches(&u.led))
	u.led.opened(u.log)
	return nil
}

// write writes a batch.
func (u *user) write(n int) error {
	first := u.led.written
	u.led.attempt(first, n)
	got, err := u.log.Write(batch(first, n, u.led.life))
	if err != nil {
		return err
	}
	if got != first {
		u.fail(fmt.Errorf("written at %d, not %d", got, first))
	}
	u.led.written = u.led.tried
	return nil
}

// step does something.
func (u *user) step() (err error) {
	if u.log == nil {
		return u.open()
	}
	switch k := u.rng.IntN(100); {
	case k < 5 && len(u.rests) > 0:
		rest := u.rests[0]
		u.rests = u.rests[1:]
		rest()
		err = u.log.Err()
	case k < 12 && u.cfg.Behind != nil:
		err = u.write(14) // rolls soon
	case k < 50:
		err = u.write(1 + u.rng.IntN(1+u.rng.IntN(9)))
	case k < 75:
		u.syncing = true
		_, err = u.log.Sync()
		u.syncing = false
	case k < 80:
		if err = u.log.Roll(); err == nil && u.log.Durable() != u.led.written {
			u.fail(errors.New("not durable after Roll"))
		}
	case k < 88:
		below := u.led.low + u.rng.Uint64N(u.led.written-u.led.low+1)
		u.led.lowTried = max(below, u.led.lowTried)
		if err = u.log.Trim(below); err == nil {
			u.led.low = below
		}
	case k < 94:
		if err = u.log.Close(); err == nil {
			u.led.durable = u.led.written
			u.log = nil
		}
	default:
		err = u.log.Abandon()
		u.log = nil
		written := u.led.written
		if err == nil {
			err = u.open()
		}
		if err == nil {
			u.fail(u.kept(written))
		}
	}
	if u.log != nil {
		u.led.durable = max(u.led.durable, u.log.Durable())
		if n := u.log.Next(); n != u.led.written {
			u.fail(fmt.Errorf("Next is %d, not %d", n, u.led.written))
		}
	}
	return err
}

// kept says what is wrong if the log does not have all that was written, though there was no power cut.
func (u *user) kept(written uint64) error {
	if next := u.log.Next(); next < written {
		return fmt.Errorf("the log ends at %d, not %d, and there was no power cut", next, written)
	}
	return nil
}

// run does so many steps. Nothing may fail.
func (u *user) run(steps int) error {
	for range steps {
		if err := u.step(); err != nil {
			u.fail(fmt.Errorf("nothing was wrong: %w", err))
		}
		if u.wrong != nil {
			break
		}
	}
	u.crash(u.limit)
	return u.wrong
}

// suffer does so many steps, in which something may fail. Then the user resumes, or opens the log anew.
func (u *user) suffer(steps int, mend func()) error {
	for range steps {
		if u.wrong != nil {
			break
		}
		err := u.step()
		if err == nil {
			continue
		}
		// What there is already must be sound, should the power go now.
		u.crash(6)
		mend()
		if u.log != nil && u.rng.IntN(2) == 0 && u.log.Err() != nil && !errors.Is(u.log.Err(), disk.ErrClosed) {
			if n := u.log.Next(); n != u.led.written {
				u.fail(fmt.Errorf("it failed, and Next is %d, not %d", n, u.led.written))
			}
			if err := u.log.Resume(); err != nil {
				u.fail(fmt.Errorf("Resume: %w", err))
				break
			}
			u.led.tried = u.led.written // a batch that was refused is gone
			if err := u.matches(&u.led); err != nil {
				u.fail(fmt.Errorf("after Resume: %w", err))
			}
			u.fail(u.kept(u.led.written))
			u.led.opened(u.log)
		} else {
			if u.log != nil {
				_ = u.log.Abandon()
			}
			written := u.led.written
			if err := u.open(); err != nil {
				u.fail(fmt.Errorf("open after a fault: %w", err))
				break
			}
			u.fail(u.kept(written))
		}
		u.crash(6)
	}
	mend()
	if u.wrong == nil && u.log == nil {
		if err := u.open(); err != nil {
			u.fail(fmt.Errorf("last open: %w", err))
		}
	}
	if u.wrong == nil {
		if err := u.matches(u.led.withEpoch(u.log)); err != nil {
			u.fail(err)
		}
	}
	u.crash(12)
	return u.wrong
}

// withEpoch returns a ledger for a log that has been open since.
func (l ledger) withEpoch(log *disk.Log) *ledger {
	l.epoch = log.Epoch() - 1
	return &l
}
