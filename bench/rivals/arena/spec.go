package arena

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leatlog/leat/cursor"
)

// Topology says who sends to whom. Every message goes to one partition, by turns, and every partition has as many consumers as
// there are copies, each of which sees all its messages. The consumers of a partition and a copy are a group's business: all
// that is asked is that the messages of one partition come in order and one at a time.
type Topology struct {
	Name       string `json:"name"`
	Producers  int    `json:"producers"`
	Partitions int    `json:"partitions"`
	Copies     int    `json:"copies"`

	// Kind is empty where messages move from producers to consumers. Anything else is a measurement of its own, for the few
	// rivals that are made for it.
	Kind string `json:"kind,omitempty"`
}

// The topologies of the suite.
var (
	OneToOne   = Topology{"1->1", 1, 1, 1, ""}
	ThreeToOne = Topology{"3->1", 3, 1, 1, ""}
	OneToThree = Topology{"1->3", 1, 1, 3, ""}
	FourByFour = Topology{"4x4", 1, 4, 1, ""} // four partitions, a group of four
)

// Topologies returns all of them.
func Topologies() []Topology { return []Topology{OneToOne, ThreeToOne, OneToThree, FourByFour} }

// Consumers returns how many consumers there are: consumer i sees partition i % Partitions.
func (t Topology) Consumers() int { return t.Partitions * t.Copies }

// Sizes returns the sizes of messages, in bytes, that the suite knows: 64 first, since everything else is compared with it.
func Sizes() []int { return []int{64, 16, 1024} }

// Wait says how those who have nothing to do wait for more, where a rival has a choice.
type Wait = cursor.Wait

// The ways to wait: sleep, let others run, keep the processor.
const (
	Park  = cursor.WaitPark
	Yield = cursor.WaitYield
	Spin  = cursor.WaitSpin
)

// Spec is a workload.
type Spec struct {
	Topology Topology
	Size     int // bytes of a message
	Wait     Wait
	Rate     float64 // messages a second of all producers together; 0: as fast as they can
}

// String is for example "1->1 64 B max park".
func (s Spec) String() string {
	return fmt.Sprintf("%s %d B %s %v", s.Topology.Name, s.Size, RateName(s.Rate), s.Wait)
}

// Share returns how many messages each producer sends for n in all: rounded up, so that all producers and partitions have
// equally many.
func (s Spec) Share(n uint64) uint64 {
	producers, parts := uint64(s.Topology.Producers), uint64(s.Topology.Partitions)
	share := (n + producers - 1) / producers
	return (share + parts - 1) / parts * parts
}

// RateName is max, or 100k, 1M, ...
func RateName(rate float64) string {
	switch {
	case rate <= 0:
		return "max"
	case rate >= 1e6:
		return fmt.Sprintf("%gM", rate/1e6)
	case rate >= 1e3:
		return fmt.Sprintf("%gk", rate/1e3)
	default:
		return fmt.Sprintf("%g", rate)
	}
}

// ErrUnsupported is wrapped by the errors of a workload that a rival cannot do. It is no failure.
var ErrUnsupported = errors.New("not supported")

// Rival is something that moves messages. The example shows a whole one.
type Rival struct {
	// Name is short and has no blanks: of Leat, how messages go in and come out.
	Name string

	// About says in one sentence what it is, and how it is driven.
	About string

	// Kind is the kind of topology that it is for: empty for all that move messages.
	Kind string

	// Waits are the ways to wait that it knows, the default first. Empty means Park only.
	Waits []Wait

	// Sizes are the sizes of messages that it knows. Empty means all.
	Sizes []int

	// Can returns why it cannot do a workload, or nil. Nil means that it can do all.
	Can func(Spec) error

	// Open makes one that is ready: what is sent from then on arrives.
	Open func(*Job) (Line, error)

	// Start is for what moves its messages by itself, such as a program in another language: it is used instead of Open.
	Start func(Spec) (Runner, error)

	// Warm is how long it runs before it is measured, if that has to be longer than for others: what is compiled while it runs
	// needs seconds.
	Warm time.Duration

	// Missing says why it cannot run here at all, or "". It is asked once, before anything is opened. May be nil.
	Missing func() string
}

// Check returns nil, or an ErrUnsupported that says why the rival cannot do the workload.
func (r *Rival) Check(s Spec) error {
	if s.Topology.Kind != r.Kind {
		return fmt.Errorf("%w: it is for %q", ErrUnsupported, r.Kind)
	}
	if waits := r.waits(); !slices.Contains(waits, s.Wait) {
		return fmt.Errorf("%w: it waits by %v", ErrUnsupported, joined(waits))
	}
	if len(r.Sizes) > 0 && !slices.Contains(r.Sizes, s.Size) {
		return fmt.Errorf("%w: it has messages of %v bytes", ErrUnsupported, strings.Trim(fmt.Sprint(r.Sizes), "[]"))
	}
	if r.Can == nil {
		return nil
	}
	if err := r.Can(s); err != nil && !errors.Is(err, ErrUnsupported) {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	} else if err != nil {
		return err
	}
	return nil
}

// Special reports whether it is for measurements of a kind of their own.
func (r *Rival) Special() bool { return r.Kind != "" }

// waits are the ways to wait that it knows.
func (r *Rival) waits() []Wait {
	if len(r.Waits) == 0 {
		return []Wait{Park}
	}
	return r.Waits
}

// DefaultWait is how the rival waits if nobody says anything else.
func (r *Rival) DefaultWait() Wait {
	return r.waits()[0]
}

func joined(waits []Wait) string {
	var names []string
	for _, w := range waits {
		names = append(names, w.String())
	}
	return strings.Join(names, ", ")
}
