package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

// readFile reads a scenario file: a JSON object whose names are those of flags, {"scenario": "churn", "rate": 20000}, or a result that
// -json has written, whose config is one.
func readFile(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("-file: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var all map[string]any
	if err := dec.Decode(&all); err != nil {
		return nil, fmt.Errorf("-file %s: must be a JSON object, such as {\"scenario\": \"churn\", \"rate\": 20000}: %w", name, err)
	}
	if config, ok := all["config"].(map[string]any); ok {
		engine := all["engine"]
		all = config
		if engine != nil {
			all["engine"] = engine
		}
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
			return nil, fmt.Errorf("-file %s: %s must be a string, a number, true or false", name, k)
		}
	}
	return values, nil
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
			return fmt.Errorf("-file %s: %s is %q: %w; it is %s", name, k, v, err, allowed(fs, k))
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
	arg, text := flag.UnquoteUsage(f)
	if arg != "" {
		text = "(" + arg + ") " + text
	}
	return strings.Join(strings.Fields(text), " ")
}

// explained adds to an error of package flag what the flag may be.
func explained(fs *flag.FlagSet, err error) error {
	for _, start := range []string{"for flag -", "flag needs an argument: -", "for -"} {
		_, rest, ok := strings.Cut(err.Error(), start)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, ":")
		if f := fs.Lookup(strings.TrimSpace(name)); f != nil && !strings.Contains(rest, "must be") {
			return fmt.Errorf("%w; -%s is %s", err, f.Name, allowed(fs, f.Name))
		}
	}
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}
