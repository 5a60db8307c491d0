package load

import "fmt"

// survived checks what is left of a scenario with files when these are opened again: a lane for each partition.
func (r *run) survived(res *Result) {
	x, ok := r.source.(Survivor)
	if !ok || r.s.Sync == "" {
		return
	}
	for p := range r.s.Partitions {
		l := Lane{Consumer: "opened again", Partition: p}
		got, err := x.Survived(p)
		l.Received = got
		switch want := r.sentTo(p); {
		case err != nil:
			l.Lost = want
			l.FirstFault = err.Error()
		case got < want:
			l.Lost = want - got
			l.FirstFault = fmt.Sprintf("%d of %d messages were there", got, want)
		}
		res.Faults.add(l.Faults)
		res.Lanes = append(res.Lanes, l)
	}
}
