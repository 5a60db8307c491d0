package engine

// FirstAt returns c for a topic whose partitions begin at that offset, as if so many records had been there before.
func FirstAt(c TopicConfig, off Offset) TopicConfig {
	c.first = uint64(off)
	return c
}

// Coming is SetPartitions up to where publishers do not see the partitions yet; appear does the rest.
func (t *Topic) Coming(n int) (appear func(), err error) {
	t.growing.Lock()
	defer t.growing.Unlock()
	before := t.parts.load()
	parts := t.newPartitions(before, n, nil)
	if err := t.add(parts, len(before)); err != nil {
		return nil, err
	}
	return func() { t.parts.store(parts) }, nil
}

// WithFS returns c with another file system.
func (c Config) WithFS(fsys vfs.FS) Config { c.fs = fsys; return c }
