// Package bench measures Leat beside what people write without it: a buffered channel and a slice under a mutex (package
// baseline), in the same process and run. All of it is in the tests:
//
//	go test ./bench -bench . -run '^$'            microbenchmarks, named key=value for benchstat
//	go test ./bench -run TestRatios -ratios -v    honest ratios on a machine whose cores move about
//
// Every consumer in every benchmark checks the number and order of what it gets, and fails the benchmark if they are wrong.
//
// Absolute figures drift with the machine, above all with how far apart its two cores sit at the moment. Two benchmarks that ran
// one after the other may have met different machines. That is what TestRatios is for: it alternates short slices of Leat
// and of the channel, measures the way between the cores before and after each, and divides only what is comparable.
//
// Latency is measured by package load and cmd/leatload, not here; and everything beside many more rivals by the nested module in
// bench/rivals.
package bench
