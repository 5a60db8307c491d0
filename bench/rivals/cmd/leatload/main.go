// Command leatload is the program of the same name in the root module, with the rivals as engines besides: the same scenarios, flags,
// files and reports.
//
//	go -C bench/rivals run ./cmd/leatload -h
//	go -C bench/rivals run ./cmd/leatload -engine watermill -scenario unicast -rate 100000
//	go -C bench/rivals run ./cmd/leatload sweep -engine xsync-mpmc -scenario fan-out
//
// How much a rival does at its best is a question for cmd/compare, which drives each by its own loop and takes turns.
package main

import (
	"slices"

	"github.com/leatlog/leat/bench/load/target"
	"github.com/leatlog/leat/bench/load/tool"
	"github.com/leatlog/leat/bench/rivals"
)

func main() { tool.Main(slices.Concat(target.All(), rivals.Targets())...) }
