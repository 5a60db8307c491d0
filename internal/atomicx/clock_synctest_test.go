package atomicx_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/internal/atomicx"
)

func TestClock_MovesWithTheMonotonicClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := atomicx.NewClock()
		start := c.Now()
		assert.Equal(t, time.Now().UnixNano(), start)
		assert.Equal(t, start, c.Now())
		time.Sleep(36 * time.Hour) // virtual
		assert.Equal(t, start+int64(36*time.Hour), c.Now())
	})
}
