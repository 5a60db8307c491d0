// Package sweep finds the knee of a system under load: the highest rate at which it still does what it should, as an SLO says.
//
// [Find] raises the rate by a factor until the SLO is missed, and then halves the gap between the highest rate that met it and the
// lowest that missed it, until the gap is small. It knows nothing of loads and SLOs: it calls a function with a rate, which makes
// one run and says whether it met.
//
// Runs are noisy: near the knee the same rate now meets and now misses, and far below it a run may miss since the machine was busy
// for a moment. So a run that misses is repeated, and what two of three runs say counts; and at the end the knee must meet once
// more and the rate above it miss three times, or the search goes on.
package sweep
