package delivery

// seatSet is a set of seats of a share, each of which knows its place in it: to add one and to take one out takes a constant number
// of steps, and to go through the set as many as it has members. Whoever goes through it backwards may take out the one that it is at.
type seatSet struct {
	kind seatKind
	list []*Seat
}

// seatKind says what the seats of a set have in common.
type seatKind uint8

const (
	allSeats seatKind = iota
	idleSeats
	busySeats
	seatKinds
)

func (s *seatSet) has(t *Seat) bool { return t.places[s.kind] != 0 }

// add adds a seat that is not there.
func (s *seatSet) add(t *Seat) {
	s.list = append(s.list, t)
	t.places[s.kind] = int32(len(s.list))
}

// remove takes out a seat that is there.
func (s *seatSet) remove(t *Seat) {
	i, last := t.places[s.kind]-1, len(s.list)-1
	moved := s.list[last]
	s.list[i], moved.places[s.kind] = moved, i+1
	s.list[last] = nil
	s.list = s.list[:last]
	t.places[s.kind] = 0
}
