package powercut_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// all returns the bytes of an image.
func (im *image) all() []byte {
	b := make([]byte, im.bytes())
	im.read(b, 0)
	return b
}

// TestImage_Clone compares images that share pages with slices of bytes that share nothing.
func TestImage_Clone(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	ims, want := []*image{newImage(4 * pageBytes)}, [][]byte{make([]byte, 4*pageBytes)}
	for range 300 {
		i := rng.IntN(len(ims))
		b, off := make([]byte, rng.IntN(2*pageBytes)), rng.IntN(4*pageBytes)
		for k := range b {
			b[k] = byte(rng.Uint32())
		}
		ims[i].write(b, int64(off))
		copy(want[i][off:], b)
		if rng.IntN(10) == 0 && len(ims) < 20 {
			ims, want = append(ims, ims[i].clone()), append(want, bytes.Clone(want[i]))
		}
		for i := range ims {
			require.True(t, bytes.Equal(want[i], ims[i].all()))
		}
	}
}

// randomLog returns writes of whole sectors, each of which is filled with a number of its own, and flushes.
func randomLog(rng *rand.Rand, bytes int64, n int) (log []event) {
	for i := range n {
		if rng.IntN(4) == 0 {
			log = append(log, event{flush: true})
			continue
		}
		sectors := 1 + rng.Int64N(5)
		e := event{off: rng.Int64N(bytes/sectorBytes-sectors) * sectorBytes, data: make([]byte, sectors*sectorBytes)}
		for k := range e.data {
			e.data[k] = byte(1 + i%255)
		}
		log = append(log, e)
	}
	return log
}

// TestCuts_LeaveWhatIsSure: each sector is as it was at the last flush, or as one of the later writes has made it. And cuts of all
// modes come, at flushes and between them, and not all leave the same.
func TestCuts_LeaveWhatIsSure(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	before := newImage(8 * pageBytes)
	before.write([]byte("as it was"), 5)
	log := randomLog(rng, before.bytes(), 200)
	modes, states, flushed := map[cutMode]int{}, map[string]bool{}, 0
	seen := 0
	images(before, log, cuts(log, 10, 2000, span{}, rng), func(_ int, c cut, im *image) bool {
		seen++
		modes[c.mode]++
		sure, perhaps := before.clone(), map[int64][]byte{}
		for i, e := range log[:c.at] {
			switch {
			case i < c.since:
				sure.write(e.data, e.off)
			case e.flush:
				t.Errorf("%+v: a flush is not sure", c)
			}
		}
		c.sectors(log, func(_, _ int, off int64, b []byte) { perhaps[off] = append(perhaps[off], b[0]) })
		if c.since == c.at {
			flushed++
		}
		want, got := sure.all(), im.all()
		states[string(got)] = true
		for off := int64(0); off < im.bytes(); off += sectorBytes {
			have := got[off : off+sectorBytes]
			if bytes.Equal(have, want[off:off+sectorBytes]) {
				continue
			}
			require.Contains(t, perhaps[off], have[0], "%+v: sector at %d", c, off)
			require.Equal(t, bytes.Repeat(have[:1], sectorBytes), have, "%+v: a sector is torn", c)
		}
		return true
	})
	assert.Equal(t, 2000, seen)
	assert.Len(t, modes, cutModes)
	assert.Positive(t, flushed)
	assert.Greater(t, len(states), 300)
}

// TestCut_Modes has one write of four sectors, and one of two, that are not sure.
func TestCut_Modes(t *testing.T) {
	log := []event{{data: bytes.Repeat([]byte{1}, sectorBytes)}, {flush: true}, {off: 0, data: bytes.Repeat([]byte{2}, 4*sectorBytes)},
		{off: 4 * sectorBytes, data: bytes.Repeat([]byte{3}, 2*sectorBytes)}}
	arrived := func(mode cutMode, seed uint64) (n int, of string) {
		images(newImage(2*pageBytes), log, []cut{{since: 2, at: 4, mode: mode, seed: seed}}, func(_ int, _ cut, im *image) bool {
			for i, b := range im.all() {
				if i%sectorBytes == 0 && i < 6*sectorBytes {
					of += string('0' + rune(b))
					if b > 1 {
						n++
					}
				}
			}
			return true
		})
		return n, of
	}
	log2 := []event{{data: bytes.Repeat([]byte{1}, 3*sectorBytes)}}
	n := 0
	assert.Equal(t, 2, cut{at: 1, whole: span{sectorBytes, 3 * sectorBytes}}.sectors(log2, func(_, _ int, _ int64, b []byte) { n += len(b) }))
	assert.Equal(t, 3*sectorBytes, n)
	got := map[cutMode]map[string]bool{}
	for mode := range cutMode(cutModes) {
		got[mode] = map[string]bool{}
		for seed := range uint64(200) {
			n, of := arrived(mode, seed)
			got[mode][of] = true
			switch mode {
			case keepNone:
				require.Zero(t, n)
			case keepAll:
				require.Equal(t, 6, n)
			case loseOne:
				require.Equal(t, 5, n)
			case keepOne:
				require.Equal(t, 1, n)
			}
		}
	}
	assert.Equal(t, map[string]bool{"100000": true}, got[keepNone])
	assert.Equal(t, map[string]bool{"222233": true}, got[keepAll])
	assert.Equal(t, map[string]bool{"100000": true, "222200": true, "100033": true, "222233": true}, got[keepWrites])
	assert.Equal(t, map[string]bool{"200000": true, "220000": true, "222000": true, "222200": true, "222230": true, "222233": true},
		got[keepFirst])
	assert.Len(t, got[loseOne], 6)
	assert.Len(t, got[keepOne], 6)
	assert.Greater(t, len(got[keepSome]), 40)
}
