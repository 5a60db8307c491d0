package tool

import (
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leatlog/leat/bench/load/slo"
	"github.com/leatlog/leat/bench/load/stream"
)

// setFlags sets the flags that come before everything else, and returns the rest. It reads what package flag reads, and its errors name
// the flag and what it takes. The error is flag.ErrHelp where help is asked for.
func setFlags(fs *flag.FlagSet, args []string) (rest []string, err error) {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		text := strings.TrimPrefix(args[0][1:], "-")
		if text == "" {
			return args[1:], nil // -- ends the flags
		}
		name, value, has := strings.Cut(text, "=")
		if name == "" || name[0] == '-' {
			return nil, fmt.Errorf("%q: must be a flag, -name or -name=value", args[0])
		}
		args = args[1:]
		f := fs.Lookup(name)
		switch {
		case f == nil && (name == "h" || name == "help"):
			if err := askedHelp(name, value, has); err != nil {
				return nil, err
			}
			continue
		case f == nil:
			return nil, fmt.Errorf("there is no flag -%s%s", name, nearest(fs, name))
		case has:
		case isBool(f.Value):
			value = "true"
		case len(args) == 0:
			return nil, fmt.Errorf("-%s needs a value: it is %s", name, allowed(fs, name))
		default:
			value, args = args[0], args[1:]
		}
		if err := setFlag(fs, name, value); err != nil {
			return nil, err
		}
		if isBool(f.Value) && !has && len(args) > 0 && isTruth(args[0]) {
			return nil, fmt.Errorf("-%s %s: must be -%s=%s, since %s may be left out", name, args[0], name, args[0], yesOrNo)
		}
	}
	return args, nil
}

// setFlag sets one flag. An empty value is none where it would be the same as no flag, unless help says what it stands for: it was
// forgotten, as in -json=$FILE.
func setFlag(fs *flag.FlagSet, name, value string) error {
	err := fs.Set(name, value)
	f := fs.Lookup(name)
	if err == nil && strings.TrimSpace(value) == "" && f.DefValue == "" && !strings.Contains(f.Usage, "empty: ") {
		err = errors.New("must not be empty")
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("-%s %q: %w", name, value, wrongValue(fs, name, value, err))
}

// wrongValue says what is wrong with a value, and what the flag takes. It leaves out what whoever tells of it says already.
func wrongValue(fs *flag.FlagSet, name, value string, err error) error {
	text := err.Error()
	for _, prefix := range []string{slo.ErrSyntax.Error() + ": ", stream.ErrForm.Error() + ": ", strconv.Quote(value) + ": "} {
		text = strings.TrimPrefix(text, prefix)
	}
	if !saysForm(text) {
		text += "; it is " + allowed(fs, name)
	}
	return errors.New(text)
}

var says = regexp.MustCompile(`must be|it takes| takes \.`)

// saysForm reports whether an error says what is allowed.
func saysForm(text string) bool { return says.MatchString(text) }

// askedHelp returns flag.ErrHelp, unless -h is given as no.
func askedHelp(name, value string, has bool) error {
	if !has {
		return flag.ErrHelp
	}
	yes, err := strconv.ParseBool(value)
	switch {
	case err != nil:
		return fmt.Errorf("-%s %q: must be %s", name, value, yesOrNo)
	case yes:
		return flag.ErrHelp
	}
	return nil
}

// isTruth reports whether an argument can only be meant for the flag before it, which is yes or no.
func isTruth(arg string) bool {
	return slices.Contains([]string{"true", "false"}, strings.ToLower(arg))
}

// nearest says which flag may be meant by a name that is none: one that begins like it, or else one with few letters that differ.
func nearest(fs *flag.FlagSet, name string) string {
	near, least := "", max(1, len(name)/3)+1
	fs.VisitAll(func(f *flag.Flag) {
		d := distance(strings.ToLower(name), f.Name)
		if len(name) > 1 && strings.HasPrefix(f.Name, name) {
			d = 0
		}
		if d < least && d < len(f.Name) {
			near, least = f.Name, d
		}
	})
	if near == "" {
		return ""
	}
	return ": did you mean -" + near + "?"
}

// distance is how many letters must be put in, left out, changed or swapped with the next one to make b of a.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
		for j := 1; j <= len(b); j++ {
			if i == 0 {
				rows[i][j] = j
				continue
			}
			d := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				d++
			}
			d = min(d, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
