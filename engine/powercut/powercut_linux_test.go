package powercut_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/testkit"
)

var (
	imagesFlag = flag.Int("images", 0, "power cuts for each file system; 0 is 200, or 30 with -short")
	seedFlag   = flag.Uint64("seed", 0, "decides what is published and where the power is cut; 0 is by chance")
	keepFlag   = flag.String("keep", "", "directory for the images of failures")
)

// run is a story that has been lived through, with what the disk was told meanwhile.
type run struct {
	*story
	sys    system
	seed   uint64
	before *image // of the disk, when the first thing happened
	log    []event
	keep   string // where images go in which something is wrong; or nowhere
}

// seed returns the flag, or a seed by chance, and prints it.
func seed(t testing.TB) uint64 {
	s := *seedFlag
	if s == 0 {
		s = 1 + rand.Uint64N(1e6)
	}
	t.Logf("-seed %d", s)
	return s
}

// lived lives through a story on a file system.
func lived(t testing.TB, sys system, empty *image, seed uint64) *run {
	t.Helper()
	d := sys.stand(t, empty)
	s := &story{position: d.position}
	require.NoError(t, (&author{s, filepath.Join(d.dir, folderName), seed, rounds()}).write())
	r := &run{story: s, sys: sys, seed: seed, before: d.before, log: d.events()}
	require.NoError(t, d.stop())
	return r
}

// verdict is what was found in the image of a power cut.
type verdict struct {
	cut cut
	err error
}

// check looks at the images of power cuts, several at a time, until stop says that it is enough. Of every tenth the power is cut again
// while the engine recovers, in several ways, if again is true.
func (r *run) check(t testing.TB, j judge, all []cut, again bool, stop func(verdict) bool) (seen int) {
	t.Helper()
	step := testkit.Steps(t)
	type job struct {
		i  int
		c  cut
		im *image
	}
	jobs, verdicts, enough := make(chan job), make(chan []verdict), make(chan struct{})
	var wg sync.WaitGroup
	workers := 4 // most of the time they wait for the kernel
	if r.sys.alone {
		workers = 1
	}
	for range workers {
		base := t.TempDir()
		wg.Go(func() {
			for x := range jobs {
				v := []verdict{{x.c, r.image(j, x.c.at+r.lag(x.c), x.im, base)}}
				if again && x.i%10 == 0 && v[0].err == nil {
					v = append(v, r.again(j, x.c, x.im, base)...)
				}
				verdicts <- v
			}
		})
	}
	go func() {
		images(r.before, r.log, all, func(i int, c cut, im *image) bool {
			select {
			case jobs <- job{i, c, im}:
				return true
			case <-enough:
				return false
			}
		})
		close(jobs)
		wg.Wait()
		close(verdicts)
	}()
	over := false
	for list := range verdicts {
		step()
		for _, v := range list {
			seen++
			if stop(v) && !over {
				over = true
				close(enough)
			}
		}
	}
	return seen
}

// lag returns by how much the disk lied about where it was.
func (r *run) lag(c cut) (n int) {
	for lies := c.lie; c.at+n < len(r.log) && lies > 0; n++ {
		if r.log[c.at+n].flush {
			lies--
		}
	}
	return n
}

// image checks what one image holds.
func (r *run) image(j judge, at int, im *image, base string) error {
	dir := filepath.Join(base, "mount")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	err := r.sys.withImage(im, dir, func(dir string) error { return j.matches(r.story, filepath.Join(dir, folderName), at) })
	if err != nil && r.keep != "" {
		err = errors.Join(err, keep(im, filepath.Join(r.keep, fmt.Sprintf("%s-%d-%d.img", r.sys.name, r.seed, at))))
	}
	return err
}

// keep writes an image.
func keep(im *image, name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(im.bytes()), im.writeTo(f), f.Close())
}

// again lets an engine recover from a power cut and publish, cuts the power again meanwhile, in several ways, and looks at what is left.
func (r *run) again(j judge, c cut, im *image, base string) (all []verdict) {
	rng := rand.New(rand.NewPCG(c.seed, 2))
	log, from, told, err := r.recover(j, c, im, base)
	if err != nil {
		return []verdict{{c, fmt.Errorf("recovering: %w", err)}}
	}
	images(im, log, cuts(log, from, 4, r.sys.whole, rng), func(_ int, second cut, im *image) bool {
		j.least = func(s spot) int {
			if at, ok := told[s]; ok && s.sync == engine.Always && at <= second.at {
				return 1
			}
			return 0
		}
		err := r.image(j, c.at, im, base)
		if err != nil {
			err = fmt.Errorf("power cut at %d of %d of the recovery (sure: %d, %v): %w", second.at, len(log), second.since, second.mode, err)
		}
		all = append(all, verdict{c, err})
		return true
	})
	return all
}

// recover lets an engine recover, and publish to each partition. It returns what the disk was told meanwhile, how much of that was
// the recovery of the file system, which is not ours to test, and how much had been when each of the records was acknowledged.
func (r *run) recover(j judge, c cut, im *image, base string) (log []event, from int, told map[spot]int, err error) {
	d, err := r.sys.start(im, filepath.Join(base, "again"))
	if err != nil {
		return nil, 0, nil, err
	}
	from = d.position()
	defer func() { err = errors.Join(err, d.stop()) }()
	told = map[spot]int{}
	j.told = func(s spot) { told[s] = d.position() }
	_, err = j.look(r.story, filepath.Join(d.dir, folderName), c.at, 0)
	return d.events(), from, told, err
}

// budget returns how many images there are to be.
func budget() int {
	switch {
	case *imagesFlag > 0:
		return *imagesFlag
	case testing.Short():
		return 30
	}
	return 200
}

// rounds returns how much there is to happen before.
func rounds() int {
	if testing.Short() {
		return 8
	}
	return 24
}

// TestPowerCut cuts the power below an engine that has been doing everything that there is to do with durable topics, and looks at what
// is left. Then it does so in ways in which something must be found.
func TestPowerCut(t *testing.T) {
	requireMounts(t)
	for _, sys := range systems {
		t.Run(sys.name, func(t *testing.T) {
			begun := time.Now()
			empty := sys.make(t)
			r := lived(t, sys, empty, seed(t))
			flushes := 0
			for _, e := range r.log {
				if e.flush {
					flushes++
				}
			}
			require.Greater(t, flushes, 100, "the file system does not flush")
			t.Logf("%d writes and %d flushes in %v", len(r.log)-flushes, flushes, time.Since(begun))
			t.Run("holds", r.holds)
			t.Run("planted", r.planted)
		})
	}
}

// holds checks that everything is there that has to be.
func (r *run) holds(t *testing.T) {
	begun, failed := time.Now(), 0
	all := cuts(r.log, r.start(), budget(), r.sys.whole, rand.New(rand.NewPCG(r.seed, 3)))
	kept := *r
	kept.keep = *keepFlag
	n := kept.check(t, judge{}, all, true, func(v verdict) bool {
		if v.err != nil {
			failed++
			t.Errorf("-seed %d: power cut at %d of %d (sure: %d, %v): %v", r.seed, v.cut.at, len(r.log), v.cut.since, v.cut.mode, v.err)
		}
		return failed >= 5
	})
	t.Logf("%d images, of which %d were cut off again while an engine recovered, in %v", n, n-len(all), time.Since(begun))
}

// start returns the position from which on there may be something in the engine's directory.
func (r *run) start() int { return r.topics[0].begun }

// planted proves that holds would have found something.
func (r *run) planted(t *testing.T) {
	const most = 40 // images to look at until something has to be found
	rng := rand.New(rand.NewPCG(r.seed, 4))
	honest := func() []cut { return cuts(r.log, r.start(), most, r.sys.whole, rng) }
	for _, x := range []struct {
		name string
		j    judge
		cuts []cut
	}{
		{"an engine that does not sync", judge{neverIsSafe: true}, honest()},
		{"an acknowledgement before the sync", judge{tooEarly: true}, honest()},
		{"a disk that lies about the last flushes", judge{}, lies(honest(), 4)},
	} {
		t.Run(x.name, func(t *testing.T) {
			r.mustFind(t, x.j, x.cuts, lossy)
		})
	}
	t.Run("a file system that does not flush the disk", func(t *testing.T) {
		if r.sys.careless == "" {
			t.Skipf("%s has no option for that", r.sys.name)
		}
		careless := r.sys
		careless.options += "," + r.sys.careless
		r := lived(t, careless, r.before, r.seed)
		all := cuts(r.log, r.start(), most, r.sys.whole, rng)
		for i := range all { // a beginning of all: the file system is in order, and older than it should be
			all[i].mode, all[i].since = keepFirst, min(all[i].since, r.start())
		}
		r.mustFind(t, judge{}, all, lossy)
	})
	t.Run("a disk with bad sectors", func(t *testing.T) {
		for _, one := range []int{50, 7, 1} { // if few are bad they may all be in records that nobody has been promised
			worn := *r
			worn.log = slices.Clone(r.log)
			worn.lose(rng, one)
			if worn.finds(t, judge{}, honest(), func(error) bool { return true }) {
				return
			}
		}
		t.Errorf("in none of %d images, though all sectors are bad in which records are", most)
	})
}

// lossy reports whether an error is about sound files in which something is missing.
func lossy(err error) bool { return !refused(err) && !errors.Is(err, errMount) }

// mustFind looks until it has found something of the right kind.
func (r *run) mustFind(t *testing.T, j judge, all []cut, right func(error) bool) {
	require.True(t, r.finds(t, j, all, right), "in none of %d images", len(all))
}

// finds reports whether there is something of the right kind.
func (r *run) finds(t *testing.T, j judge, all []cut, right func(error) bool) (found bool) {
	n := r.check(t, j, all, false, func(v verdict) bool {
		if v.err != nil && right(v.err) && !found {
			t.Logf("power cut at %d: %v", v.cut.at, v.err)
			found = true
		}
		return found
	})
	t.Logf("looked at %d images", n)
	return found
}

// lies returns cuts after which the disk has not what it said was safe.
func lies(all []cut, flushes int) []cut {
	for i := range all {
		all[i].lie = flushes
	}
	return all
}

// magic is how a frame of records begins.
var magic = [4]byte{0xf5, 0x4c, 0x66, 0x42}

// lose makes one in so many of the sectors in which frames of records begin read as zeroes, whatever is written there.
func (r *run) lose(rng *rand.Rand, one int) {
	bad := map[int64]bool{}
	for i, e := range r.log {
		for at := 0; at+sectorBytes <= len(e.data); at += sectorBytes {
			sector := e.data[at : at+sectorBytes]
			if !frameIn(sector) {
				continue
			}
			off := e.off + int64(at)
			if _, known := bad[off]; !known {
				bad[off] = rng.IntN(one) == 0
			}
			if bad[off] {
				r.log[i].data = slices.Clone(r.log[i].data)
				clear(r.log[i].data[at : at+sectorBytes])
			}
		}
	}
}

// frameIn reports whether a frame begins in a sector.
func frameIn(sector []byte) bool {
	for at := 0; at < len(sector); at += 8 {
		if [4]byte(sector[at:at+4]) == magic {
			return true
		}
	}
	return false
}
