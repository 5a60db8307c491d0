// Package disk keeps the records of one partition in files, so that what has been synced survives a crash at any instant. It
// is the lower half of a durable topic: it knows nothing of publishers, of topics by name, or of the log in memory that
// readers use.
//
// A [Log] is one directory:
//
//	LOCK                         one opener at a time
//	state                        where the log begins, and up to where it was safe when that was written
//	00000000000000000000.leat    records from offset 0 on, sealed: its end says so, and has an index
//	00000000000000004711.leat    the records from 4711 on: the active file, longer than what is in it; while the one
//	                             before is being sealed it still has .tmp behind its name
//
// One goroutine at a time, the appender, calls Write with batches of records; each becomes one frame (package frame), by one
// write. Sync makes safe what has been written; it may be called beside Write, and then is for what was written before. Roll
// seals the active file and begins the next; Write does so when the file is full, or with Config.Behind leaves sealing to
// another goroutine and goes on. Trim drops whole files at the front.
//
// # Two words
//
// A record that Write has taken is written: it survives the end of the process, however that comes. A record below Durable is
// durable: it survives a power cut as well. What may be told to whom at which of the two is for the caller.
//
// # Opening
//
// Open reads the head and the end of each file, and from front to back only one that was not sealed: the last (and the one
// behind it, if it did not have its name yet). Where its frames end there may be the torn rest of a write; that is cut off, and
// reported. But if anything shows that records there had been safe (a later frame that says so, the state, a later file), it is
// damage: Open refuses with a *CorruptError, and changes and deletes nothing. Salvage then copies what is sound into a new
// directory, and lists what is not.
//
// Pieces says what the indexes know of the records of files that are full, so that a log in memory can have a place for them
// before they are read; ReadPiece reads them.
//
// Each open begins a new file under a new epoch, so nothing is ever appended behind garbage, and no block of an earlier life
// passes for one of this. A log has as many files as it was filled and opened; one without records is replaced, not added to.
//
// # When something fails
//
// A write or a sync that fails ends writing: the same error comes from every later call, and nothing is tried again behind the
// caller's back, since nobody knows what reached the disk. Reading goes on. Resume, or Close and Open, look at what is there,
// write again what may be seen but not safe, and begin a new file. A full disk is such an error too; it matches ErrFull.
//
// # What it does not do
//
// It has no goroutines and no timers, and wakes nobody. It does not compress, encrypt or replicate.
package disk
