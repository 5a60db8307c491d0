package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/leatlog/leat/bench/load"
)

// readFile reads a scenario file: a JSON object whose names are those of flags, {"scenario": "churn", "rate": 20000}, or a result that
// -json has written, whose config is one, or a search, whose run at the knee has one. If the rate is not to come from there, there need
// not be a knee.
func readFile(name string, atKnee bool) (map[string]string, error) {
	text, err := readAll(name)
	if err != nil {
		return nil, fmt.Errorf("-file: must be a file of JSON that can be read: %w", err)
	}
	values, err := settingsIn(text, atKnee)
	if err != nil {
		return nil, ofFile("-file "+name, err)
	}
	return values, nil
}

// settingsIn returns what flags are to be, as the text of a file has it.
func settingsIn(text []byte, atKnee bool) (map[string]string, error) {
	all, err := object(text)
	if err != nil {
		return nil, err
	}
	slo := ""
	if isSweep(text) {
		s, err := readSweep(text)
		if err != nil {
			return nil, err
		}
		run, ok := s.knee()
		if !ok {
			return nil, fmt.Errorf("%w: there are no runs in it", errSweep)
		}
		if s.Knee == 0 && atKnee {
			return nil, errors.New("it is a search that has found no rate that meets its objectives, and so none to run at: must have found one, or go with -rate")
		}
		if all, err = object(run); err != nil {
			return nil, fmt.Errorf("%w: %w", errSweep, err)
		}
		slo = s.SLO
	}
	if config, ok := all["config"]; ok {
		engine, hasEngine := all["engine"]
		if all, ok = config.(map[string]any); !ok {
			return nil, errors.New("config must be an object whose names are those of flags, as -json writes it")
		}
		if hasEngine {
			all["engine"] = engine
		}
		if slo != "" {
			all["slo"] = slo
		}
		if all["scenario"] == nil {
			return nil, errors.New("config must have a scenario, as -json writes it")
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the object is empty: must have the name of a flag, such as {\"scenario\": \"churn\"}")
	}
	values := map[string]string{}
	for k, v := range all {
		switch v := v.(type) {
		case string:
			values[k] = v
		case json.Number:
			values[k] = v.String()
		case bool:
			values[k] = fmt.Sprint(v)
		default:
			return nil, fmt.Errorf("%s must be a string, a number, true or false", k)
		}
	}
	return values, nil
}

// object reads one JSON object and nothing else, in which no name comes twice.
func object(text []byte) (map[string]any, error) {
	bad := func(err error) (map[string]any, error) {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it ends before that does")
		}
		return nil, fmt.Errorf("must be one JSON object, such as {\"scenario\": \"churn\", \"rate\": 20000}: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		begins, _ := json.Marshal(t) // null, true, a number or a string
		if d, ok := t.(json.Delim); ok {
			begins = []byte(d.String())
		}
		return bad(cmp.Or(err, fmt.Errorf("it begins with %s", begins)))
	}
	all := map[string]any{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return bad(err)
		}
		var value any
		if err := dec.Decode(&value); err != nil {
			return bad(err)
		}
		k, _ := name.(string)
		if _, ok := all[k]; ok {
			return bad(fmt.Errorf("%q comes twice", k))
		}
		all[k] = value
	}
	if _, err := dec.Token(); err != nil {
		return bad(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return bad(errors.New("something comes after it"))
	}
	return all, nil
}

// inFile are the flags that a file may set: the scenario, and what it is for.
func inFile(name string) bool {
	_, ok := fields[name]
	return ok || slices.Contains([]string{"scenario", "engine", "slo"}, name)
}

// filed is what a file says, and which flags go before it.
type filed struct {
	name   string
	values map[string]string // by the names of flags
	fields load.Scenario     // as flags set them
	alone  options           // what they make by themselves
	given  map[string]bool
}

// applyFile sets what the file of -file says, as far as no flag says otherwise. All of it must be what flags take.
func (o *options) applyFile(fs *flag.FlagSet, given map[string]bool) (f *filed, err error) {
	f = &filed{name: o.file, given: maps.Clone(given), alone: options{engines: o.engines}}
	if fs.Lookup("from") != nil { // a search has its own
		f.given["rate"], f.given["duration"], f.given["warmup"] = true, true, true
	}
	if f.values, err = readFile(o.file, !f.given["rate"]); err != nil {
		return nil, err
	}
	var name, engine string
	apart := f.alone.flagSet(&f.fields, &name, &engine)
	withForms(apart)
	for _, k := range slices.Sorted(maps.Keys(f.values)) {
		if !inFile(k) {
			names := append(slices.Collect(maps.Keys(fields)), "scenario", "engine", "slo")
			slices.Sort(names)
			return nil, fmt.Errorf("-file %s: %q: must be one of %s", o.file, k, strings.Join(names, ", "))
		}
		err := setFlag(apart, k, f.values[k])
		if err == nil && !f.overridden(k) {
			err = setFlag(fs, k, f.values[k])
		}
		if err != nil {
			return nil, fmt.Errorf("-file %s: %w", o.file, err)
		}
	}
	if f.alone.target, f.alone.scenario, err = o.choose(name, engine); err != nil {
		return nil, fmt.Errorf("-file %s: %w", o.file, err)
	}
	for k := range f.values {
		_ = f.alone.override(&f.fields, k) // what it cannot say by itself may go with a flag
	}
	return f, nil
}

// overridden reports whether a flag goes before what the file says.
func (f *filed) overridden(name string) bool {
	return f.given[name] || name == "size" && f.given["sizes"] || name == "sizes" && f.given["size"]
}

// about names the file, too, in an error about a flag that is in it.
func (f *filed) about(err error) error {
	if f == nil || err == nil {
		return err
	}
	name := flagOf(err)
	if _, ok := f.values[name]; !ok && name == "size" {
		name = "sizes"
	}
	if _, ok := f.values[name]; ok && !f.overridden(name) {
		return fmt.Errorf("-file %s: %w", f.name, err)
	}
	return err
}

var flagFirst = regexp.MustCompile(`^-([a-z0-9]+)`)

// flagOf returns which flag an error is about, or nothing.
func flagOf(err error) string {
	if err == nil {
		return ""
	}
	if m := flagFirst.FindStringSubmatch(err.Error()); m != nil {
		return m[1]
	}
	return ""
}

// checkOverridden refuses a file with a value that a flag goes before, and that can be nowhere: where the flag is, in the file by itself,
// or alone.
func (o *options) checkOverridden(f *filed) error {
	for _, k := range slices.Sorted(maps.Keys(f.values)) {
		field, ok := fields[k]
		if !ok || !f.overridden(k) {
			continue
		}
		plain, _ := load.ScenarioNamed("unicast")
		if field.kind == groupsOnly {
			plain, _ = load.ScenarioNamed("group")
		}
		var err error
		for _, x := range []options{{target: o.target, scenario: o.scenario}, f.alone, {target: o.engines[0], scenario: plain}} {
			x.engines = o.engines
			if err = cmp.Or(x.override(&f.fields, k), x.check()); flagOf(err) != k {
				err = nil
				break
			}
		}
		if err != nil {
			return fmt.Errorf("-file %s: %w", f.name, err)
		}
	}
	return nil
}

// allowed says what a flag is, on one line.
func allowed(fs *flag.FlagSet, name string) string {
	f := fs.Lookup(name)
	if f == nil {
		return "no flag"
	}
	arg, text := told(f)
	if arg != "" {
		text = "(" + arg + ") " + text
	}
	return strings.Join(strings.Fields(text), " ")
}
