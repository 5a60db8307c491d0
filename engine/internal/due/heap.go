package due

// Heap holds keys and the times at which they are due. It is not safe for concurrent use.
//
// # Invariants
//
// Order. Pop returns keys in the order of their times, and those of one time in the order in which Push or Move gave them
// that time.
//
// Places. After each method every key in the heap has been told its present place, from 1 to Len, and a key that has left
// has been told 0. No two keys have one place.
//
// Cost. Push, Move, Remove and Pop take a number of steps that grows with the logarithm of Len, and Push of a time that is
// not before the others takes one. Nothing is allocated but when Len is larger than it has ever been.
type Heap[K any] struct {
	placed func(key K, place int) // immutable after New
	items  []item[K]
	turn   uint64 // how often a time has been given; breaks ties
}

type item[K any] struct {
	at   int64
	turn uint64
	key  K
}

// New returns an empty heap. It calls placed each time that a key has got another place, with 0 for one that has left;
// placed must not call the heap.
func New[K any](placed func(key K, place int)) *Heap[K] {
	return &Heap[K]{placed: placed}
}

// Len returns the number of keys in the heap.
func (h *Heap[K]) Len() int { return len(h.items) }

// Next returns the earliest time at which a key is due, or false if the heap is empty.
func (h *Heap[K]) Next() (at int64, ok bool) {
	if len(h.items) == 0 {
		return 0, false
	}
	return h.items[0].at, true
}

// Push puts key into the heap, where it must not be yet.
func (h *Heap[K]) Push(key K, at int64) {
	h.items = append(h.items, item[K]{})
	h.turn++
	h.up(len(h.items)-1, item[K]{at, h.turn, key})
}

// Move gives the key at place another time.
func (h *Heap[K]) Move(place int, at int64) {
	h.turn++
	h.settle(place-1, item[K]{at, h.turn, h.items[place-1].key})
}

// Remove takes the key at place out.
func (h *Heap[K]) Remove(place int) {
	i, last := place-1, len(h.items)-1
	gone, moved := h.items[i].key, h.items[last]
	h.items[last] = item[K]{} // keeps nothing alive
	h.items = h.items[:last]
	if i < last {
		h.settle(i, moved)
	}
	h.placed(gone, 0)
}

// Pop takes out the earliest key if it is due at now, and returns false if none is.
func (h *Heap[K]) Pop(now int64) (key K, ok bool) {
	if len(h.items) == 0 || h.items[0].at > now {
		return key, false
	}
	key = h.items[0].key
	h.Remove(1)
	return key, true
}

// Due calls f, which must not use the heap, with each key that is due at now, in no order. They stay where they are. It looks at twice
// as many keys at the most, and one.
func (h *Heap[K]) Due(now int64, f func(key K)) { h.due(0, now, f) }

// due is Due from index i on, away from the root, and returns how many keys it has looked at.
func (h *Heap[K]) due(i int, now int64, f func(key K)) (looks int) {
	if i >= len(h.items) {
		return 0
	}
	if h.items[i].at > now {
		return 1 // and all behind it are later
	}
	f(h.items[i].key)
	return 1 + h.due(2*i+1, now, f) + h.due(2*i+2, now, f)
}

// Clear takes all keys out, and gives the memory back.
func (h *Heap[K]) Clear() {
	items := h.items
	h.items = nil
	for i := range items {
		h.placed(items[i].key, 0)
	}
}

// settle puts x at index i, whose old item is no longer needed, or where the order wants it above or below.
func (h *Heap[K]) settle(i int, x item[K]) {
	if i > 0 && x.before(&h.items[(i-1)/2]) {
		h.up(i, x)
		return
	}
	h.down(i, x)
}

// up moves the hole at index i towards the root until x may fill it.
func (h *Heap[K]) up(i int, x item[K]) {
	for i > 0 {
		parent := (i - 1) / 2
		if !x.before(&h.items[parent]) {
			break
		}
		h.put(i, h.items[parent])
		i = parent
	}
	h.put(i, x)
}

// down moves the hole at index i away from the root until x may fill it.
func (h *Heap[K]) down(i int, x item[K]) {
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if right := child + 1; right < len(h.items) && h.items[right].before(&h.items[child]) {
			child = right
		}
		if !h.items[child].before(&x) {
			break
		}
		h.put(i, h.items[child])
		i = child
	}
	h.put(i, x)
}

func (h *Heap[K]) put(i int, x item[K]) {
	h.items[i] = x
	h.placed(x.key, i+1)
}

func (x *item[K]) before(y *item[K]) bool {
	return x.at < y.at || x.at == y.at && x.turn < y.turn
}
