package engine

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/leatlog/leat/engine/internal/murmur2"
)

// Partitioner chooses a partition from 0 to n-1 for a record. It is called under no lock, on the publisher's goroutine, and
// by many at once. A result that is out of range makes the publish fail with ErrUnknownPartition, a panic with
// ErrPartitioner.
type Partitioner interface {
	Partition(r *Record, n int) int
}

// PartitionerFunc is a function that is a Partitioner.
type PartitionerFunc func(r *Record, n int) int

// Partition calls f.
func (f PartitionerFunc) Partition(r *Record, n int) int { return f(r, n) }

// ByKey chooses as Kafka's clients do, so that a key keeps its partition when data moves: the murmur2 hash of the key with
// the top bit cleared, modulo n. Records with a nil key go round robin; an empty key is a key like any other.
func ByKey() Partitioner { return &byKey{nilKeys: newRoundRobin()} }

// RoundRobin chooses one partition after the other.
func RoundRobin() Partitioner { return newRoundRobin() }

// Explicit chooses the Partition of the record.
func Explicit() Partitioner { return explicit{} }

type explicit struct{}

func (explicit) Partition(r *Record, _ int) int { return int(r.Partition) }

type byKey struct{ nilKeys *roundRobin }

func (p *byKey) Partition(r *Record, n int) int {
	if r.Key == nil {
		return p.nilKeys.Partition(r, n)
	}
	return murmur2.Partition(r.Key, n)
}

type roundRobin struct {
	// next is added to by every publisher; nobody else reads it. It publishes no memory.
	next atomic.Uint32
}

// newRoundRobin starts anywhere, so that many short-lived ones do not all begin with partition 0.
func newRoundRobin() *roundRobin {
	p := &roundRobin{}
	p.next.Store(rand.Uint32())
	return p
}

func (p *roundRobin) Partition(_ *Record, n int) int { return int(p.next.Add(1) % uint32(n)) }
