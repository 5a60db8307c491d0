// Package segment keeps the records of one partition in memory: an append-only log of records as bytes, in blocks without
// pointers.
package segment
