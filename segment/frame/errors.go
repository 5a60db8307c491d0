package frame

import "errors"

// Errors of decoding. Each says what is wrong with the bytes at one place; what that means for the log is for the caller. To
// try again does not help.
var (
	// ErrShort says that the bytes end before what they should hold does.
	ErrShort = errors.New("frame: too short")

	// ErrMagic says that there is something else, or nothing: the bytes do not begin as they must.
	ErrMagic = errors.New("frame: wrong magic number")

	// ErrVersion says that the file is of a version that this program does not know.
	ErrVersion = errors.New("frame: unknown format version")

	// ErrChecksum says that the bytes are not those that were written, or lie where they were not written.
	ErrChecksum = errors.New("frame: checksum does not match")

	// ErrFormat says that the checksum is right and the contents are impossible.
	ErrFormat = errors.New("frame: impossible contents")
)
