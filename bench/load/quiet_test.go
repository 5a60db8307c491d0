package load_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/bench/load"
)

// TestQuiet: only time in which somebody looked counts as quiet, but for one standstill of half a second.
func TestQuiet(t *testing.T) {
	const ms = time.Millisecond
	look := load.NewQuiet(0)
	assert.Equal(t, 400*ms, look(400*ms, false))
	assert.Equal(t, 900*ms, look(900*ms, false))
	assert.Equal(t, 1400*ms, look(time.Hour, false), "an hour in which the process stood still")
	assert.Equal(t, 1401*ms, look(time.Hour+ms, false))
	assert.Zero(t, look(time.Hour+2*ms, true))
	assert.Equal(t, 500*ms, look(2*time.Hour, false))
}
