package dispatch

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The runtime's text is not promised by anybody: this test says so when it changes.
func TestGoroutineID(t *testing.T) {
	mine := goroutineID()
	assert.NotZero(t, mine)
	assert.Equal(t, mine, goroutineID())
	other := make(chan uint64)
	go func() { other <- goroutineID() }()
	theirs := <-other
	assert.NotZero(t, theirs)
	assert.NotEqual(t, mine, theirs)
}

func TestParseGoroutineID(t *testing.T) {
	for text, id := range map[string]uint64{
		"goroutine 1 [running]:\nmain.main()":     1,
		"goroutine 4711 [running]:":               4711,
		"goroutine 18446744073709551615 [running": 1<<64 - 1,
		"goroutine 7 gp=0xc000 m=3 [running]:":    7,
		"":                                        0,
		"goroutine ":                              0,
		"goroutine  7 [running]:":                 0,
		"goroutine 7":                             0,
		"goroutine 7x [running]:":                 0,
		"goroutine -7 [running]:":                 0,
		"fiber 7 [running]:":                      0,
		"goroutine [running]: 7 77":               0,
	} {
		assert.Equal(t, id, parseGoroutineID([]byte(text)), "%q", text)
	}
}
