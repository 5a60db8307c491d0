package segment

import (
	"math/bits"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

const (
	minBlockBytes = 4 << 10
	maxBlockBytes = 1 << 30

	minClass = 12 // log2 of minBlockBytes
	maxClass = 30 // log2 of maxBlockBytes
)

// block is the memory of one segment: one allocation without pointers, seen as index entries and as bytes. A segment may
// use less than there is, and then index is shorter than its capacity.
type block struct {
	index []entry
	data  []byte
	class uint8 // log2 of the size in bytes
}

func (b *block) size() int64 { return 1 << b.class }

// classFor returns the class of the smallest block of at least n bytes; n is at most maxBlockBytes.
func classFor(n uint64) uint8 {
	if n <= minBlockBytes {
		return minClass
	}
	return uint8(bits.Len64(n - 1))
}

// newBlock allocates a block. It is on the Go heap, so that the collector frees it once no view is left, and the race
// detector sees every access to it; and it has no pointers, so that the collector never looks into it.
func newBlock(class uint8) block { return blockOf(make([]entry, 1<<class/EntryBytes), class) }

// blockOf returns the block with that memory.
func blockOf(index []entry, class uint8) block {
	data := unsafe.Slice((*byte)(unsafe.Pointer(&index[0])), len(index)*EntryBytes)
	return block{index: index, data: data, class: class}
}

// Pool hands out the blocks of memory that segments are made of, takes them back, and bounds how much there is. Any number
// of logs may share one. Any goroutine may call its methods.
//
// Blocks have power-of-two sizes from 4 KiB to 1 GiB. A block that comes back is kept for reuse, up to a bound, because
// fresh memory costs 3 to 9 times as much to append to (page faults, zeroing) and brings the next collection nearer.
//
// A block counts as used from when a segment gets it until the segment is dropped. If somebody then still holds a view of
// it, it is left to the collector, and from then on counts no longer.
type Pool struct {
	// Immutable.
	max  int64 // most bytes used and kept, 0 for no bound
	keep int64 // most bytes kept

	// poison makes put overwrite what comes back, so that a test sees a view that outlived its block. Set only by tests,
	// before the first use.
	poison bool

	freed atomicx.Event

	mu   atomicx.Mutex
	used int64                   // under mu: bytes in segments
	kept int64                   // under mu: bytes in free
	free [maxClass + 1][][]entry // under mu: kept blocks by class, latest last
}

// NewPool returns a pool of at most maxBytes of blocks, used and kept, of which at most keepBytes wait for reuse. No bound
// if maxBytes is 0; otherwise it allows for at least one block of 4 KiB. If keepBytes is 0 nothing is reused.
func NewPool(maxBytes, keepBytes int64) *Pool {
	if maxBytes < 0 || keepBytes < 0 {
		panic("segment: NewPool with a negative bound")
	}
	if maxBytes > 0 {
		maxBytes = max(maxBytes, minBlockBytes)
	}
	return &Pool{max: maxBytes, keep: keepBytes}
}

// Used returns how many bytes of blocks segments have.
func (p *Pool) Used() int64 { used, _ := p.Held(); return used }

// Kept returns how many bytes of blocks wait for reuse.
func (p *Pool) Kept() int64 { _, kept := p.Held(); return kept }

// Held returns both, as they were at one moment.
func (p *Pool) Held() (used, kept int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used, p.kept
}

// Freed returns the event that is broadcast whenever memory comes back: after ErrNoMemory, prepare a waiter on it, try once
// more, and then wait.
func (p *Pool) Freed() *atomicx.Event { return &p.freed }

// Largest returns the size of the largest block that the pool could ever hand out, or 0 if it has no bound. Records that
// take more together, with their index entries, can never be ensured.
func (p *Pool) Largest() int64 {
	if p.max == 0 {
		return 0
	}
	return p.largest()
}

func (p *Pool) largest() int64 { return int64(p.maxRecord() + besideBytes) }

// maxRecord returns how large key, value and headers of a record may be together to fit into the largest block that the
// pool could ever hand out.
func (p *Pool) maxRecord() uint64 {
	if p.max == 0 || p.max >= maxBlockBytes {
		return MaxRecordBytes
	}
	return 1<<(bits.Len64(uint64(p.max))-1) - besideBytes
}

// get returns a block of class want, or, if the budget does not allow it, of the largest class below that and not below
// least that it does allow; ok is false if there is none.
func (p *Pool) get(want, least uint8) (b block, ok bool) {
	for class := want; class >= least; class-- {
		index, ok := p.take(class)
		switch {
		case !ok:
		case index == nil:
			return newBlock(class), true
		default:
			return blockOf(index, class), true
		}
	}
	return block{}, false
}

// take counts one block of that class as used and returns a kept one, or nil if the caller is to allocate it.
func (p *Pool) take(class uint8) (index []entry, ok bool) {
	size := int64(1) << class
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free[class]); n > 0 {
		index = p.free[class][n-1]
		p.free[class][n-1] = nil
		p.free[class] = p.free[class][:n-1]
		p.kept -= size
		p.used += size
		return index, true
	}
	if p.max > 0 {
		if size > p.max-p.used {
			return nil, false
		}
		p.shed(maxClass+1, p.max-p.used-size)
	}
	p.used += size
	return nil, true
}

// reserve counts a block of that size as used that is not one of the pool's, nor will be. It fails if the budget does not allow
// it.
func (p *Pool) reserve(size int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.max > 0 {
		if size > p.max-p.used {
			return false
		}
		p.shed(maxClass+1, p.max-p.used-size)
	}
	p.used += size
	return true
}

// drop is the end of a block that reserve has counted, and that nobody can read any more. If the segment was cold to the end it
// is empty.
func (p *Pool) drop(b block, size int64) {
	p.spoil(b)
	p.forget(size)
}

// spoil overwrites a block that nobody can read any more, if a test has asked for it.
func (p *Pool) spoil(b block) {
	if !p.poison {
		return
	}
	all := b.index[:cap(b.index)]
	for i := range all {
		atomicx.Writes(unsafe.Pointer(&all[i]))
		all[i] = entry{span: 0xdbdbdbdbdbdbdbdb, stamp: 0xdbdbdbdbdbdbdbdb}
	}
}

// put takes a block back from a segment that nobody can read any more.
func (p *Pool) put(b block) {
	p.spoil(b)
	size := b.size()
	p.mu.Lock()
	p.used -= size
	if size <= p.keep {
		// Small blocks make way: they are left over from logs that have grown, and cost little to make again.
		p.shed(b.class, p.keep-size)
		if size <= p.keep-p.kept {
			p.free[b.class] = append(p.free[b.class], b.index[:cap(b.index)])
			p.kept += size
		}
	}
	p.mu.Unlock()
	p.freed.Broadcast() // after the change; a waiter looks again under mu
}

// forget takes note that a block was left to the collector.
func (p *Pool) forget(size int64) {
	p.mu.Lock()
	p.used -= size
	p.mu.Unlock()
	p.freed.Broadcast()
}

// shed leaves kept blocks of classes below limit to the collector, smallest first, until no more than most bytes are kept.
// The caller holds mu.
func (p *Pool) shed(limit uint8, most int64) {
	for class := uint8(minClass); class < limit && p.kept > most; class++ {
		for n := len(p.free[class]); n > 0 && p.kept > most; n-- {
			p.free[class][n-1] = nil
			p.free[class] = p.free[class][:n-1]
			p.kept -= 1 << class
		}
	}
}
