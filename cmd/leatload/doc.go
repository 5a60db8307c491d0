// Leatload puts Leat, or a rival, under load and shows what came of it: messages a second, cost of each, latency
// percentiles, and whether every message arrived once, in order and unharmed.
//
// With no arguments it runs the main job for about 10 seconds: three producers, two partitions, one pull reader and one push
// subscriber that each see every message, as fast as they can.
//
//	leatload                                   the main job, saturating
//	leatload -rate 1e6                         the same at a million messages a second: latencies from the schedule
//	leatload -scenario fan-out -engine chan    one producer, three readers, on buffered channels
//	leatload -scenario churn -evict 0.25       a consumer group whose members come and go, a quarter of them by force
//	leatload -scenario backlog                 the readers stop for three seconds: how soon have they caught up?
//	leatload -rate 1e6 -json result.json       the result for programs as well; leatload -file result.json runs the same again
//	leatload -rate 1e6 -slo 'e2e.p99<200us,lost=0'   exits with 99 if that is missed
//
// Sub-commands, each with a -h of its own:
//
//	leatload list                              the scenarios, with what each shows; -v: with the flags that make it
//	leatload compare A.json B.json             was B slower than A? A table with noise bands, a verdict, an exit code
//	leatload report A.json B.json -o r.html    one self-contained page, all runs over each other
//	leatload sweep -slo 'e2e.p99<200us'        the highest rate that still meets an objective, by a search
//
// What sweep -json writes, report makes a page of, and -file runs again at the rate that was found, if one was.
//
// # The load
//
// -rate says how many messages a second, -arrival how they are spread in time (evenly, at random, in bursts, in steps), -sizes how
// large they are and -keys which key each has, which chooses its partition. Same -seed, same stream. A scenario file is a JSON object
// whose names are those of the flags, {"scenario": "churn", "rate": 20000}, or the JSON of a result; flags go before the file, of which
// all must be right nevertheless. Every result says by which flags it can be had again.
//
// # What comes out
//
// While it runs: on a terminal a picture that is painted over each second, elsewhere a line each second, with -q nothing. At the end
// a table; with -json the same for programs, with all windows of the run and the whole distributions (bench/load/RESULT.md says what
// each field is); with -csv a line for each window; with -hgrm percentiles for the HdrHistogram plotter; with -hlog a histogram for
// each window. The floor in the table is what the generator does by itself, measured just before with a target that does nothing.
//
// -procs, -gc, -memlimit and -pin say what the process goes by, -cpuprofile, -memprofile and -trace what is to be written about it.
//
// The scenarios group, shared, churn, slow-consumer and redelivery have a consumer group in place of readers: each message must
// be processed as often as the group's mode says, whatever becomes of its members. At the end everything is let through and
// the group's positions must say so.
//
// The program is package bench/load/tool, which makes one like it for queues of your own; bench/rivals has one with many more engines.
//
// leatload -h lists all flags and scenarios, and says what is checked.
//
// # Exit code
//
//   - 0: all messages arrived as they should.
//   - 1: something failed as it ran (the target reported an error), or what it was to show, a file, a profile or standard output,
//     could not be written.
//   - 2: messages were lost, duplicated, reordered or damaged, or a group did what its mode does not allow. Or a flag is wrong, which
//     includes a file or directory that cannot be read, written or made: then nothing has run.
//   - 3: all messages arrived as they should, but the rate that was asked for was not reached, or handlers did not get through what
//     was sent.
//   - 99: an objective of -slo was missed, and there is no fault. Of sweep: not even low rates met.
//
// Where several are true, the first of these counts: faults, a run that failed, 99, 3, something that could not be written. The last is
// told on standard error in any case.
//
// Those of compare are 0 (no difference, better, or it cannot be told), 1 (worse, or not written), 2 (a run has faults, or a flag or
// file is wrong) and 3 (not comparable); 2 and 3 go before what could not be written.
//
// After Ctrl-C the run drains for a moment, and shows and judges what there was until then; a search does so with the runs that were over,
// and also when a run fails. A second Ctrl-C removes the files of -sync and kills, and a third one kills at once.
// Where nobody reads any more what it shows, as behind | head, it removes them and ends as that ends any program, by SIGPIPE.
package main
