// Package rivals moves the same messages through Leat, each way in and out, and through everything else that a Go program might
// move messages with. It is a module of its own, so that nobody who uses Leat gets what the rivals need.
//
//	go -C bench/rivals test ./...
//	go -C bench/rivals run ./cmd/compare -list
//	go -C bench/rivals run ./cmd/compare
//	go -C bench/rivals run ./cmd/leatload -engine xsync-mpmc -rate 100000
//
// Package arena is what makes them comparable, and says how to add one: it is an entry in [All] and a type with three methods.
//
// Every rival is driven the way its own documentation recommends for speed without loss; a comment at each says how, and why.
// A ring, queue or channel copies a message into itself, as a value where its type allows that; what takes pointers or byte
// slices gets fresh memory for each message, since its consumer may hold on to that.
package rivals

import (
	"path"
	"slices"
	"strings"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/target"
	"github.com/leatlog/leat/bench/rivals/arena"
)

// All returns every rival, Leat's ways first, and last the floors and what is measured by itself. Those that cannot run here are among
// them; see arena.Rival.Missing.
func All() []*arena.Rival { return slices.Concat(engines(), floors(), specials()) }

// engines are those that somebody might use.
func engines() []*arena.Rival {
	return slices.Concat(leats(), chans(), logs(), rings(), xsyncs(), queues(), buses(), servers(), lmaxes())
}

// Named returns the rivals whose names match a pattern, as path.Match does; "all" is everything that
// moves messages. No match is no error.
func Named(pattern string) (found []*arena.Rival, err error) {
	for _, r := range All() {
		ok, err := path.Match(pattern, r.Name)
		if err != nil {
			return nil, err
		}
		if ok || pattern == "all" && !r.Special() {
			found = append(found, r)
		}
	}
	return found, nil
}

// Targets returns the rivals that the load harness can drive as well, other than Leat's ways, and those whose names its own targets
// have: see arena.Target.
func Targets() (list []load.Target) {
	for _, r := range engines() {
		_, taken := target.Named(r.Name)
		if t := arena.Target(r); t != nil && !taken && !strings.HasPrefix(r.Name, leatPrefix) {
			list = append(list, t)
		}
	}
	return list
}

// capacity is how many messages fit into what has to be given a capacity: as many as into a channel of package baseline, so
// that nobody wins by a larger buffer. What has a recommendation of its own says so.
const capacity = 1024
