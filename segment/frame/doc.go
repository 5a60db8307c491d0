// Package frame is the bytes of a log on disk: what a file of records begins with, the frames that follow, and the small file
// beside them that says where the log begins. FORMAT.md has the pictures, and the argument why a crash or a damaged disk is
// noticed.
//
// All functions are pure: from values to bytes, appended to a slice of the caller's, and from bytes to values that point into
// them. Those that decode take any bytes whatever. They never panic, never look beyond the bytes they were given, and
// allocate nothing, so that a length that a file claims can cost no memory.
//
// A batch of records is made by a [Builder], which puts them where they will lie on disk, and so costs one copy:
//
//	b.Reset()
//	b.Add(&frame.Record{Key: k, Value: v, Appended: now})
//	file.WriteAt(b.Finish(seed, pos, frame.Header{First: next, Epoch: epoch, SyncedTo: durable}), pos)
//
// and read by [Decode] and [Batch.Records].
package frame
