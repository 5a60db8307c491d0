package main

import (
	"github.com/leatlog/leat/bench/load/target"
	"github.com/leatlog/leat/bench/load/tool"
)

func main() { tool.Main(target.All()...) }
