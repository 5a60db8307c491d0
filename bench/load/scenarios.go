package load

import (
	"time"

	"github.com/leatlog/leat/bench/load/stream"
)

// Scenarios returns the named scenarios without a group, the default first. See GroupScenarios for the others.
func Scenarios() []Scenario {
	all := []Scenario{
		{
			Name: "mixed", Producers: 3, Partitions: 2, Readers: 1, Subscribers: 1,
			About: "the main job: producers share partitions, a pull reader and a push subscriber each see everything",
		},
		{
			Name: "unicast", Producers: 1, Partitions: 1, Readers: 1,
			About: "one producer, one partition, one reader: the plain hand-over",
		},
		{
			Name: "fan-in", Producers: 3, Partitions: 1, Readers: 1,
			About: "producers compete for one partition",
		},
		{
			Name: "fan-out", Producers: 1, Partitions: 1, Readers: 3,
			About: "one stream, seen in full by each of three readers",
		},
		{
			Name: "partitions", Producers: 4, Partitions: 4, Readers: 1,
			About: "four lanes side by side: what partitioning gains on this machine",
		},
		{
			Name: "pipeline", Producers: 1, Partitions: 2, Readers: 1, Stages: 3, Rate: 100_000,
			About: "A -> B -> C: each message goes through three topics, and somebody carries it from one to the next; e2e is all the way",
		},
		{
			Name: "backlog", Producers: 2, Partitions: 2, Readers: 1, Rate: 100_000, Stop: 3 * time.Second,
			About: "the readers stand still for three seconds as messages go on coming: how soon have they caught up, and what do producers feel",
		},
		{
			Name: "replay-storm", Producers: 2, Partitions: 2, Readers: 1, Replays: 2, Rate: 100_000,
			About: "two more readers read all that is kept, again and again: what does that do to those that read what is new",
		},
		{
			Name: "burst", Producers: 2, Partitions: 2, Readers: 1, Rate: 100_000, Arrival: arrival("burst:10ms/90ms"),
			About: "the messages of 100 ms come within 10 ms, again and again: how far do readers fall behind, for how long",
		},
		{
			Name: "hot-key", Producers: 2, Partitions: 4, Readers: 1, Rate: 100_000, Keys: keys("zipf:0.99:10000"),
			About: "keys choose the partition, and few keys have most messages (Zipf 0.99): what becomes of the partition they are in",
		},
		{
			Name: "big-messages", Producers: 2, Partitions: 2, Readers: 1, Size: 64 << 10,
			About: "64 KiB each: bytes count, not messages",
		},
		{
			Name: "idle", Producers: 1, Partitions: 4, Readers: 1, Subscribers: 1, Rate: 20,
			About: "next to nothing comes: what waiting costs (see how many processors were busy), and how long a wake-up takes",
		},
		{
			Name: "soak", Producers: 3, Partitions: 4, Readers: 1, Subscribers: 1, Rate: 50_000, Duration: 30 * time.Minute,
			Arrival: arrival("poisson"), Sizes: sizes("lognormal:200:1:16384"), Keys: keys("uniform:100000"),
			About: "half an hour of mixed sizes, at random times: do latencies, collections and memory stay as they were",
		},
		{
			Name: "push", Producers: 3, Partitions: 2, Subscribers: 2,
			About: "no reader pulls: the target calls two subscribers",
		},
	}
	return usual(all)
}

// usual fills in what all named scenarios have in common.
func usual(all []Scenario) []Scenario {
	for i := range all {
		if all[i].Size == 0 && all[i].Sizes.Most() == 0 {
			all[i].Size = defaultSize
		}
		all[i].Warmup = time.Second
		if all[i].Duration == 0 {
			all[i].Duration = 9 * time.Second
		}
		all[i].Seed = 1
	}
	return all
}

// must is for texts that are right: a test runs all scenarios.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func arrival(text string) stream.Arrival { return must(stream.ParseArrival(text)) }
func keys(text string) stream.Keys       { return must(stream.ParseKeys(text)) }
func sizes(text string) stream.Sizes     { return must(stream.ParseSizes(text, MinSize)) }
