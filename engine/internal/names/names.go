package names

import "fmt"

// MaxLen is the length of the longest name, in bytes.
const MaxLen = 249

// Reason is what is wrong with a name.
type Reason uint8

// The reasons why a name may be refused.
const (
	Empty     Reason = iota + 1 // it has no character
	TooLong                     // it has more than MaxLen bytes
	Directory                   // it is "." or ".."
	Character                   // it has a character that is not allowed
)

// Error says why a name was refused. Its text begins with the word name, for the caller to put before it whose name it is.
type Error struct {
	Name   string
	Reason Reason
	At     int // with Character: the index of the first byte that is not allowed
}

// Error says what is wrong, and quotes as much of the name as is reasonable in a line of a log.
func (e *Error) Error() string {
	switch e.Reason {
	case Empty:
		return "name is empty"
	case TooLong:
		return fmt.Sprintf("name %s is %d bytes long: at most %d are allowed", quote(e.Name), len(e.Name), MaxLen)
	case Directory:
		return fmt.Sprintf("name %s is that of a directory", quote(e.Name))
	}
	return fmt.Sprintf("name %s has byte %q at %d: only a-z, A-Z, 0-9, '.', '_' and '-' are allowed",
		quote(e.Name), e.Name[e.At:e.At+1], e.At)
}

// Check returns nil if name may be used, or an *Error.
func Check(name string) error {
	switch {
	case name == "":
		return &Error{name, Empty, 0}
	case len(name) > MaxLen:
		return &Error{name, TooLong, 0}
	case name == "." || name == "..":
		return &Error{name, Directory, 0}
	}
	for i := range len(name) {
		if !allowed(name[i]) {
			return &Error{name, Character, i}
		}
	}
	return nil
}

func allowed(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

// quote returns name in quotes, escaped, and cut if it is long.
func quote(name string) string {
	const most = 64
	if len(name) > most {
		return fmt.Sprintf("%+q...", name[:most])
	}
	return fmt.Sprintf("%+q", name)
}
