package engine

import "iter"

// ordered is a map whose keys come in the order in which they were added. All it does takes constant time, spread over the calls,
// but for going through it. The zero value is empty.
type ordered[K comparable, V any] struct {
	at    map[K]int // where in list
	list  []ordinal[K, V]
	holes int // of those that were removed
}

type ordinal[K comparable, V any] struct {
	key   K
	value V
	there bool
}

// size returns how many there are.
func (o *ordered[K, V]) size() int { return len(o.at) }

// add adds a key that is not there, behind all that are.
func (o *ordered[K, V]) add(k K, v V) {
	if o.at == nil {
		o.at = map[K]int{}
	}
	if _, there := o.at[k]; there {
		panic("leat: there already")
	}
	o.at[k] = len(o.list)
	o.list = append(o.list, ordinal[K, V]{k, v, true})
}

// get returns what was added with a key; the zero value if that is not there.
func (o *ordered[K, V]) get(k K) (v V) {
	if i, there := o.at[k]; there {
		v = o.list[i].value
	}
	return v
}

// remove takes a key out and reports whether it was there.
func (o *ordered[K, V]) remove(k K) bool {
	i, there := o.at[k]
	if !there {
		return false
	}
	delete(o.at, k)
	o.list[i] = ordinal[K, V]{}
	if o.holes++; o.holes > len(o.list)/2 {
		o.compact()
	}
	return true
}

// compact drops the holes.
func (o *ordered[K, V]) compact() {
	list := make([]ordinal[K, V], 0, len(o.at))
	for _, x := range o.list {
		if x.there {
			o.at[x.key] = len(list)
			list = append(list, x)
		}
	}
	o.list, o.holes = list, 0
}

// all goes through the values in order. Nothing is added or removed meanwhile.
func (o *ordered[K, V]) all() iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, x := range o.list {
			if x.there && !yield(x.value) {
				return
			}
		}
	}
}
