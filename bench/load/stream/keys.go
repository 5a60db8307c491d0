package stream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// KeyForms are the forms that ParseKeys knows, for help and errors.
const KeyForms = "none, uniform:N (uniform:1000), zipf:EXPONENT:N (zipf:0.99:1000), hot:SHARE:HOT:N where HOT of N keys get a " +
	"SHARE of all messages (hot:0.9:10:1000), file:PATH with a key a line"

const (
	keysMost = 1 << 30

	// KeyMost is the longest key that there is, in bytes.
	KeyMost = 4 << 10
)

type keyKind int

const (
	none keyKind = iota
	evenly
	zipf
	hot
	given
)

// Keys says which key each message has. A key is a number from 0, and Append makes bytes of it. The zero value is none.
type Keys struct {
	kind  keyKind
	n     int
	hot   int
	value float64 // the exponent, or the share of the hot ones
	path  string
	list  []string
	zipf  zipfian
}

// ParseKeys reads one of KeyForms. A file is read now; its keys come in the order of its lines, again and again, producers begin
// at places of their own, and a line that comes several times is the same key.
func ParseKeys(text string) (Keys, error) {
	kind, args := fields(text)
	k := Keys{}
	var err error
	switch kind {
	case "none":
		err = arguments(args, 0, 0, "none")
	case "uniform":
		k.kind = evenly
		if err = arguments(args, 1, 1, "uniform:N"); err == nil {
			k.n, err = whole("N", args[0], 1, keysMost)
		}
	case "zipf":
		err = k.parseZipf(args)
	case "hot":
		err = k.parseHot(args)
	case "file":
		k.kind, k.path = given, strings.TrimPrefix(text, "file:")
		err = eachLine(k.path, func(line string) error {
			if err := checkKey(line); err != nil {
				return err
			}
			k.list = append(k.list, line)
			return nil
		})
		k.n = len(k.list)
	default:
		err = fmt.Errorf("%q is unknown", kind)
	}
	if err != nil {
		return Keys{}, formError(text, KeyForms, "%v", err)
	}
	return k, nil
}

// checkKey says what is wrong with a line of a file of keys.
func checkKey(line string) error {
	if len(line) > KeyMost {
		return fmt.Errorf("a key of %d bytes: must be at most %d", len(line), KeyMost)
	}
	if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) {
		return errors.New("not text: a key must be UTF-8 without control characters")
	}
	return nil
}

func (k *Keys) parseZipf(args []string) (err error) {
	k.kind = zipf
	if err := arguments(args, 2, 2, "zipf:EXPONENT:N"); err != nil {
		return err
	}
	if k.value, err = between("EXPONENT", args[0], 1e-6, 100); err != nil {
		return err
	}
	if k.n, err = whole("N", args[1], 1, keysMost); err != nil {
		return err
	}
	k.zipf = newZipfian(k.value, k.n)
	return nil
}

func (k *Keys) parseHot(args []string) (err error) {
	k.kind = hot
	if err := arguments(args, 3, 3, "hot:SHARE:HOT:N"); err != nil {
		return err
	}
	if k.value, err = between("SHARE", args[0], 0, 1); err != nil {
		return err
	}
	if k.n, err = whole("N", args[2], 2, keysMost); err != nil {
		return err
	}
	k.hot, err = whole("HOT", args[1], 1, k.n-1)
	return err
}

// String returns the text that ParseKeys reads.
func (k Keys) String() string {
	switch k.kind {
	case evenly:
		return fmt.Sprintf("uniform:%d", k.n)
	case zipf:
		return fmt.Sprintf("zipf:%s:%d", text(k.value), k.n)
	case hot:
		return fmt.Sprintf("hot:%s:%d:%d", text(k.value), k.hot, k.n)
	case given:
		return "file:" + k.path
	}
	return "none"
}

// None reports whether messages have no keys.
func (k Keys) None() bool { return k.kind == none }

// N returns how many keys there are, 0 for none, and for a file how many lines.
func (k Keys) N() int { return k.n }

// Append appends the bytes of a key that Next returned: the line of the file, or "key" and the number. Nothing for none.
func (k Keys) Append(dst []byte, key int) []byte {
	switch k.kind {
	case none:
		return dst
	case given:
		return append(dst, k.list[key]...)
	}
	return strconv.AppendInt(append(dst, "key"...), int64(key), 10)
}

// KeyStream draws keys.
type KeyStream struct {
	k      Keys
	random *rand.Rand
	at     int
}

// Stream returns the keys of a part's messages.
func (k Keys) Stream(p Part) *KeyStream {
	return &KeyStream{k: k, random: p.random(forKeys), at: p.place(len(k.list))}
}

// Next returns the key of the next message, from 0 to N - 1; of a Zipf distribution or a hot set the most frequent ones first.
// -1 for none.
func (x *KeyStream) Next() int {
	k := &x.k
	switch k.kind {
	case evenly:
		return x.random.IntN(k.n)
	case zipf:
		return k.zipf.draw(x.random) - 1
	case hot:
		if x.random.Float64() < k.value {
			return x.random.IntN(k.hot)
		}
		return k.hot + x.random.IntN(k.n-k.hot)
	case given:
		v := x.at
		if x.at++; x.at == k.n {
			x.at = 0
		}
		return v
	}
	return -1
}
