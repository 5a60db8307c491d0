// Package storage is what lies between a partition of a durable topic and its files: it says when a record may be told to be
// published, and what becomes of the partition when a file fails. A partition in memory has none of it.
//
// A [Log] belongs to one partition. The holder of the partition's role calls Commit when it is about to publish: what is staged
// in the log in memory is written to the files as one frame, and under Always made durable, before anybody can see it. So all
// publishers whose records were staged together share one write and one sync.
//
// Under Every a goroutine syncs so long after the first write that is not durable, beside the writes; under Never the system
// writes when it likes. There is at most one such goroutine for a Log, and none while there is nothing to sync; the same holds
// for the trimming of files.
//
// Load fills a log in memory at Open: with the newest records, and with segments that are cold for those before, which are read
// from the files when somebody wants them. A reader that loads one counts as one of the goroutines that use the files: Close and
// Abandon wait for it, and after them none begins.
//
// The rest of the package is the engine's catalog: which topics and groups there are, kept in one file that is replaced as a
// whole, and the positions of consumers, each in a file that is as well.
package storage
