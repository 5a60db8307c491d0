//go:build !mutants

package mutant

// Enabled reports whether faults can be planted.
const Enabled = false

// Is reports whether a fault is planted.
func Is(Fault) bool { return false }
