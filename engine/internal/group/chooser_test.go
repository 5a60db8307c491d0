package group_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine/internal/group"
)

func picks(c *group.Chooser, n int) (who []group.MemberID) {
	for range n {
		if t := c.Next(); t != nil {
			who = append(who, t.Member)
		} else {
			who = append(who, 0)
		}
	}
	return who
}

func TestChooser_Turns(t *testing.T) {
	var c group.Chooser
	assert.Nil(t, c.Next())
	a, b, d := &group.Taker{Member: 1}, &group.Taker{Member: 2}, &group.Taker{Member: 3}
	c.Add(a, 3)
	c.Add(b, 1)
	c.Add(d, 2)
	assert.Panics(t, func() { c.Add(a, 3) })
	assert.Equal(t, []group.MemberID{1, 2, 3, 1, 3, 1, 0}, picks(&c, 7))
	assert.True(t, c.Done(b))
	assert.False(t, c.Done(b), "it has taken none")
	assert.True(t, c.Done(d))
	assert.Equal(t, 2, c.Ready())
	assert.Equal(t, []group.MemberID{2, 3, 0}, picks(&c, 3))

	c.SetRoom(a, 5)
	assert.Equal(t, []group.MemberID{1, 1, 0}, picks(&c, 3))
	c.SetRoom(a, 1)
	for range 4 {
		assert.True(t, c.Done(a))
		assert.Nil(t, c.Next(), "it is at its room or beyond")
	}
	assert.True(t, c.Done(a))
	assert.True(t, c.Take(a))
	assert.False(t, c.Take(a))
	assert.Equal(t, 1, a.Taken())

	c.Remove(a)
	c.Remove(a)
	assert.True(t, c.Done(a), "what it has taken it may still finish")
	assert.Nil(t, c.Next())
	assert.False(t, c.Take(a))
	c.Add(a, 1)
	assert.Equal(t, []group.MemberID{1, 0}, picks(&c, 2))
}

// TestChooser_Model compares with a list of members in the order of their turns.
func TestChooser_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			c      group.Chooser
			takers = make([]group.Taker, 5)
			joined = make([]bool, 5)
			room   = make([]int, 5)
			taken  = make([]int, 5)
			line   []int // those with room
		)
		review := func(i int) {
			switch has := joined[i] && taken[i] < room[i]; {
			case has == slices.Contains(line, i):
			case has:
				line = append(line, i)
			default:
				line = slices.DeleteFunc(line, func(j int) bool { return j == i })
			}
		}
		for i := range takers {
			takers[i].Member = group.MemberID(i + 1)
		}
		one := rapid.IntRange(0, len(takers)-1)
		some := rapid.IntRange(0, 3)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				if i := one.Draw(t, "who"); !joined[i] {
					joined[i], room[i] = true, some.Draw(t, "room")
					c.Add(&takers[i], room[i])
					review(i)
				}
			},
			"remove": func(t *rapid.T) {
				i := one.Draw(t, "who")
				joined[i] = false
				c.Remove(&takers[i])
				review(i)
			},
			"set room": func(t *rapid.T) {
				i := one.Draw(t, "who")
				room[i] = some.Draw(t, "room")
				c.SetRoom(&takers[i], room[i])
				review(i)
			},
			"next": func(t *rapid.T) {
				x := c.Next()
				if len(line) == 0 {
					require.Nil(t, x)
					return
				}
				i := line[0]
				require.Same(t, &takers[i], x)
				taken[i]++
				line = append(line[1:], i)
				review(i)
			},
			"take": func(t *rapid.T) {
				i := one.Draw(t, "who")
				has := slices.Contains(line, i)
				require.Equal(t, has, c.Take(&takers[i]))
				if has {
					taken[i]++
					review(i)
				}
			},
			"done": func(t *rapid.T) {
				i := one.Draw(t, "who")
				require.Equal(t, taken[i] > 0, c.Done(&takers[i]))
				taken[i] = max(0, taken[i]-1)
				review(i)
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(line), c.Ready())
				if len(line) > 0 {
					require.Same(t, &takers[line[0]], c.Peek())
				} else {
					require.Nil(t, c.Peek())
				}
				for i := range takers {
					require.Equal(t, taken[i], takers[i].Taken())
				}
			},
		})
	})
}

func TestChooser_AllocatesNothing(t *testing.T) {
	var c group.Chooser
	var x group.Taker
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		c.Add(&x, 1)
		c.Next()
		c.Done(&x)
		c.Remove(&x)
	}))
}
