// Leatdump looks into the directory of an engine with durable topics: what topics and groups there are, in which files, what the
// records are, and whether all of it is sound. It also writes a topic to a file, and makes one of such a file.
//
//	leatdump topics DIR                    topics, with their partitions and how much they hold
//	leatdump segments DIR [TOPIC]          the files
//	leatdump records DIR TOPIC             records as text, in hexadecimal digits, or as lines of JSON
//	leatdump verify DIR [TOPIC]            reads everything and checks every checksum
//	leatdump groups DIR [GROUP]            positions of groups and of named subscriptions
//	leatdump export DIR TOPIC              writes a topic as lines of JSON
//	leatdump import DIR [TOPIC]            makes a topic of what export has written
//
// All but import open for reading only: they change nothing, take no lock, and may be used beside the engine that has the directory.
//
// # Exit codes
//
// 0 all is well, 1 it could not be done, 2 the arguments make no sense, 3 something is damaged.
package main
