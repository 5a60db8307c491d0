// Package murmur2 hashes a key to a partition exactly as Kafka's default partitioner does, so that a key keeps its partition
// when records move between Leat and a Kafka cluster with the same number of partitions.
//
// The hash is the 32-bit MurmurHash2 of Austin Appleby with Kafka's seed, over the bytes of the key in little-endian order;
// the partition is that hash with its top bit cleared, modulo the number of partitions. Clearing the bit is not the same as
// taking the absolute value or an unsigned modulo: clients that did one of those put half of all keys elsewhere.
//
// Everything here is a pure function without state: any number of goroutines may call it. Nothing allocates.
package murmur2
