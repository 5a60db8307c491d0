package tool

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/leatlog/leat/bench/load"
)

// view shows a run as it goes on: repainted in place on a terminal, and a line each second anywhere else.
type view struct {
	w       io.Writer
	repaint bool
	painted int // lines of the last picture
}

// newView returns a view on w.
func newView(w io.Writer) *view {
	under := w
	if p, ok := w.(*printed); ok {
		under = p.w
	}
	f, ok := under.(*os.File)
	return &view{w: w, repaint: ok && isTerminal(f) && os.Getenv("TERM") != "dumb"}
}

// isTerminal reports whether f is one, as far as that shows without asking the system about terminals.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}

// show shows one window.
func (v *view) show(w load.Window) {
	if !v.repaint {
		fmt.Fprintf(v.w, "%s%s\n", w, extra(w))
		return
	}
	lines := picture(w)
	var b strings.Builder
	if v.painted > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", v.painted)
	}
	for _, l := range lines {
		b.WriteString("\x1b[2K" + l + "\n")
	}
	v.painted = len(lines)
	_, _ = io.WriteString(v.w, b.String()) // what it cannot write is told at the end
}

// extra is what a plain line has besides the window's own.
func extra(w load.Window) string {
	text := fmt.Sprintf("  cpu %.1f", w.Cores)
	if w.GCs > 0 {
		text += fmt.Sprintf("  gc %d", w.GCs)
	}
	if w.Blocked > 0 {
		text += "  blocked " + load.FormatDuration(w.Blocked)
	}
	if w.Dropped > 0 {
		text += fmt.Sprintf("  dropped %d", w.Dropped)
	}
	return text
}

// picture is what a terminal shows, at most 80 wide.
func picture(w load.Window) []string {
	e2e := "-"
	if w.Samples > 0 {
		e2e = fmt.Sprintf("p50 %s   p99 %s   max %s", load.FormatDuration(w.P50), load.FormatDuration(w.P99), load.FormatDuration(w.Max))
	}
	phase := "measuring"
	if w.Warmup {
		phase = "warm-up"
	}
	late := "-"
	if w.Delay > 0 {
		late = load.FormatDuration(w.Delay)
	}
	return []string{
		progress(w, phase),
		fmt.Sprintf("  rate     %9s msgs/s   sent %d", load.FormatRate(w.Rate), w.Sent),
		fmt.Sprintf("  lag      %9d msgs     dropped %d", w.Lag, w.Dropped),
		fmt.Sprintf("  e2e      %s", e2e),
		fmt.Sprintf("  producers  up to %s late, blocked for %s", late, load.FormatDuration(w.Blocked)),
		fmt.Sprintf("  process    %.2f processors busy, collections: %d (%s stopped)", w.Cores, w.GCs, load.FormatDuration(w.GCPause)),
	}
}

// progress is a bar with the time that is left.
func progress(w load.Window, phase string) string {
	const width = 30
	share := 1.0
	if w.Of > 0 {
		share = min(float64(w.Elapsed)/float64(w.Of), 1)
	}
	byMessages := w.Messages > 0 && float64(w.Sent)/float64(w.Messages) > share
	if byMessages {
		share = min(float64(w.Sent)/float64(w.Messages), 1)
	}
	full := int(share * width)
	left := max(w.Of-w.Elapsed, 0).Round(time.Second)
	if byMessages && share > 0 {
		left = time.Duration(float64(w.Elapsed) * (1 - share) / share).Round(time.Second)
	}
	state := fmt.Sprintf("%v left", left)
	if left == 0 {
		state, phase = "waiting for what is still to come", "over"
	}
	return fmt.Sprintf("[%s%s] %3.0f %%  %s  %s", strings.Repeat("#", full), strings.Repeat(".", width-full), 100*share, phase, state)
}
