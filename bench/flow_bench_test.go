package bench_test

import (
	"fmt"
	"testing"
)

// BenchmarkPublish is the whole way: producers publish as fast as they can, one reader checks everything.
func BenchmarkPublish(b *testing.B) {
	for _, producers := range []int{1, 3} {
		b.Run(fmt.Sprintf("producers=%d/readers=1/payload=%dB", producers, size), func(b *testing.B) {
			flows(b, flow{producers: producers, consumers: 1})
		})
	}
}

// BenchmarkFanOut has one producer, and three readers that each see everything.
func BenchmarkFanOut(b *testing.B) {
	b.Run(fmt.Sprintf("producers=1/readers=3/payload=%dB", size), func(b *testing.B) {
		flows(b, flow{producers: 1, consumers: 3})
	})
}

// BenchmarkPush calls the consumers instead of letting them pull.
func BenchmarkPush(b *testing.B) {
	for _, subscribers := range []int{1, 3} {
		b.Run(fmt.Sprintf("producers=1/subscribers=%d/payload=%dB", subscribers, size), func(b *testing.B) {
			flows(b, flow{producers: 1, consumers: subscribers, push: true})
		})
	}
}

// TestLines runs every flow of the benchmarks briefly, so that they are known to be right before they are known to be fast.
func TestLines(t *testing.T) {
	for _, i := range impls() {
		for _, f := range []flow{{1, 1, false}, {3, 1, false}, {1, 3, false}, {1, 1, true}, {1, 3, true}, {3, 2, true}} {
			if !i.can(f) {
				continue
			}
			t.Run(fmt.Sprintf("%v/%+v", i, f), func(t *testing.T) {
				tr := start(t, i, f, 3)
				defer tr.close()
				tr.pass(0)
				tr.pass(1)
				tr.pass(10_000)
			})
		}
	}
}
