package partition_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
)

func TestRequest_Phases(t *testing.T) {
	watchdog(t)
	closed := make(chan struct{})
	close(closed)

	r := partition.NewReq()
	require.True(t, r.Wanted())
	require.False(t, r.Await(closed), "given up")
	require.False(t, r.Wanted())
	require.False(t, r.Take(), "given up in time")

	r.Reset()
	require.True(t, r.Take())
	require.True(t, r.Take(), "again, as for one that is stuck")
	require.True(t, r.Wanted())
	r.Finish(5, errOver)
	require.True(t, r.Await(closed), "done comes first")
	off, err := r.Result()
	require.EqualValues(t, 5, off)
	require.ErrorIs(t, err, errOver)
	require.Zero(t, r.Leftover(closed))
}

// dawdle lets others run a few times, or not.
func dawdle() {
	for range rand.IntN(30) {
		runtime.Gosched()
	}
}

// TestRequest_StressTakeLeaveAwait attacks the proof of request: of take and leave exactly one succeeds; a publisher that
// could not leave gets the result; no token is left behind for the next use, and none is missed.
func TestRequest_StressTakeLeaveAwait(t *testing.T) {
	watchdog(t)
	r := partition.NewReq()
	closed := make(chan struct{})
	close(closed)
	var left, served int
	for i := range rounds(10_000) {
		r.Reset()
		cancel := make(chan struct{})
		value := 0 // the caller's bytes: the publisher writes them after it has returned, the holder reads them when it has taken
		var wg sync.WaitGroup
		var taken bool
		wg.Go(func() { // holder
			dawdle()
			if !r.Wanted() || !r.Take() {
				return
			}
			taken = true
			if value != 0 {
				t.Error("read what the publisher has taken back")
			}
			r.Finish(int64(i), nil)
		})
		if i%2 == 0 {
			wg.Go(func() { dawdle(); close(cancel) })
		} else {
			close(cancel)
		}
		in := r.Await(cancel)
		value = 1
		wg.Wait()
		switch {
		case in != taken:
			t.Fatalf("round %d: await %v, taken %v", i, in, taken)
		case in:
			if off, err := r.Result(); off != int64(i) || err != nil {
				t.Fatalf("round %d: %d, %v", i, off, err)
			}
			served++
		default:
			left++
		}
		if r.Leftover(closed) != 0 {
			t.Fatalf("round %d: a token was left behind", i)
		}
	}
	require.NotZero(t, left, "the race was never lost")
	require.NotZero(t, served, "the race was never won")
}

// TestRequest_StressCopiedLeaveAwait is the same with files: the publisher may also leave when its bytes have been copied, and
// never waits for the holder after that.
func TestRequest_StressCopiedLeaveAwait(t *testing.T) {
	watchdog(t)
	r := partition.NewReq()
	r.Slow()
	closed := make(chan struct{})
	close(closed)
	var left, abandoned, served int
	for i := range rounds(10_000) {
		r.Reset()
		cancel, returned := make(chan struct{}), make(chan struct{})
		value := 0 // as above, but read only until it is copied
		var wg sync.WaitGroup
		var taken bool
		wg.Go(func() { // holder
			dawdle()
			if !r.Wanted() || !r.Take() {
				return
			}
			taken = true
			if value != 0 {
				t.Error("read what the publisher has taken back")
			}
			r.Copied()
			if i%4 == 0 {
				<-returned // the files hang
			}
			dawdle()
			r.Finish(int64(i), nil)
		})
		if i%2 == 0 {
			wg.Go(func() { dawdle(); dawdle(); close(cancel) })
		} else {
			close(cancel)
		}
		in, late := r.AwaitSlow(cancel)
		value = 1
		close(returned)
		wg.Wait()
		switch {
		case (in || late) != taken || in && late:
			t.Fatalf("round %d: await %v %v, taken %v", i, in, late, taken)
		case in:
			if off, err := r.Result(); off != int64(i) || err != nil {
				t.Fatalf("round %d: %d, %v", i, off, err)
			}
			served++
		case late:
			abandoned++
		default:
			left++
		}
		if r.Leftover(closed) != 0 {
			t.Fatalf("round %d: a token was left behind", i)
		}
	}
	require.NotZero(t, left)
	require.NotZero(t, served)
	require.NotZero(t, abandoned)
}

// The error of one publish never becomes that of another that uses the same request again.
func TestRequest_IsUsedAgain(t *testing.T) {
	watchdog(t)
	p := start(t, setup{maxRecord: 10})
	for i := range rounds(2000) {
		require.True(t, p.TakeRole())
		result := make(chan error)
		go func() {
			off, err := p.Publish(background, value("x"))
			if err == nil && off != int64(i) {
				err = errors.New("wrong offset")
			}
			result <- err
		}()
		await(func() bool { return p.Queued() == 1 })
		p.HoldRole()
		require.NoError(t, <-result)
		await(p.TakeRole)
		p.HoldRole()
	}
}
