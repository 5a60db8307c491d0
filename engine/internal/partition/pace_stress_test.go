package partition_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

// TestPace_StressHandedOver has publishers hand the role over at nearly every append, so that all of them and the goroutine take it
// from each other all the time. Each one's records come in its order, and all that is flushed is there.
func TestPace_StressHandedOver(t *testing.T) {
	watchdog(t)
	for _, producers := range []int{1, 3} {
		p := prepare(setup{slots: 16, workers: newWorkers(t, 1)})
		p.SetHotStreak(1)
		go p.Run()
		each := rounds(20_000)
		var wg sync.WaitGroup
		for id := range producers {
			wg.Go(func() {
				buf := make([]byte, 64)
				for n := range each {
					if err := p.PublishAsync(background, signed(buf, id, n), nil); err != nil {
						t.Errorf("publish: %v", err)
						return
					}
					if n%1000 == 999 {
						assert.NoError(t, p.Flush(background))
					}
				}
				assert.NoError(t, p.Flush(background))
			})
		}
		wg.Wait()
		_, next := p.Snapshot()
		require.EqualValues(t, producers*each, next)
		r := reader(t, p, nil, earliest)
		seen := make([]int, producers)
		var rec segment.Record
		for range producers * each {
			if err := r.Next(background, &rec); err != nil {
				t.Fatal(err)
			}
			id, n := verify(t, &rec)
			if n != seen[id] {
				t.Fatalf("producer %d: %d, not %d", id, n, seen[id])
			}
			seen[id]++
		}
		p.Close(errOver)
		<-p.Done()
		p.Free()
	}
}
