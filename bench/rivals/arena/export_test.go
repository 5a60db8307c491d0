package arena

import "github.com/leatlog/leat/bench/load"

// Message returns message seq of a producer.
func Message(producer, size int, seq uint64) []byte {
	t := newTemplate(producer, size)
	p := make([]byte, size)
	t.fill(p, idOf(uint64(producer), seq))
	return p
}

// Parse takes a message apart.
func Parse(p []byte, size int) (producer, seq uint64, ok bool) { return parse(p, size) }

// HoldBack makes the producers of a Target's instance wait when so many deliveries are under way.
func HoldBack(in load.Instance, most uint64) { in.(*hosted).most = most }
