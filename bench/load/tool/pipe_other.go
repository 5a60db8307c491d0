//go:build !unix

package tool

// There are no signals for pipes: what cannot be written is told as on any other file.
func keepPipes() {}

func loosePipes() {}

func isPipe(error) bool { return false }
