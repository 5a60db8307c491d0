package ring_test

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/leatlog/leat/ring"
)

// Producers hand over numbers, one consumer adds them up. It parks on a channel when there is nothing to do.
func Example() {
	r := ring.New[int](64)
	wake := make(chan struct{}, 1)
	var producers, consumer sync.WaitGroup

	sum := 0
	consumer.Go(func() {
		for {
			head := r.Head()
			pos := head
			for r.IsReady(pos) {
				sum += *r.Slot(pos, 0)
				pos = r.Advance(pos, 1)
			}
			switch {
			case pos != head:
				r.Release(pos)
			case r.Sleep():
				<-wake
			case r.Closed() && !r.Claimed():
				return
			default:
				runtime.Gosched() // for a producer between its claim and Ready
			}
		}
	})

	for range 3 {
		producers.Go(func() {
			for i := range 1000 {
				pos, outcome, _ := r.Claim(1, nil)
				*r.Slot(pos, 0) = i
				r.Ready(pos)
				if outcome == ring.ClaimedIdle {
					wake <- struct{}{}
				}
			}
		})
	}
	producers.Wait()
	if r.Close() {
		wake <- struct{}{}
	}
	consumer.Wait()
	fmt.Println(sum)
	// Output: 1498500
}

// There is no consumer goroutine: whoever finds the ring idle does the consumer's work until it can go to sleep again.
// Nothing is ever woken.
func ExampleMPSC_Sleep() {
	r := ring.New[string](8)
	r.Sleep() // nobody is the consumer yet

	say := func(text string) {
		pos, outcome, _ := r.Claim(1, nil)
		*r.Slot(pos, 0) = text
		r.Ready(pos)
		if outcome != ring.ClaimedIdle {
			return // somebody is at it, and will come to it
		}
		for !r.Sleep() {
			if pos := r.Head(); r.IsReady(pos) {
				fmt.Println(*r.Slot(pos, 0))
				r.Release(r.Advance(pos, 1))
			} else {
				runtime.Gosched() // for a producer between its claim and Ready
			}
		}
	}
	say("one")
	say("two")
	// Output:
	// one
	// two
}

// Several values that must stay together are one claim. The first slot says how many they are.
func ExampleMPSC_TryClaim() {
	type item struct {
		n    int
		text string
	}
	r := ring.New[item](4)
	put := func(texts ...string) ring.Outcome {
		pos, outcome := r.TryClaim(len(texts))
		if outcome != ring.Claimed {
			return outcome
		}
		for i, text := range texts {
			*r.Slot(pos, i) = item{text: text}
		}
		r.Slot(pos, 0).n = len(texts)
		r.Ready(pos)
		return outcome
	}
	fmt.Println(put("a", "b", "c"))
	fmt.Println(put("d", "e"))
	fmt.Println(put("f"))

	for pos := r.Head(); r.IsReady(pos); {
		n := r.Slot(pos, 0).n
		for i := range n {
			fmt.Println(n, r.Slot(pos, i).text)
		}
		pos = r.Advance(pos, n)
		r.Release(pos)
	}
	// Output:
	// claimed
	// full
	// claimed
	// 3 a
	// 3 b
	// 3 c
	// 1 f
}
