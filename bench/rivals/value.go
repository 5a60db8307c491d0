package rivals

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/leatlog/leat/bench/rivals/arena"
)

// value is a message that travels by value.
type value interface {
	[16]byte | [64]byte | [1024]byte
}

// bytesOf is v[:], which does not work for a type parameter.
func bytesOf[T value](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

// opener opens a line.
type opener = func(*arena.Job) (arena.Line, error)

// bySize picks the opener of the type that has the size of a message.
func bySize(of16, of64, of1024 opener) opener {
	return func(j *arena.Job) (arena.Line, error) {
		switch j.Size {
		case 16:
			return of16(j)
		case 64:
			return of64(j)
		case 1024:
			return of1024(j)
		}
		return nil, fmt.Errorf("%w: messages of %d bytes", arena.ErrUnsupported, j.Size)
	}
}

// every returns the name of a rival that publishes every n messages, and says that it does; 256 is for all that are due.
func every(name string, n int) (full, when string) {
	switch n {
	case 1:
		return fmt.Sprint(name, n), "publishes each message"
	case 256:
		return name, "publishes when there is nothing more to send, at least every 256 messages"
	}
	return fmt.Sprint(name, n), fmt.Sprintf("publishes every %d messages", n)
}

// receive gives s what comes from in, until s is full or in is closed.
func receive[T value](s *arena.Sink, in <-chan T) error {
	var m T
	p := bytesOf(&m)
	for !s.Full() {
		var ok bool
		if m, ok = <-in; !ok {
			return nil
		}
		s.See(p)
	}
	return nil
}

// oneProducer refuses several.
func oneProducer(s arena.Spec) error {
	if s.Topology.Producers > 1 {
		return errors.New("it has one producer")
	}
	return nil
}
