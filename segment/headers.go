package segment

import (
	"encoding/binary"
	"iter"
)

// Header is one name with its value. A nil value and an empty one differ.
type Header struct {
	Name  string
	Value []byte
}

// Headers is a list of headers in the form in which the log stores it, so that neither append nor read has to look at each.
// The zero value is the empty list. Names may repeat, and the order is kept. It is made by MakeHeaders and Add and by
// reading a record, and so is always well formed; its bytes are not to be changed.
type Headers struct {
	// raw is, for each header, the length of the name as a varint, the name, the length of the value plus one (or 0 for a
	// nil value) as a varint, and the value.
	raw []byte
}

// MakeHeaders returns the list of hs. It copies names and values.
func MakeHeaders(hs ...Header) Headers {
	if len(hs) == 0 {
		return Headers{}
	}
	n := 0
	for i := range hs {
		n += 2*binary.MaxVarintLen32 + len(hs[i].Name) + len(hs[i].Value)
	}
	h := Headers{raw: make([]byte, 0, n)}
	for i := range hs {
		h = h.Add(hs[i].Name, hs[i].Value)
	}
	return h
}

// Add returns the list with one more header at its end. It copies name and value. Like append, it may use memory behind h,
// so of two lists that are made from one h only the later may be used.
func (h Headers) Add(name string, value []byte) Headers {
	raw := binary.AppendUvarint(h.raw, uint64(len(name)))
	raw = append(raw, name...)
	if value == nil {
		raw = append(raw, 0)
	} else {
		raw = binary.AppendUvarint(raw, uint64(len(value))+1)
		raw = append(raw, value...)
	}
	return Headers{raw: raw}
}

// Len returns how many headers there are. It walks the list.
func (h Headers) Len() int {
	n := 0
	for rest := h.raw; len(rest) > 0; n++ {
		_, _, rest = next(rest)
	}
	return n
}

// Size returns how many bytes the list takes in a record: what Shape.Headers asks for.
func (h Headers) Size() int { return len(h.raw) }

// Encoded returns the encoded list, which must not be changed.
func (h Headers) Encoded() []byte { return h.raw }

// ParseHeaders is the inverse of Encoded: a list whose bytes are raw, which must not be changed any more. The error says that raw
// is no such list.
func ParseHeaders(raw []byte) (Headers, error) {
	for rest := raw; len(rest) > 0; {
		var ok bool
		if rest, ok = skip(rest, 0); ok && len(rest) > 0 && rest[0] == 0 {
			rest = rest[1:]
		} else if ok {
			rest, ok = skip(rest, 1)
		}
		if !ok {
			return Headers{}, ErrHeaders
		}
	}
	return Headers{raw: raw}, nil
}

// skip is cut for bytes that may be anything.
func skip(raw []byte, plus uint64) (rest []byte, ok bool) {
	n, w := binary.Uvarint(raw)
	if w <= 0 || n < plus || n-plus > uint64(len(raw)-w) {
		return nil, false
	}
	return raw[w+int(n-plus):], true
}

// Get returns the value of the first header with that name, and whether there is one. The value is a view, valid as long as
// the record's other bytes are. It does not allocate.
func (h Headers) Get(name string) (value []byte, ok bool) {
	for rest := h.raw; len(rest) > 0; {
		var n []byte
		n, value, rest = next(rest)
		if string(n) == name {
			return value, true
		}
	}
	return nil, false
}

// All iterates over the headers in order. Names are copies; values are views, valid as long as the record's other bytes
// are.
func (h Headers) All() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for rest := h.raw; len(rest) > 0; {
			var n, v []byte
			n, v, rest = next(rest)
			if !yield(string(n), v) {
				return
			}
		}
	}
}

// next splits the first header off a list that is not empty.
func next(raw []byte) (name, value, rest []byte) {
	name, rest = cut(raw, 0)
	if rest[0] == 0 {
		return name, nil, rest[1:]
	}
	value, rest = cut(rest, 1)
	return name, value, rest
}

// cut splits a length (that was stored with plus added to it) and that many bytes off raw.
func cut(raw []byte, plus uint64) (b, rest []byte) {
	n, w := binary.Uvarint(raw)
	end := w + int(n-plus)
	return raw[w:end:end], raw[end:]
}
