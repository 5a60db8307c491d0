package rivals

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// HoldClasses keeps the Java program compiled for as long as the test runs.
func HoldClasses(t *testing.T) {
	_, err := lmaxClasses.take()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lmaxClasses.give()) })
}

// KeepFew makes retention/leat-1e8 start behind fewer records.
func KeepFew(t *testing.T, n uint64) {
	old := keptRecords
	keptRecords = n
	t.Cleanup(func() { keptRecords = old })
}
