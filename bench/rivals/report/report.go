// Package report turns what matches say into something to read: a table, JSON, and a chart.
package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/leatlog/leat/bench/ratio"
	"github.com/leatlog/leat/bench/rivals/arena"
)

// Report is what one run of the suite says.
type Report struct {
	Date    string  `json:"date"` // of the day
	Machine Machine `json:"machine"`
	Slices  int     `json:"slices"` // of each side of each match
	Length  string  `json:"slice_length"`
	Lines   []Line  `json:"lines"`
}

// Machine is the class of the machine, not which one it is.
type Machine struct {
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	CPU      string `json:"cpu"`
	CPUs     int    `json:"cpus"`
	MaxProcs int    `json:"gomaxprocs"`
	Go       string `json:"go"`
}

// ThisMachine describes the machine that the program runs on.
func ThisMachine() Machine {
	return Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: cpuModel(), CPUs: runtime.NumCPU(), MaxProcs: runtime.GOMAXPROCS(0),
		Go: runtime.Version(),
	}
}

// String is for example "2 x AMD EPYC, linux/amd64, go1.26".
func (m Machine) String() string {
	return fmt.Sprintf("%d x %s, %s/%s, %s", m.MaxProcs, m.CPU, m.OS, m.Arch, m.Go)
}

// cpuModel returns what Linux calls the processor; elsewhere nothing is known.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "cpu"
	}
	defer f.Close()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		if key, value, ok := strings.Cut(scan.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "cpu"
}

// Line compares A with B in one workload at one placement of the cores.
type Line struct {
	Topology string  `json:"topology"`
	Size     int     `json:"size"`
	Rate     float64 `json:"rate"` // 0: as fast as they can
	A        string  `json:"a"`
	B        string  `json:"b"`

	// Skipped or Failed say why there is nothing else.
	Skipped string `json:"skipped,omitempty"`
	Failed  string `json:"failed,omitempty"`

	Label   string `json:"label,omitempty"`
	Pairs   int    `json:"pairs,omitempty"`
	Dropped int    `json:"dropped,omitempty"` // pairs of this workload with unequal or useless labels

	// Of is A divided by B, pair by pair: of rates more is better, of everything else less.
	Of Ratios `json:"a_by_b,omitzero"`

	FiguresA Figures `json:"figures_a,omitzero"`
	FiguresB Figures `json:"figures_b,omitzero"`

	// Target is set where the line was run for one.
	Target *Verdict `json:"target,omitempty"`
}

// Ratios are A by B.
type Ratios struct {
	Rate ratio.Spread `json:"rate"`
	CPU  ratio.Spread `json:"cpu_per_message"`
	P50  ratio.Spread `json:"p50,omitzero"`
	P99  ratio.Spread `json:"p99,omitzero"`
}

// Figures are those of one side.
type Figures struct {
	Rate   ratio.Spread `json:"messages_per_second"`
	CPU    ratio.Spread `json:"cpu_ns_per_message"`
	Cores  ratio.Spread `json:"cores"`
	Allocs ratio.Spread `json:"allocs_per_message"`
	Bytes  ratio.Spread `json:"bytes_per_message"`
	GCs    uint64       `json:"gcs"` // in all slices together
	// GCPause is how long the world stood still, in all slices together.
	GCPause int64        `json:"gc_pause_ns"`
	P50     ratio.Spread `json:"p50_ns,omitzero"`
	P90     ratio.Spread `json:"p90_ns,omitzero"`
	P99     ratio.Spread `json:"p99_ns,omitzero"`
}

func figures(s []arena.Slice) Figures {
	f := Figures{
		Rate: ratio.Each(s, arena.Slice.Rate), CPU: ratio.Each(s, arena.Slice.CPUPerMessage), Cores: ratio.Each(s, arena.Slice.Cores),
		Allocs: ratio.Each(s, arena.Slice.AllocsPerMessage), Bytes: ratio.Each(s, arena.Slice.BytesPerMessage),
		P50: ratio.Each(s, arena.Slice.P50), P90: ratio.Each(s, arena.Slice.P90), P99: ratio.Each(s, arena.Slice.P99),
	}
	for i := range s {
		f.GCs += uint64(s[i].GCs)
		f.GCPause += s[i].GCPause
	}
	return f
}

// Add adds what a match says: a line for each placement of each workload. The error is that of Match.Run.
func (r *Report) Add(outs []arena.Outcome, err error) []Line {
	var lines []Line
	for i := range outs {
		o := &outs[i]
		base := Line{Topology: o.Topology.Name, Size: o.Size, Rate: o.Rate, A: o.A, B: o.B, Skipped: o.Skipped}
		p := o.Pairs()
		base.Dropped = p.Dropped
		for _, g := range p.Groups {
			l := base
			l.Label, l.Pairs = g.Label, len(g.Pairs)
			l.Of = Ratios{
				Rate: g.Of(arena.Slice.Rate), CPU: g.Of(arena.Slice.CPUPerMessage), P50: g.Of(arena.Slice.P50), P99: g.Of(arena.Slice.P99),
			}
			l.FiguresA, l.FiguresB = figures(g.A), figures(g.B)
			lines = append(lines, l)
		}
		if len(p.Groups) == 0 && (base.Skipped != "" || err == nil) {
			if base.Skipped == "" {
				base.Skipped = "nothing to compare: between any two neighbouring slices the cores moved, or were busy"
			}
			lines = append(lines, base)
		}
	}
	if err != nil {
		l := Line{Failed: err.Error()}
		if len(outs) > 0 {
			o := &outs[len(outs)-1]
			l.Topology, l.Size, l.Rate, l.A, l.B = o.Topology.Name, o.Size, o.Rate, o.A, o.B
		}
		lines = append(lines, l)
	}
	r.Lines = append(r.Lines, lines...)
	return lines
}

// Failed returns how many matches failed.
func (r *Report) Failed() (n int) {
	for i := range r.Lines {
		if r.Lines[i].Failed != "" {
			n++
		}
	}
	return n
}

// WriteJSON writes the report as indented JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// New returns an empty report of today.
func New(slices int, length time.Duration) *Report {
	return &Report{Date: time.Now().UTC().Format(time.DateOnly), Machine: ThisMachine(), Slices: slices, Length: length.String()}
}

// workload is what stands above the lines of one.
func (l *Line) workload() string {
	return fmt.Sprintf("%s, %d B, %s", l.Topology, l.Size, rateText(l.Rate))
}

func rateText(rate float64) string {
	if rate == 0 {
		return "as fast as they can"
	}
	return arena.RateName(rate) + " messages a second"
}
