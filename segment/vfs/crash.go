package vfs

import (
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
)

// sector is what a disk writes as a whole, or not at all.
const sector = 512

// kind says what a piece changes.
type kind uint8

const (
	wrote   kind = iota // bytes of a file, within one sector
	grown               // the length of a file, to at least off
	cut                 // the length of a file, to off
	linked              // a name, for a new file or directory
	moved               // a name, to another
	removed             // a name
)

// piece is a change that a power cut may or may not keep.
type piece struct {
	kind kind
	at   *node // the file or the directory
	off  int64
	data []byte
	name string
	to   string
	node *node // what the name is for
}

// appendSectors appends the pieces of a write. They keep p.
func appendSectors(list []piece, n *node, off int64, p []byte) []piece {
	for len(p) > 0 {
		k := min(int64(len(p)), sector-off%sector)
		list = append(list, piece{kind: wrote, at: n, off: off, data: p[:k:k]})
		p, off = p[k:], off+k
	}
	return list
}

// applyTo changes the bytes of a file.
func (p *piece) applyTo(b []byte) []byte {
	switch p.kind {
	case grown:
		if more := p.off - int64(len(b)); more > 0 {
			b = append(b, make([]byte, more)...)
		}
	case cut:
		b = b[:min(p.off, int64(len(b)))]
		b = slices.Clip(b) // what it grows by later is zeroes
	case wrote:
		if p.off < int64(len(b)) {
			copy(b[p.off:], p.data)
		}
	}
	return b
}

// settle makes safe what is pending for n.
func (m *Mem) settle(n *node) {
	b, changed := n.safe, false
	for i := range m.pieces {
		p := &m.pieces[i]
		if p.at != n {
			continue
		}
		if n.names != nil {
			rename(n.safeNames, p, p.node)
			continue
		}
		if !changed {
			b, changed = slices.Clone(b), true
		}
		b = p.applyTo(b)
	}
	n.safe = b
	m.pieces = slices.DeleteFunc(m.pieces, func(p piece) bool { return p.at == n })
}

// rename changes the names of a directory, in which n is what p is about.
func rename(names map[string]*node, p *piece, n *node) {
	switch p.kind {
	case linked:
		names[p.name] = n
	case moved:
		if names[p.name] == n {
			delete(names, p.name)
		}
		names[p.to] = n
	case removed:
		if names[p.name] == n {
			delete(names, p.name)
		}
	}
}

// Pending returns how many pieces a power cut may take away.
func (m *Mem) Pending() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pieces)
}

// Crash returns a file system as a power cut now may leave it: with all that has been synced, and those of the pending pieces
// for which keep says so. It is asked once for each, in the order in which the changes were made. m stays as it is, and the
// two share nothing that changes. Nobody holds a lock in the new one, and it has no limit.
func (m *Mem) Crash(keep func(i int) bool) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := NewMem()
	// copies are the nodes of the new file system, each made when it is first met.
	copies := map[*node]*node{}
	var copied func(n *node) *node
	copied = func(n *node) *node {
		c := copies[n]
		if c == nil {
			if n.names != nil {
				c = newDir()
				copies[n] = c
				for name, child := range n.safeNames {
					c.names[name] = copied(child)
				}
				return c
			}
			c = &node{now: n.safe, shared: true}
			copies[n] = c
		}
		return c
	}
	after.root = copied(m.root)
	for i := range m.pieces {
		if !keep(i) {
			continue
		}
		p := &m.pieces[i]
		at := copied(p.at)
		if at.names != nil {
			rename(at.names, p, copied(p.node))
			continue
		}
		at.own()
		at.now = p.applyTo(at.now)
	}
	after.root.freeze(after)
	return after
}

// freeze makes what is visible below n what has been synced, and counts it.
func (n *node) freeze(m *Mem) {
	if n.names == nil {
		n.safe, n.shared = n.now, true
		m.used += int64(len(n.now))
		return
	}
	n.safeNames = maps.Clone(n.names)
	for _, child := range n.names {
		child.freeze(m)
	}
}

// Crashes iterates over file systems that a power cut now may leave, at most limit of them, and no two with the same pieces.
// If there are not more than limit it gives all. Otherwise it gives the one with only what was synced, the one with
// everything, each that ends at some piece (of many, some), some that lack one piece, and the rest at random from seed. What
// others do meanwhile may be in those that come later.
func (m *Mem) Crashes(limit int, seed uint64) iter.Seq[*Mem] {
	return func(yield func(*Mem) bool) {
		n := m.Pending()
		if n < 30 && 1<<n <= limit {
			for set := range 1 << n {
				if !yield(m.Crash(func(i int) bool { return set>>i&1 != 0 })) {
					return
				}
			}
			return
		}
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		seen := map[string]bool{}
		set := make([]byte, n)
		give := func(keep func(i int) bool) bool {
			for i := range set {
				set[i] = 0
				if keep(i) {
					set[i] = 1
				}
			}
			if seen[string(set)] || len(seen) >= limit {
				return true
			}
			seen[string(set)] = true
			return yield(m.Crash(func(i int) bool { return i < n && set[i] != 0 }))
		}
		ok := give(func(int) bool { return false }) && give(func(int) bool { return true })
		step := max(1, 2*n/max(limit, 1))
		for at := 0; ok && at <= n; at += step {
			ok = give(func(i int) bool { return i < n-at })
			ok = ok && give(func(i int) bool { return i != n-1-at })
		}
		for tries := 0; ok && len(seen) < limit && tries < 2*limit; tries++ {
			percent := []int{10, 50, 90}[tries%3]
			ok = give(func(int) bool { return rng.IntN(100) < percent })
		}
	}
}
