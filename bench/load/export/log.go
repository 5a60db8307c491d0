package export

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// ErrHistogram is wrapped by what Decode returns.
var ErrHistogram = errors.New("export: not an encoded histogram")

// Encode returns h as a string: the compressed V2 encoding of HdrHistogram in base 64, some hundred bytes to a few thousand.
func Encode(h *hdr.Histogram) (string, error) {
	data, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("export: %w", err)
	}
	return string(data), nil
}

// Decode returns the histogram that Encode has made a string of, in any language's HdrHistogram.
func Decode(text string) (*hdr.Histogram, error) {
	h, err := hdr.Decode([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHistogram, err)
	}
	return h, nil
}

// Log writes a histogram log. Its times count from the start of the run, in seconds; the start is in its head. One goroutine uses
// it, and the writer is the caller's to buffer and close.
type Log struct {
	w io.Writer
}

// NewLog writes the head of a log: lines of comment, and when the run started.
func NewLog(w io.Writer, start time.Time, comments ...string) (*Log, error) {
	var b strings.Builder
	for _, c := range comments {
		// A line break in a comment would make a line of the log out of the rest.
		fmt.Fprintf(&b, "#[%s]\n", strings.NewReplacer("\n", " ", "\r", " ").Replace(c))
	}
	b.WriteString("#[Histogram log format version 1.3]\n")
	fmt.Fprintf(&b, "#[StartTime: %.3f (seconds since epoch), %s]\n", float64(start.UnixMilli())/1000, start.UTC().Format(time.RFC3339))
	b.WriteString(`"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"` + "\n")
	_, err := io.WriteString(w, b.String())
	return &Log{w}, err
}

// Interval writes what was recorded from one time to another. The tag says what was: "e2e", "publish"; empty means none. It must
// have no comma, space or line break.
func (l *Log) Interval(tag string, from, to time.Duration, h *hdr.Histogram) error {
	if strings.ContainsAny(tag, ", \t\r\n") {
		return fmt.Errorf("export: the tag %q has a comma or a space", tag)
	}
	payload, err := Encode(h)
	if err != nil {
		return err
	}
	if tag != "" {
		tag = "Tag=" + tag + ","
	}
	most := 0.0
	if h.TotalCount() > 0 {
		most = float64(h.Max()) / 1e6
	}
	_, err = fmt.Fprintf(l.w, "%s%.3f,%.3f,%.3f,%s\n", tag, from.Seconds(), (to - from).Seconds(), most, payload)
	return err
}
