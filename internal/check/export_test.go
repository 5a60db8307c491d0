package check

// Text writes an operation with its names.
func (h *History) Text(i int) string { return h.text(i) }
