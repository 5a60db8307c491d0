// Package target holds the systems that the load harness can be pointed at out of the box: Leat itself, and the rivals of
// package baseline. To measure something else, implement load.Target; the example there is forty lines long.
package target

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leatlog/leat/bench/load"
)

// All returns every target here, the default first.
func All() []load.Target {
	return []load.Target{Leat{}, Chan{}, MutexLog{}}
}

// Names returns their names.
func Names() []string {
	var names []string
	for _, t := range All() {
		names = append(names, t.Name())
	}
	return names
}

// Named returns the target of that name.
func Named(name string) (load.Target, bool) {
	all := All()
	i := slices.IndexFunc(all, func(t load.Target) bool { return t.Name() == name })
	if i < 0 {
		return nil, false
	}
	return all[i], true
}

// oneOf checks a field of a scenario against what a target knows. The first allowed value is the default.
func oneOf(target, field, value string, allowed ...string) (string, error) {
	if value == "" {
		return allowed[0], nil
	}
	if !slices.Contains(allowed, value) {
		return "", fmt.Errorf("%w: %s %q: must be one of %s (on %s)", load.ErrUnsupported, field, value, strings.Join(allowed, ", "), target)
	}
	return value, nil
}

// onlySync checks the scenario of a target that knows one way only.
func onlySync(target string, s load.Scenario) error {
	if _, err := oneOf(target, "publish", s.Publish, "sync"); err != nil {
		return err
	}
	if s.Replays > 0 {
		return fmt.Errorf("%w: replays %d: what %s has delivered is gone; leat keeps it", load.ErrUnsupported, s.Replays, target)
	}
	_, err := oneOf(target, "wait", s.Wait, "park")
	return err
}

func tooManyAppenders(s load.Scenario) error {
	return fmt.Errorf("%w: publish %s gives a partition to one producer, so that %d producers need at least %d partitions, not %d",
		load.ErrUnsupported, s.Publish, s.Producers, s.Producers, s.Partitions)
}
