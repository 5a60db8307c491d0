package group

import (
	"errors"
	"fmt"
)

var (
	// ErrFenced is what errors of a stale owner, member or token wrap: a FencedError or a TokenError. Trying again does not
	// help.
	ErrFenced = errors.New("leat: fenced")

	// ErrMemberExists is returned by Join for a name that a member has. It works once that member has left.
	ErrMemberExists = errors.New("leat: member exists")

	// ErrName is returned by Join for a member without a name. Trying again does not help.
	ErrName = errors.New("leat: member has no name")

	// ErrNotRevoking is returned by Released for a partition that its owner has not been asked to give back.
	ErrNotRevoking = errors.New("leat: partition is not being revoked")

	// ErrShrink is returned by SetPartitions for a topic that has more partitions already. Trying again does not help.
	ErrShrink = errors.New("leat: partitions cannot be taken from a topic")

	// ErrUnknownPartition is returned for a partition that the group has not been told of.
	ErrUnknownPartition = errors.New("leat: unknown partition")

	// ErrUnknownMember is returned by Forget for a name that no member has.
	ErrUnknownMember = errors.New("leat: unknown member")
)

// Fence is why a member or an owner has been fenced.
type Fence uint8

// What fences.
const (
	// FenceMember: the member is not, or no longer, one of the group.
	FenceMember Fence = iota + 1
	// FenceOwner: the ownership has ended; the partition is free, or somebody has it under a newer generation.
	FenceOwner
	// FenceForeign: the generation is the present one, but it is another member's.
	FenceForeign
)

var fenceTexts = [...]string{
	FenceMember:  "no such member of the group",
	FenceOwner:   "no longer owned",
	FenceForeign: "owned by another member",
}

// String says it in a few words.
func (f Fence) String() string { return textOf(f, fenceTexts[:], "Fence") }

// FencedError refuses a call of a member or an owner that is one no more. It wraps ErrFenced.
type FencedError struct {
	Reason     Fence
	Member     MemberID  // who has called
	Partition  Partition // of which partition; with FenceMember it may be none
	Generation uint64    // with which generation
	Current    uint64    // the partition's present generation, which is newer unless it is another member's
	Owner      MemberID  // who owns it now; 0 if nobody does
}

// Error says who is refused what, and what is the case instead.
func (e *FencedError) Error() string {
	if e.Reason == FenceMember {
		return fmt.Sprintf("leat: fenced: member %d: %v", e.Member, e.Reason)
	}
	return fmt.Sprintf("leat: fenced: member %d, partition %v, generation %d: %v (generation %d, owner %d)",
		e.Member, e.Partition, e.Generation, e.Reason, e.Current, e.Owner)
}

// Unwrap returns ErrFenced.
func (e *FencedError) Unwrap() error { return ErrFenced }
