package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// bar shows on standard error how far a long work is.
type bar struct {
	w           io.Writer // nil if it is not to be seen
	what        string
	total, got  int64
	begun, last time.Time
	width       int // of what is on the line
	now         func() time.Time
}

// barAfter is how long a work must take for the bar to be seen, barEvery how often it moves.
const (
	barAfter = 500 * time.Millisecond
	barEvery = 100 * time.Millisecond
)

// newBar returns a bar for a work of so many bytes; 0 means that nobody knows.
func (p *program) newBar(what string, total int64) *bar {
	b := &bar{what: what, total: total, now: time.Now}
	b.begun = b.now()
	switch p.flags.progress {
	case "always":
		b.w = p.stderr
		b.last = b.begun.Add(-barAfter) // at once
		b.draw()
	case "auto":
		if f, ok := p.stderr.(*os.File); ok {
			if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
				b.w = f
			}
		}
		b.last = b.begun.Add(barAfter - barEvery)
	}
	return b
}

// add counts bytes that are done.
func (b *bar) add(n int64) {
	b.got += n
	if b.w == nil {
		return
	}
	if now := b.now(); now.Sub(b.last) >= barEvery {
		b.last = now
		b.draw()
	}
}

// draw draws it.
func (b *bar) draw() {
	const cells = 30
	rate := ""
	if d := b.now().Sub(b.begun).Seconds(); d > 0.1 {
		rate = ", " + size(int64(float64(b.got)/d)) + "/s"
	}
	text := fmt.Sprintf("%s: %s%s", b.what, size(b.got), rate)
	if b.total > 0 {
		part := min(float64(b.got)/float64(b.total), 1)
		full := int(part * cells)
		text = fmt.Sprintf("%s [%s%s] %3.0f %% of %s%s", b.what, strings.Repeat("=", full), strings.Repeat(" ", cells-full), 100*part,
			size(b.total), rate)
	}
	fmt.Fprintf(b.w, "\r%-*s", b.width, text)
	b.width = len(text)
}

// clear takes it off the line, for other text.
func (b *bar) clear() {
	if b.w != nil && b.width > 0 {
		fmt.Fprintf(b.w, "\r%s\r", strings.Repeat(" ", b.width))
		b.width = 0
	}
}

// done ends it. It may be called again.
func (b *bar) done() {
	b.clear()
	b.w = nil
}
