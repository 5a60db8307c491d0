package group

import "fmt"

// Word is the state of one partition's ownership: its generation, whether it is owned, and whether it is being revoked. It
// fits an atomic, so that the owner can look without a lock whether it still is one. The coordinator alone decides what the
// word is; the generation is different in each interval of ownership and between them, so it also says who the owner is.
//
// # What the engine has to do with it
//
// Before each delivery the owner's lane looks whether the word is exactly the one of its generation, neither revoked nor
// fenced, in the way of the proof of delivery.Lane: it says that it is about to deliver, looks, and then delivers; who has
// changed the word waits until the lane is no longer about to. So nothing is delivered by an owner after its fence has
// returned.
//
// A look before a commit is not enough: the fence may come between the two. So each ownership has its own committed
// position, moved by CAS, with a bit that the fence sets. Whoever hands the partition on sets the bit first and takes over
// the position that is final then; a commit either came before, or fails.
type Word uint64

const (
	wordOwned Word = 1 << iota
	wordRevoking

	wordBits = 2
)

func freeWord(generation uint64) Word { return Word(generation << wordBits) }

func ownedWord(generation uint64) Word { return freeWord(generation) | wordOwned }

// Generation returns the number of the present ownership, or of the time since the last one ended.
func (w Word) Generation() uint64 { return uint64(w >> wordBits) }

// Owned reports whether somebody owns the partition.
func (w Word) Owned() bool { return w&wordOwned != 0 }

// Revoking reports whether the owner has been asked to give it back.
func (w Word) Revoking() bool { return w&wordRevoking != 0 }

// MayDeliver reports whether the owner of that generation may start on another record.
func (w Word) MayDeliver(generation uint64) bool { return w == ownedWord(generation) }

// MayCommit reports whether the owner of that generation may still commit and acknowledge: it may while it is being revoked.
func (w Word) MayCommit(generation uint64) bool { return w&^wordRevoking == ownedWord(generation) }

// String returns for instance "17 owned".
func (w Word) String() string {
	switch {
	case w.Revoking():
		return fmt.Sprintf("%d revoking", w.Generation())
	case w.Owned():
		return fmt.Sprintf("%d owned", w.Generation())
	}
	return fmt.Sprintf("%d free", w.Generation())
}
