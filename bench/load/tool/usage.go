package tool

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/leatlog/leat/bench/load"
)

// usage teaches. Without a flag set it is the short form.
func usage(w io.Writer, fs *flag.FlagSet, from engines) {
	fmt.Fprint(w, `usage: leatload [run] [flags]
       leatload list                                 the scenarios, with what each shows
       leatload compare A.json B.json                was B slower than A? (files that -json has written)
       leatload report A.json [B.json...] -o X.html  a page with all charts
       leatload sweep [flags]                        the highest rate that still meets an objective

Leatload makes producers publish to partitions as others receive: pull readers and push subscribers, or the members of a
consumer group. It checks that every message arrives as it should, and shows rate, cost and latency percentiles.

  leatload                                   the main job as fast as possible, for about 10 s
  leatload -rate 1e6                         a million messages a second on a fixed schedule: latencies count from it
  leatload -scenario fan-out -engine chan    the same question to a rival
  leatload -scenario churn -evict 0.25       members come and go, a quarter of them by force: is anything lost?
  leatload -scenario slow-consumer -slow hang -members 8
  leatload -scenario durable -dir .          each publish waits for the disk: beside a bare loop of writes and syncs
  leatload -json result.json                 also for programs; -file result.json runs the same again
  leatload -rate 1e6 -slo 'e2e.p99<200us,lost=0'    exits with 99 if that is missed
`)
	if fs == nil {
		fmt.Fprintln(w, "\nleatload -h lists the flags and scenarios")
		return
	}
	fmt.Fprint(w, "\nScenarios (each flag that is given changes one of their numbers):\n\n")
	list := func(all []load.Scenario) {
		for _, s := range all {
			describe(w, s)
		}
	}
	list(load.Scenarios())
	if names := from.withFiles(); names != nil {
		fmt.Fprintf(w, "\nScenarios with files (on %s only):\n\n", strings.Join(names, ", "))
		list(load.DurableScenarios())
	}
	if names := from.withGroups(); names != nil {
		fmt.Fprintf(w, "\nScenarios with a group (on %s only):\n\n", strings.Join(names, ", "))
		list(load.GroupScenarios())
	}
	groups := groupFlags()
	show := func(group bool) {
		fs.VisitAll(func(f *flag.Flag) {
			if slices.Contains(groups, f.Name) == group {
				flagLine(w, f, defaultOf(f.Name, from))
			}
		})
	}
	fmt.Fprint(w, "\nFlags:\n\n")
	show(false)
	fmt.Fprint(w, "\nFlags of the scenarios with a group:\n\n")
	show(true)
	fmt.Fprint(w, `
Latencies: publish is how long the call took; delay is how much later than scheduled it began; e2e is from the schedule
(without -rate: from the call) until a reader or handler had the message for the first time, done until it was processed. With
-rate every message is measured; without, one in 61, and what you see is mostly how much is buffered.

What is checked: every delivery of every message, by number and checksum. All of these must be 0:

  lost          published, and never arrived; in a group: neither processed nor a dead letter at the end (at-most-once: never
                delivered)
  duplicated    arrived again; in a group: more often than its mode allows. At-most-once allows nothing; the others nothing after
                a success, but one message for each partition that a member has lost by force (of a poll, all it returned), or
                that was not settled in time. An acknowledgement of what was acknowledged before, and accepted, counts here
  reordered     arrived after a later one of its producer; gap: numbers jumped. In a group that goes for first deliveries in each
                partition, whoever owns it; a shared group has no order. (At-most-once with -poll, what was polled by a member
                that is put out comes when it comes.)
  corrupt       wrong bytes, or the wrong partition
  overlapped    a group's partition had two owners at an instant, or two handlers at once
  miscounted    a delivery or dead letter gave a wrong number of attempts
  uncommitted   in the end, when everything was processed, positions said less

These are counted apart, since they are no faults: redelivered (after a failure), repeated (after a member had lost what it had,
or time was up; what the losses do not account for is duplicated), fenced (came too late, and did not count), expired, and
dead-lettered (after -deliveries failures; also counts as processed).

When publishing is over, a run with a group ends what made it slow, lets everything be processed, and compares positions.

Exit code: 0 all is well, 1 something failed as it ran, or what it was to show could not be written, 2 one of the counters above is
not 0 (or a flag is wrong, also a file or directory that cannot be had: then nothing has run), 99 an objective of -slo was missed, 3
the rate was not reached, or handlers did not get through what was sent (unfinished). What could not be written is told on standard
error in any case.

After Ctrl-C the run drains for a moment and shows the result so far, and the code says the same of that; a rate counts as reached if
it was until then, and what was still under way does not count. A second Ctrl-C removes the files of -sync and kills, and a third
one kills at once. Where nobody reads any more what it shows, as behind | head, it removes them and ends as that ends any program.
`)
}

// flagLine tells of a flag, on as many lines as that takes.
func flagLine(w io.Writer, f *flag.Flag, more string) {
	const indent, width = 27, 130
	arg, text := told(f)
	line := fmt.Sprintf("  %-*s", indent-3, "-"+f.Name+" "+arg)
	for word := range strings.FieldsSeq(text + more) {
		if len(line)+1+len(word) > width {
			fmt.Fprintln(w, line)
			line = strings.Repeat(" ", indent-1)
		}
		line += " " + word
	}
	fmt.Fprintln(w, line)
}

// defaultOf tells a flag's default, as the default scenario has it.
func defaultOf(name string, from engines) string {
	s := load.Scenarios()[0]
	if v, ok := map[string]any{"members": 4, "deliveries": 5, "backoff": "1ms"}[name]; ok {
		return fmt.Sprintf(" (default: the scenario's, or %v)", v)
	}
	v, ok := map[string]any{
		"scenario": s.Name, "engine": from[0].Name(), "producers": s.Producers, "partitions": s.Partitions,
		"readers": s.Readers, "subscribers": s.Subscribers, "size": s.Size, "rate": s.Rate,
		"duration": s.Duration, "warmup": s.Warmup, "seed": s.Seed, "floor": true,
	}[name]
	if !ok {
		return ""
	}
	if slices.Contains([]string{"scenario", "engine", "size", "duration", "warmup", "seed", "floor"}, name) {
		return fmt.Sprintf(" (default %v)", v)
	}
	return fmt.Sprintf(" (default: the scenario's; %v in %s)", v, s.Name)
}
