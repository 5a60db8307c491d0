package ring

import "fmt"

// Outcome is what became of a claim. The zero value is no claim.
type Outcome uint8

const (
	// Full means that there is no room for the claim now, or that what room there is is held for a producer that has been
	// waiting in Claim. Nothing was claimed. Trying again later helps.
	Full Outcome = iota
	// Claimed means that the slots are the caller's to fill, and that it must call Ready.
	Claimed
	// ClaimedIdle is Claimed by the one claim that found the consumer asleep: after Ready, the caller must wake the consumer,
	// or be the consumer itself.
	ClaimedIdle
	// Closed means that Close came first. Nothing was claimed. It is final.
	Closed
)

// String returns the name of the outcome.
func (o Outcome) String() string {
	switch o {
	case Full:
		return "full"
	case Claimed:
		return "claimed"
	case ClaimedIdle:
		return "claimed idle"
	case Closed:
		return "closed"
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}
