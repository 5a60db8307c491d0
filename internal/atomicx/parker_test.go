package atomicx_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/internal/atomicx"
)

func closed() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}

func TestParker_TokenBeforePark(t *testing.T) {
	p := atomicx.NewParker()
	p.Unpark()
	assert.True(t, p.Park(nil))
	p.Unpark()
	assert.True(t, p.Park(make(chan struct{})))
}

func TestParker_HoldsOneToken(t *testing.T) {
	p := atomicx.NewParker()
	p.Unpark()
	p.Unpark()
	assert.True(t, p.Park(nil))
	assert.False(t, p.Park(closed()), "a second token")
}

func TestParker_Done(t *testing.T) {
	p := atomicx.NewParker()
	assert.False(t, p.Park(closed()))
	p.Unpark()
	assert.True(t, p.Park(nil), "done has used the token up")
}

// TestParker_TokenAndDone makes sure that whoever wins, the token is used up exactly if Park says so.
func TestParker_TokenAndDone(t *testing.T) {
	p := atomicx.NewParker()
	for range 100 {
		p.Unpark()
		if !p.Park(closed()) {
			assert.True(t, p.Park(nil))
		}
		assert.False(t, p.Park(closed()))
	}
}

func TestParker_ParksUntilUnpark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := atomicx.NewParker()
		done := make(chan struct{})
		results := make(chan bool, 2)
		go func() {
			results <- p.Park(done)
			results <- p.Park(done)
		}()
		synctest.Wait() // it is parked: durably blocked, no polling
		assert.Empty(t, results)
		p.Unpark()
		synctest.Wait()
		assert.True(t, <-results)
		assert.Empty(t, results)
		close(done)
		assert.False(t, <-results)
	})
}
