package engine

// FirstAt returns c for a topic whose partitions begin at that offset, as if so many records had been there before.
func FirstAt(c TopicConfig, off Offset) TopicConfig {
	c.first = uint64(off)
	return c
}
