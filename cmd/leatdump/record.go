package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment"
)

// line is a record as a line of JSON. Bytes that are UTF-8 are text, others are in base 64; nil is not there.
type line struct {
	Partition   int32     `json:"partition"`
	Offset      int64     `json:"offset"`
	Appended    time.Time `json:"appended"`
	Timestamp   *nanos    `json:"timestamp,omitempty"`
	Key         *string   `json:"key,omitempty"`
	KeyBase64   []byte    `json:"keyBase64,omitempty"`
	Value       *string   `json:"value,omitempty"`
	ValueBase64 []byte    `json:"valueBase64,omitempty"`
	Headers     []header  `json:"headers,omitempty"`
}

type header struct {
	Name        string  `json:"name"`
	NameBase64  []byte  `json:"nameBase64,omitempty"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 []byte  `json:"valueBase64,omitempty"`
}

// nanos is a timestamp of a record. It need not be a time, so it is written as one only where that says the same.
type nanos int64

func (n nanos) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Unix(0, int64(n)).UTC())
}

func (n *nanos) UnmarshalJSON(b []byte) error {
	var t time.Time
	err := t.UnmarshalJSON(b)
	*n = nanos(t.UnixNano())
	return err
}

// split says how bytes are written.
func split(b []byte) (text *string, base64 []byte) {
	if b == nil {
		return nil, nil
	}
	if utf8.Valid(b) {
		s := string(b)
		return &s, nil
	}
	return nil, b
}

// join is the inverse of split.
func join(text *string, base64 []byte) []byte {
	if text != nil {
		return []byte(*text)
	}
	return base64
}

// newLine returns r as a line. own says that its timestamp is its own.
func newLine(r *engine.Record, appended int64, own bool) line {
	l := line{Partition: r.Partition, Offset: r.Offset, Appended: time.Unix(0, appended).UTC()}
	if own {
		l.Timestamp = (*nanos)(&r.Timestamp)
	}
	l.Key, l.KeyBase64 = split(r.Key)
	l.Value, l.ValueBase64 = split(r.Value)
	for name, value := range r.Headers.All() {
		h := header{}
		h.Value, h.ValueBase64 = split(value)
		if utf8.ValidString(name) {
			h.Name = name
		} else {
			h.NameBase64 = []byte(name)
		}
		l.Headers = append(l.Headers, h)
	}
	return l
}

// record is the inverse of newLine.
func (l *line) record() (r engine.Record, appended int64) {
	r = engine.Record{Partition: l.Partition, Offset: l.Offset, Key: join(l.Key, l.KeyBase64), Value: join(l.Value, l.ValueBase64)}
	if l.Timestamp != nil {
		r.Timestamp = int64(*l.Timestamp)
	}
	var hs []engine.Header
	for _, h := range l.Headers {
		name := h.Name
		if h.NameBase64 != nil {
			name = string(h.NameBase64)
		}
		hs = append(hs, engine.Header{Name: name, Value: join(h.Value, h.ValueBase64)})
	}
	r.Headers = segment.MakeHeaders(hs...)
	return r, l.Appended.UnixNano()
}

// writeText writes a record for people.
func writeText(w io.Writer, r *engine.Record, appended int64, own bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d:%d %s", r.Partition, r.Offset, time.Unix(0, appended).UTC().Format(time.RFC3339Nano))
	if own {
		fmt.Fprintf(&b, " timestamp=%s", time.Unix(0, r.Timestamp).UTC().Format(time.RFC3339Nano))
	}
	fmt.Fprintf(&b, " key=%s value=%s", quote(r.Key), quote(r.Value))
	for name, value := range r.Headers.All() {
		fmt.Fprintf(&b, " %s=%s", strconv.Quote(name), quote(value))
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// quote shows bytes as text.
func quote(b []byte) string {
	if b == nil {
		return "nil"
	}
	return strconv.Quote(string(b))
}

// writeHex writes a record byte by byte.
func writeHex(w io.Writer, r *engine.Record, appended int64, own bool) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d:%d appended %s", r.Partition, r.Offset, time.Unix(0, appended).UTC().Format(time.RFC3339Nano))
	if own {
		fmt.Fprintf(&b, ", timestamp %s", time.Unix(0, r.Timestamp).UTC().Format(time.RFC3339Nano))
	}
	b.WriteByte('\n')
	part := func(what string, v []byte) {
		if v == nil {
			fmt.Fprintf(&b, "  %s: nil\n", what)
			return
		}
		fmt.Fprintf(&b, "  %s: %d bytes\n", what, len(v))
		for _, l := range strings.SplitAfter(hex.Dump(v), "\n") {
			if l != "" {
				b.WriteString("    " + l)
			}
		}
	}
	part("key", r.Key)
	part("value", r.Value)
	for name, value := range r.Headers.All() {
		part("header "+strconv.Quote(name), value)
	}
	_, err := w.Write(b.Bytes())
	return err
}
