package dispatch

import "runtime"

// goroutineID returns the number that the runtime prints for the calling goroutine ("goroutine 18 [running]:"). The runtime
// never gives a number out twice. It costs some microseconds, so it is for starting a worker and for calls that may block
// anyway; 0 means that the runtime's text was not understood, and never equals anybody's number.
func goroutineID() uint64 {
	var text [64]byte
	return parseGoroutineID(text[:runtime.Stack(text[:], false)])
}

func parseGoroutineID(text []byte) uint64 {
	const prefix = "goroutine "
	if len(text) < len(prefix) || string(text[:len(prefix)]) != prefix {
		return 0
	}
	var id uint64
	for i, c := range text[len(prefix):] {
		if c < '0' || c > '9' {
			if c != ' ' || i == 0 {
				return 0
			}
			return id
		}
		id = id*10 + uint64(c-'0')
	}
	return 0
}
