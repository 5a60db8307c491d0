package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// readFile reads a scenario file: a JSON object whose names are those of flags, {"scenario": "churn", "rate": 20000}, or a result that
// -json has written, whose config is one, or a search, whose run at the knee has one.
func readFile(name string) (map[string]string, error) {
	text, err := readAll(name)
	if err != nil {
		return nil, fmt.Errorf("-file: must be a file of JSON that can be read: %w", err)
	}
	values, err := settingsIn(text)
	if err != nil {
		return nil, fmt.Errorf("-file %s: %w", name, err)
	}
	return values, nil
}

// settingsIn returns what flags are to be, as the text of a file has it.
func settingsIn(text []byte) (map[string]string, error) {
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
		return nil, fmt.Errorf("must be one JSON object, such as {\"scenario\": \"churn\", \"rate\": 20000}: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return bad(cmp.Or(err, fmt.Errorf("it begins with %v", t)))
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

// applyFile sets what the file says, as far as no flag says otherwise.
func applyFile(fs *flag.FlagSet, name string) error {
	values, err := readFile(name)
	if err != nil {
		return err
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for k, v := range values {
		switch {
		case !inFile(k):
			names := []string{"scenario", "engine", "slo"}
			for n := range fields {
				names = append(names, n)
			}
			slices.Sort(names)
			return fmt.Errorf("-file %s: %q: must be one of %s", name, k, strings.Join(names, ", "))
		case given[k], k == "size" && given["sizes"], k == "sizes" && given["size"]:
			continue
		}
		if err := fs.Set(k, v); err != nil {
			return fmt.Errorf("-file %s: %s is %q: %w", name, k, v, wrongValue(fs, k, v, err))
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
