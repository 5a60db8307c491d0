// Package mutant plants faults. The code that it is planted in asks
//
//	if mutant.Enabled && mutant.Is(mutant.CommitAfterFence) {
//
// and does something wrong then. Enabled is a constant, and false but under the build tag mutants, so nothing of it is left
// in an ordinary build. Under the tag the environment variable LEAT_MUTANT says which fault there is. The chaos run of package
// engine has to find each of them: that is the proof that it looks.
package mutant

// Fault is the name of a fault, as it stands in LEAT_MUTANT.
type Fault string

// The faults.
const (
	CommitAfterFence Fault = "commit-after-fence" // a fenced owner still commits
	ReleaseTooEarly  Fault = "release-too-early"  // a partition is handed on while its handler runs
	ResumeBehind     Fault = "resume-behind"      // a new owner skips a record
	ResumeBefore     Fault = "resume-before"      // a new owner begins a record too early
	CommitBeforeCall Fault = "commit-before-call" // at least once is at most once
	CommitAfterCall  Fault = "commit-after-call"  // at most once is at least once
	SilentGap        Fault = "silent-gap"         // nobody is told what retention has dropped
	DeliverAfterStop Fault = "deliver-after-stop" // a stopped owner goes on
	AckOfAnother     Fault = "ack-of-another"     // a late acknowledgement counts
	ForgetExpired    Fault = "forget-expired"     // what was not acknowledged in time does not come again
	HighestSettled   Fault = "highest-settled"    // by key, the position passes what is in progress
	KeyOutOfOrder    Fault = "key-out-of-order"   // two records of one key are worked on at once
	GrownUnnoticed   Fault = "grown-unnoticed"    // nobody reads the partitions that a topic gets
	BuryUnpublished  Fault = "bury-unpublished"   // a dead letter counts that was not published
	SeekUndone       Fault = "seek-undone"        // a commit undoes a seek
	WrongOffset      Fault = "wrong-offset"       // a publish returns another record's offset
)

// All returns all faults.
func All() []Fault {
	return []Fault{
		CommitAfterFence, ReleaseTooEarly, ResumeBehind, ResumeBefore, CommitBeforeCall, CommitAfterCall, SilentGap,
		DeliverAfterStop, AckOfAnother, ForgetExpired, HighestSettled, KeyOutOfOrder, GrownUnnoticed, BuryUnpublished, SeekUndone,
		WrongOffset,
	}
}
