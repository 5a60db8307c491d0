//go:build mutants

package mutant

import "os"

// Enabled reports whether faults can be planted.
const Enabled = true

var planted = Fault(os.Getenv("LEAT_MUTANT"))

// Is reports whether a fault is planted.
func Is(f Fault) bool { return f == planted }
