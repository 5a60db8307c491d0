//go:build explore

package explore_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
)

// instruction is one step of a program for the model test.
type instruction struct {
	Do   string
	Word int
	Val  uint64
}

const (
	doLoad    = "load"    // and note the value
	doExpect  = "expect"  // load, and end the thread if the value is not Val
	doStore   = "store"   // Val
	doRelease = "release" // StoreRelease of Val
	doAdd     = "add"     // Val, and note the result
	doRead    = "read"    // a plain cell
	doWrite   = "write"   // a plain cell
)

type program [][]instruction

// machine is a state of the reference: programs run by hand, one instruction after the other, with store buffers.
type machine struct {
	words  [2]uint64
	pc     []int
	noted  [][]uint64
	buffer [][]instruction
}

func (m *machine) clone() *machine {
	c := &machine{words: m.words, pc: slices.Clone(m.pc)}
	for i := range m.pc {
		c.noted = append(c.noted, slices.Clone(m.noted[i]))
		c.buffer = append(c.buffer, slices.Clone(m.buffer[i]))
	}
	return c
}

func (m *machine) flush(i int) {
	b := m.buffer[i][0]
	m.words[b.Word] = b.Val
	m.buffer[i] = m.buffer[i][1:]
}

func (m *machine) load(i, word int) uint64 {
	for _, b := range slices.Backward(m.buffer[i]) {
		if b.Word == word {
			return b.Val
		}
	}
	return m.words[word]
}

// reference enumerates all ways in which a program can run, and returns the outcomes and whether two conflicting plain
// accesses can be next at the same time: that is a race.
func reference(p program) (outcomes []string, race bool) {
	set := map[string]bool{}
	var visit func(m *machine)
	seen := map[string]bool{}
	visit = func(m *machine) {
		key := fmt.Sprint(*m)
		if seen[key] {
			return
		}
		seen[key] = true
		moved := false
		plain := map[int][]instruction{}
		for i := range p {
			if len(m.buffer[i]) > 0 {
				c := m.clone()
				c.flush(i)
				visit(c)
				moved = true
			}
			if m.pc[i] == len(p[i]) {
				continue
			}
			moved = true
			c := m.clone()
			in := p[i][c.pc[i]]
			c.pc[i]++
			switch in.Do {
			case doLoad:
				c.noted[i] = append(c.noted[i], c.load(i, in.Word))
			case doExpect:
				if c.load(i, in.Word) != in.Val {
					c.pc[i] = len(p[i])
				}
			case doStore, doAdd:
				for len(c.buffer[i]) > 0 {
					c.flush(i)
				}
				if in.Do == doStore {
					c.words[in.Word] = in.Val
				} else {
					c.words[in.Word] += in.Val
					c.noted[i] = append(c.noted[i], c.words[in.Word])
				}
			case doRelease:
				c.buffer[i] = append(c.buffer[i], in)
			case doRead, doWrite:
				for _, other := range plain[in.Word] {
					race = race || in.Do == doWrite || other.Do == doWrite
				}
				plain[in.Word] = append(plain[in.Word], in)
			}
			visit(c)
		}
		if !moved {
			set[fmt.Sprint(m.noted, m.words)] = true
		}
	}
	visit(&machine{pc: make([]int, len(p)), noted: make([][]uint64, len(p)), buffer: make([][]instruction, len(p))})
	for o := range set {
		outcomes = append(outcomes, o)
	}
	slices.Sort(outcomes)
	return outcomes, race
}

// run is the same program as a scenario.
func (p program) run(s *explore.S) {
	var words [2]atomicx.Uint64
	var cells [2]atomicx.Cell[int]
	noted := make([][]uint64, len(p))
	for i, thread := range p {
		s.Go(fmt.Sprint(i), func() {
			for _, in := range thread {
				w := &words[in.Word]
				switch in.Do {
				case doLoad:
					noted[i] = append(noted[i], w.Load())
				case doExpect:
					if w.Load() != in.Val {
						return
					}
				case doStore:
					w.Store(in.Val)
				case doRelease:
					atomicx.StoreRelease(w, in.Val)
				case doAdd:
					noted[i] = append(noted[i], w.Add(in.Val))
				case doRead:
					cells[in.Word].Get()
				case doWrite:
					cells[in.Word].Set(1)
				}
			}
		})
	}
	s.Finally(func() error {
		s.Outcome("%v", fmt.Sprint(noted, [2]uint64{words[0].Load(), words[1].Load()}))
		return nil
	})
}

func drawProgram(t *rapid.T, kinds ...string) program {
	in := rapid.Custom(func(t *rapid.T) instruction {
		return instruction{
			Do:   rapid.SampledFrom(kinds).Draw(t, "do"),
			Word: rapid.IntRange(0, 1).Draw(t, "word"),
			Val:  rapid.Uint64Range(1, 2).Draw(t, "value"),
		}
	})
	return rapid.SliceOfN(rapid.SliceOfN(in, 1, 4), 2, 3).Draw(t, "program")
}

// TestModel_Outcomes compares the outcomes of random programs with those of the reference.
func TestModel_Outcomes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t, doLoad, doLoad, doStore, doRelease, doRelease, doAdd)
		want, _ := reference(p)
		res := explore.Check(all, explore.Scenario{Name: "random", Setup: p.run})
		require.Nil(t, res.Failure)
		require.True(t, res.Complete)
		require.Equal(t, want, res.OutcomeSet())
	})
}

// TestModel_Races compares the verdict on random programs with that of the reference: a race is found exactly if there is a
// way to run the program that brings two conflicting accesses side by side.
func TestModel_Races(t *testing.T) {
	races, clean := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t, doExpect, doExpect, doStore, doRelease, doAdd, doRead, doWrite)
		_, race := reference(p)
		f := explore.Check(all, explore.Scenario{Name: "random", Setup: p.run}).Failure
		if !race {
			clean++
			require.Nil(t, f)
			return
		}
		races++
		require.NotNil(t, f)
		require.Equal(t, explore.Race, f.Kind)
	})
	if testing.Short() {
		return // a fifth of the programs: all may be of one kind
	}
	require.NotZero(t, races)
	require.NotZero(t, clean)
}
