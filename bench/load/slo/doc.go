// Package slo reads service level objectives such as
//
//	e2e.p99<200us,rate>1e6,lost=0
//
// and says which of them a result meets. It knows how to read and judge; where the figures come from is the caller's: a [Lookup].
package slo
