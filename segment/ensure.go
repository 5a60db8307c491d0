package segment

// EntryBytes is what each record takes in a segment beside its own bytes.
const EntryBytes = entryBytes

// Encoded returns the encoded list, which must not be changed. Its length is what Shape.Headers asks for.
func (h Headers) Encoded() []byte { return h.raw }

// Ensure sees to it that the next record of up to n bytes (headers, key, value and what goes with them, without the index
// entry) can be staged without memory from the pool. It fails with ErrNoMemory if the pool refuses.
func (l *Log) Ensure(n int) error {
	full := n > l.room()
	if !full && l.next != l.until {
		return nil
	}
	if !l.openSegment(n+entryBytes, full, max(l.newest, l.baseTime)) {
		return ErrNoMemory
	}
	return nil
}

// Fits reports whether the pool could hand out a block for a record of n bytes now.
func (p *Pool) Fits(n int64) bool {
	if n > maxBlockBytes {
		return false
	}
	size := int64(1) << classFor(uint64(max(n, 0)+entryBytes))
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.max == 0 || size <= p.max-p.used
}

// Segments returns how many segments there are. Any goroutine may call it.
func (l *Log) Segments() int { return len(l.dir.Load().segs) }
