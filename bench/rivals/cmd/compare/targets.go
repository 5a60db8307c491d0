package main

import (
	"github.com/leatlog/leat/bench/rivals"
	"github.com/leatlog/leat/bench/rivals/arena"
	"github.com/leatlog/leat/bench/rivals/report"
)

// targets are what Leat is to reach, all with 64 bytes unless they say otherwise. A side waits as it does by default unless it
// says otherwise. A Reader reads values: no target is about keys or times. What was made in place, in runs, it reads in runs.
func targets() []report.Target {
	const reader, runs = "/values", "/run"
	one, three, fan, group := arena.OneToOne, arena.ThreeToOne, arena.OneToThree, arena.FourByFour
	list := []report.Target{
		{What: "appender, batches in place, against the channel", A: "leat/reserve" + runs, B: "chan", Topology: one, Least: 3.7},
		{What: "appender, batched flush, copying, against the channel", A: "leat/append" + reader, B: "chan", Topology: one, Least: 3.7},
		{What: "appender, batches in place, against a ring in place with the same wait", A: "leat/reserve" + runs, B: "ring", Topology: one,
			Least: 0.9},
		{What: "appender, batches in place, against a ring in place, both spinning", A: "leat/reserve" + runs, B: "ring",
			WaitA: arena.Spin, WaitB: arena.Spin, Topology: one, Least: 0.9},
		{What: "appender, batched flush, copying, against a ring in place with the same wait", A: "leat/append" + reader, B: "ring", Topology: one,
			Least: 0.9},
		{What: "appender, every record visible at once, against LMAX 1P1C single publish, Yielding", A: "leat/append1" + reader, B: "lmax1",
			WaitA: arena.Yield, WaitB: arena.Yield, Topology: one, Least: 1},
		{What: "appender, batches of 10 in place, against LMAX batches of 10, Yielding", A: "leat/reserve10" + runs, B: "lmax10",
			WaitA: arena.Yield, WaitB: arena.Yield, Topology: one, Least: 0.5},
		{What: "appender, batches of 100 in place, against LMAX batches of 100, Yielding", A: "leat/reserve100" + runs, B: "lmax100",
			WaitA: arena.Yield, WaitB: arena.Yield, Topology: one, Least: 0.5},
		{What: "PublishAsync, one producer, against the channel", A: "leat/async" + reader, B: "chan", Topology: one, Least: 1.7},
		{What: "PublishAsync, three producers, against the channel", A: "leat/async" + reader, B: "chan", Topology: three, Least: 1.7},
		{What: "PublishBatch(16), three producers, against the channel", A: "leat/batch16" + reader, B: "chan", Topology: three, Least: 3},
		{What: "three Readers, against a channel for each", A: "leat/reserve" + runs, B: "chan", Topology: fan, Least: 6},
		{What: "group of four, push, against kfake", A: "leat/async/group", B: "kfake", Topology: group, Least: 8},
		{What: "group of four, push, against JetStream in memory", A: "leat/async/group", B: "jetstream", Topology: group, Least: 100},
		{What: "group of four, push, against Watermill", A: "leat/async/group", B: "watermill", Topology: group, Least: 60},
		{What: "Publish on an idle partition, p50, against a channel ping-pong (and at most 250 ns)", A: "publish/leat", B: "publish/pingpong",
			Topology: rivals.Publish, Rate: 1e5, Figure: report.P50, Most: 1},
		{What: "one processor, three producers, against the channel", A: "leat/async" + reader, B: "chan", Topology: three, Procs: 1, Least: 1.5},
		{What: "replay, against a loop over the same bytes", A: "replay/leat", B: "replay/sum", Topology: rivals.Replay, Least: 0.5},
		{What: "replay of 1 KiB, against a loop over the same bytes", A: "replay/leat", B: "replay/sum", Topology: rivals.Replay, Size: 1024, Least: 0.8},
		{What: "appending behind 10^8 records, against the first 10^6", A: "retention/leat-1e8", B: "retention/leat-1e6", Topology: rivals.Retention,
			Least: 1 / 1.1},
		{What: "CPU for each message, appender, batches in place, against the channel", A: "leat/reserve" + runs, B: "chan", Topology: one,
			Figure: report.CPU, Most: 0.7},
		{What: "CPU for each message, PublishAsync, against the channel", A: "leat/async" + reader, B: "chan", Topology: one, Figure: report.CPU, Most: 0.7},
	}
	for _, rate := range []float64{1e5, 1e6} {
		for _, f := range []report.Figure{report.P50, report.P99} {
			list = append(list, report.Target{What: "end to end, spinning, against LMAX BusySpin", A: "leat/append1" + reader, B: "lmax1",
				WaitA: arena.Spin, WaitB: arena.Spin, Topology: one, Rate: rate, Figure: f, Most: 1})
		}
	}
	for _, f := range []report.Figure{report.P50, report.P99, report.CPU} {
		list = append(list, report.Target{What: "end to end, default wait, against the channel", A: "leat/async" + reader, B: "chan", Topology: one,
			Rate: 1e5, Figure: f, Most: 1})
	}
	return defaults(list)
}

// defaults fills in what most have.
func defaults(list []report.Target) []report.Target {
	for i := range list {
		if list[i].Figure == "" {
			list[i].Figure = report.Rate
		}
		if list[i].Size == 0 {
			list[i].Size = 64
		}
	}
	return list
}

// floors are the floors of what the targets are about: how far Leat is from them, and how far a rival would be.
func floors() []report.Target {
	const reader, runs = "/values", "/run"
	one, three, fan := arena.OneToOne, arena.ThreeToOne, arena.OneToThree
	list := []report.Target{
		{What: "what the harness costs everybody: how much faster than the channel nothing at all is", A: "nothing", B: "chan", Topology: one},
		{What: "an appender in place, to the least that a log does", A: "leat/reserve" + runs, B: "kept", Topology: one},
		{What: "an appender that copies, to the least that a log does", A: "leat/append" + reader, B: "kept", Topology: one},
		{What: "an appender in place, both spinning", A: "leat/reserve" + runs, B: "kept", WaitA: arena.Spin, WaitB: arena.Spin, Topology: one},
		{What: "the least that a log does, to a ring in place", A: "kept", B: "ring", Topology: one},
		{What: "the same, both spinning", A: "kept", B: "ring", WaitA: arena.Spin, WaitB: arena.Spin, Topology: one},
		{What: "the least that a log does, to the channel", A: "kept", B: "chan", Topology: one},
		{What: "three Readers, to the least", A: "leat/reserve" + runs, B: "kept", Topology: fan},
		{What: "the least for three readers, to a channel for each", A: "kept", B: "chan", Topology: fan},
		{What: "PublishBatch(16) of three producers, to the least with a mutex", A: "leat/batch16" + reader, B: "kept16", Topology: three},
		{What: "the least for three producers, to the channel", A: "kept16", B: "chan", Topology: three},
		{What: "nothing at all for three producers, to the channel", A: "nothing", B: "chan", Topology: three},
		{What: "one processor: PublishAsync of three producers, to the least with a mutex, publishing each", A: "leat/async" + reader, B: "kept1",
			Topology: three, Procs: 1},
		{What: "one processor: the least, publishing each, to the channel", A: "kept1", B: "chan", Topology: three, Procs: 1},
		{What: "one processor: nothing at all, to the channel", A: "nothing", B: "chan", Topology: three, Procs: 1},
		{What: "replay, to records by their index entries", A: "replay/leat", B: "replay/indexed", Topology: rivals.Replay},
		{What: "records by their index entries, to a loop over the same bytes", A: "replay/indexed", B: "replay/sum", Topology: rivals.Replay},
		{What: "replay of 1 KiB, to records by their index entries", A: "replay/leat", B: "replay/indexed", Topology: rivals.Replay, Size: 1024},
	}
	for _, x := range [][3]string{{"append1", reader, "1"}, {"reserve10", runs, "10"}, {"reserve100", runs, "100"}} { // the faster ones of each size
		in, out, n := x[0], x[1], x[2]
		list = append(list,
			report.Target{What: "an appender that publishes every " + n + ", to the least", A: "leat/" + in + out, B: "kept" + n,
				WaitA: arena.Yield, WaitB: arena.Yield, Topology: one},
			report.Target{What: "the least that publishes every " + n + ", to LMAX", A: "kept" + n, B: "lmax" + n,
				WaitA: arena.Yield, WaitB: arena.Yield, Topology: one})
	}
	for _, rate := range []float64{1e5, 1e6} {
		for _, f := range []report.Figure{report.P50, report.P99} {
			list = append(list,
				report.Target{What: "end to end, spinning, to the least", A: "leat/append1" + reader, B: "kept1", WaitA: arena.Spin, WaitB: arena.Spin,
					Topology: one, Rate: rate, Figure: f},
				report.Target{What: "end to end, spinning, the least to LMAX BusySpin", A: "kept1", B: "lmax1", WaitA: arena.Spin, WaitB: arena.Spin,
					Topology: one, Rate: rate, Figure: f})
		}
	}
	for _, f := range []report.Figure{report.P50, report.P99, report.CPU} {
		list = append(list, report.Target{What: "end to end, default wait, the least to the channel", A: "kept1", B: "chan", Topology: one, Rate: 1e5,
			Figure: f})
	}
	return defaults(list)
}
