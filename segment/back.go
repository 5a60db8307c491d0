package segment

// Back moves the position back to off, which must not be below the first record that Next has returned since the last Refill
// or Seek, and keeps the window: Next returns the same records again.
func (r *Reader) Back(off uint64) {
	if off != r.pos {
		r.pos = off
		r.enter(r.seg)
	}
}
