// Package vfs is the seam between the files of a log and the file system: the few operations that such a log needs, each with
// what it promises about a power cut, and nothing more.
//
// There are three file systems. [OS] is the real one. [Mem] keeps its files in memory, and remembers of each what has been
// synced: Crashes enumerates what a power cut may leave. [Faulty] stands in front of another and makes chosen operations
// fail, tear, or report a failure after they have been done.
//
// # What is promised
//
// Until File.Sync has returned nil, any part of what was written since the last Sync may be missing after a power cut, in
// units of sectors of 512 bytes, in any order; a file that has grown may have its new length and zeroes in it. Allocate and
// Truncate count as writes. Until SyncDir has returned nil, each of the files made, renamed and removed in that directory may
// be there as before; a rename happens or does not happen, but never half. To sync a file says nothing about its name, and
// to sync a directory nothing about the bytes in its files.
//
// After a Sync that failed nothing is known about what was written since the one before, also if a later Sync succeeds: the
// bytes may be seen by ReadAt and never reach the disk. Only writing them again and syncing that makes them safe.
//
// # What it does not do
//
// It maps no files into memory, does no asynchronous work, and does not wait for locks.
package vfs
