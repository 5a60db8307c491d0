package vfs

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// seed is that of all sums of this process.
var seed = maphash.MakeSeed()

// Sum returns a hash of all that is visible: names, and the bytes of files. It differs from process to process.
func (m *Mem) Sum() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var h maphash.Hash
	h.SetSeed(seed)
	m.root.sum(&h)
	return h.Sum64()
}

// sum adds what is visible from n on.
func (n *node) sum(h *maphash.Hash) {
	var b [8]byte
	put := func(length int) {
		binary.LittleEndian.PutUint64(b[:], uint64(length))
		_, _ = h.Write(b[:])
	}
	if n.names == nil {
		put(len(n.now))
		_, _ = h.Write(n.now)
		return
	}
	names := make([]string, 0, len(n.names))
	for name := range n.names {
		names = append(names, name)
	}
	slices.Sort(names)
	put(-1 - len(names)) // no file has as many bytes
	for _, name := range names {
		put(len(name))
		_, _ = h.WriteString(name)
		n.names[name].sum(h)
	}
}
