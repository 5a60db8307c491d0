//go:build explore

package explore

import "unsafe"

// maxThreads bounds the threads of a scenario.
const maxThreads = 8

// vector is a vector clock: how much of each thread's past its holder has seen.
type vector [maxThreads]uint32

func (v *vector) join(w *vector) {
	for i := range v {
		v[i] = max(v[i], w[i])
	}
}

// place is what is known about one address in the schedule that runs.
type place struct {
	p     unsafe.Pointer // keeps the memory from being used again for something else in the same schedule
	round uint32         // the schedule that this is about

	// For words, mutexes, parkers and channels.
	released vector // what a thread that observes the present value sees
	version  uint32 // how often it was changed
	closed   bool   // a channel that S.Close has closed
	locked   bool   // a mutex that a thread has locked

	// For plain memory.
	writer    *thread
	writeTime uint32
	reads     vector // the time of each thread's last read
}

// places maps addresses to what is known about them. It is a hash table with open addressing that is emptied by counting
// up round.
type places struct {
	table []*place // a power of two
	used  int      // in this round
	round uint32
}

func newPlaces() places { return places{table: make([]*place, 256), round: 1} }

func (ps *places) clear() {
	ps.round++
	ps.used = 0
	if ps.round == 0 { // wrapped: old entries could look new
		*ps = newPlaces()
	}
}

// at returns the place for p.
func (ps *places) at(p unsafe.Pointer) *place {
	mask := uintptr(len(ps.table) - 1)
	for i := hash(p) & mask; ; i = (i + 1) & mask {
		e := ps.table[i]
		switch {
		case e == nil:
			e = &place{}
			ps.table[i] = e
			fallthrough
		case e.round != ps.round:
			if ps.used++; ps.used > len(ps.table)/2 {
				ps.grow()
				return ps.at(p)
			}
			*e = place{p: p, round: ps.round}
			return e
		case e.p == p:
			return e
		}
	}
}

func (ps *places) grow() {
	old := ps.table
	ps.table = make([]*place, 2*len(old))
	mask := uintptr(len(ps.table) - 1)
	ps.used = 0
	for _, e := range old {
		if e == nil || e.round != ps.round {
			continue
		}
		i := hash(e.p) & mask
		for ps.table[i] != nil {
			i = (i + 1) & mask
		}
		ps.table[i] = e
		ps.used++
	}
}

func hash(p unsafe.Pointer) uintptr {
	h := uint64(uintptr(p)) * 0x9E3779B97F4A7C15
	return uintptr(h >> 33)
}
