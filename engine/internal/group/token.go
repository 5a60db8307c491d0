package group

import "fmt"

// Token stands for one acquisition of one record. No two acquisitions have the same, also after a reset.
type Token struct {
	Offset uint64
	ID     uint64 // counts acquisitions; 0 is none
}

// TokenFault is why a token is refused.
type TokenFault uint8

// Why a token is refused.
const (
	// TokenExpired: the hold has ended. The time was up, or the record was given back; it is waiting, or held by somebody
	// else, or dead.
	TokenExpired TokenFault = iota + 1
	// TokenSettled: the record is settled, by this token or by a later one.
	TokenSettled
	// TokenLost: the record was dropped by retention.
	TokenLost
	// TokenReset: the position has been set since.
	TokenReset
	// TokenForeign: another member holds the record under this token.
	TokenForeign
	// TokenUnknown: no such token was given out.
	TokenUnknown
)

var tokenFaults = [...]string{
	TokenExpired: "no longer held",
	TokenSettled: "already settled",
	TokenLost:    "dropped by retention",
	TokenReset:   "position set since",
	TokenForeign: "held by another member",
	TokenUnknown: "no such token",
}

// String says it in a few words.
func (f TokenFault) String() string { return textOf(f, tokenFaults[:], "TokenFault") }

// TokenError refuses what a member wants to do with a record that it does not hold, or holds no more. It wraps ErrFenced.
type TokenError struct {
	Reason  TokenFault
	Member  MemberID // who has called
	Token   Token    // with what
	Current uint64   // the ID of the record's latest acquisition, if it is in the window
	Attempt int      // and its number
}

// Error says what is refused, and why.
func (e *TokenError) Error() string {
	return fmt.Sprintf("leat: fenced: member %d, offset %d, acquisition %d: %v (acquisition %d, attempt %d)",
		e.Member, e.Token.Offset, e.Token.ID, e.Reason, e.Current, e.Attempt)
}

// Unwrap returns ErrFenced.
func (e *TokenError) Unwrap() error { return ErrFenced }
