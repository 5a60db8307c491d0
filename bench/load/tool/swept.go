package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/report"
	"github.com/leatlog/leat/bench/load/sweep"
)

// swept is the JSON form of a search.
type swept struct {
	Schema int          `json:"schema"` // of the results
	SLO    string       `json:"slo"`
	Ending sweep.Ending `json:"ending"`
	Knee   float64      `json:"knee_msgs_per_s"`
	Above  float64      `json:"above_msgs_per_s"`
	Text   string       `json:"text"`
	Points []sweptPoint `json:"points"`
}

type sweptPoint struct {
	Rate     float64           `json:"rate"`
	Met      bool              `json:"met"`
	Verdicts []string          `json:"verdicts"` // of each run, or why there is none
	Runs     []json.RawMessage `json:"runs"`     // results
}

// sweptOf returns a search in its JSON form, and its runs as a page takes them.
func sweptOf(k sweep.Knee, slo string) (all swept, runs []report.Run, err error) {
	all = swept{
		Schema: load.Schema, SLO: slo, Ending: k.Ending, Knee: k.Knee, Above: k.Above, Text: k.String(), Points: []sweptPoint{},
	}
	for _, p := range k.Points {
		x := sweptPoint{Rate: p.Rate, Met: p.Met, Verdicts: []string{}, Runs: []json.RawMessage{}}
		for _, r := range p.Runs {
			res, ok := r.Result.(load.Result)
			if !ok {
				x.Verdicts = append(x.Verdicts, cannotBe(r.Refused)) // and there is no other run
				continue
			}
			var b bytes.Buffer
			if err := res.WriteJSON(&b); err != nil {
				return all, nil, err
			}
			x.Runs, x.Verdicts = append(x.Runs, b.Bytes()), append(x.Verdicts, verdict(r.Met, &res))
		}
		all.Points = append(all.Points, x)
	}
	runs, err = all.runs()
	return all, runs, err
}

// errSweep is wrapped by what reading a search returns.
var errSweep = errors.New("not a search that leatload sweep has written")

// isSweep reports whether a file is a search, and no result.
func isSweep(text []byte) bool {
	var all struct {
		Points json.RawMessage `json:"points"`
		Knee   *float64        `json:"knee_msgs_per_s"`
	}
	return json.Unmarshal(text, &all) == nil && all.Points != nil && all.Knee != nil
}

// readSweep reads a search.
func readSweep(text []byte) (all swept, err error) {
	if err := json.Unmarshal(text, &all); err != nil {
		return all, fmt.Errorf("%w: %w", errSweep, err)
	}
	if all.Schema != load.Schema {
		return all, fmt.Errorf("%w: schema %d is not known, only %d", errSweep, all.Schema, load.Schema)
	}
	return all, nil
}

// head is what a page says of it at its top.
func (s *swept) head() report.Sweep { return report.Sweep{SLO: s.SLO, Knee: s.Knee, Text: s.Text} }

// runs returns all of its runs, as a page takes them.
func (s *swept) runs() (runs []report.Run, err error) {
	for _, p := range s.Points {
		for i, text := range p.Runs {
			run, err := report.Read(load.FormatRate(p.Rate)+" msgs/s", bytes.NewReader(text))
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errSweep, err)
			}
			if i < len(p.Verdicts) {
				run.Verdict = p.Verdicts[i]
			}
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// knee returns a run at the highest rate that met, or, if none did, at the lowest of all.
func (s *swept) knee() (run json.RawMessage, ok bool) {
	for _, p := range s.Points { // in order of the rate
		if len(p.Runs) > 0 && (p.Met || run == nil) {
			run = p.Runs[0]
		}
	}
	return run, run != nil
}

// ofFile names the file that an error is about, and says what is wrong with its JSON without the names of Go's types.
func ofFile(name string, err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		err = fmt.Errorf("not what leatload has written: %s must not be of JSON's type %s", cmp.Or(wrong.Field, "it"), wrong.Value)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// fileMost is how large a file of results may be that is read.
const fileMost = 256 << 20

// readAll reads a file.
func readAll(name string) ([]byte, error) {
	if name == "" {
		return nil, errors.New("the name of a file is empty: must be one that -json has written")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, fileMost+1))
	if err == nil && len(text) > fileMost {
		err = fmt.Errorf("%s: more than %d MiB", name, fileMost>>20)
	}
	return text, err
}
