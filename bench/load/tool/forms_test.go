package tool

import (
	"cmp"
	"errors"
	"flag"
	"io"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load/sweep"
	"github.com/leatlog/leat/bench/load/target"
)

// flagsOf returns the flags of run, or of sweep, which has those of run as well.
func flagsOf(t *testing.T, command string) *flag.FlagSet {
	var all *flag.FlagSet
	o, c := options{engines: target.All()}, sweep.Config{}
	more := func(fs *flag.FlagSet) {
		if all = fs; command == "sweep" {
			o.sweepFlags(fs, &c)
		}
	}
	require.NoError(t, o.parse(nil, io.Discard, command, more, usage))
	return all
}

// TestForms_EveryFlag: there is no flag that says but parse error, or value out of range, about what is far from what it takes.
func TestForms_EveryFlag(t *testing.T) {
	text := []string{ // every text is one; what it may say is checked later
		"scenario", "file", "engine", "publish", "wait", "sync", "dir", "json", "csv", "hgrm", "hlog", "gc", "memlimit", "pin", "cpuprofile",
		"memprofile", "trace", "kind", "mode", "ack", "o",
	}
	flagsOf(t, "sweep").VisitAll(func(f *flag.Flag) {
		for _, is := range text {
			if f.Name == is {
				return
			}
		}
		for _, bad := range []string{"?!", "", "1e400", "99999999999999999999999", "-9999999h", "0x", " 1"} {
			if bad == "" && f.Name == "slo" {
				continue // nothing is asked for
			}
			err := f.Value.Set(bad)
			if err == nil {
				continue // the scenario is checked as a whole
			}
			assert.NotContains(t, err.Error(), "parse error", "-%s %s", f.Name, bad)
			assert.NotContains(t, err.Error(), "out of range", "-%s %s", f.Name, bad)
			says := regexp.MustCompile(`must be|it takes|takes \.p50`).MatchString(err.Error())
			assert.True(t, says, "-%s %s: %v", f.Name, bad, err)
		}
	})
	for line, args := range map[string][]string{
		`-producers "1e3": must be a whole number, 1 to 65536`:                                 {"-producers", "1e3"},
		`-messages "1e30": must be a whole number, 0 (no limit) to 1e15`:                       {"-messages", "1e30"},
		`-messages "1.5": must be a whole number`:                                              {"-messages", "1.5"},
		`-size "1e15": must be a whole number, 24 to 268435456`:                                {"-size", "1e15"},
		`-seed "-1": must be a whole number, 0 to 18446744073709551615`:                        {"-seed", "-1"},
		`-duration "9999999h": must be a time above 0s, at most 8760h`:                         {"-duration", "9999999h"},
		`-factor "1e400": must be a number above 1, at most 1000`:                              {"sweep", "-factor", "1e400"},
		`-threshold "x": must be a number above 0 and below 1`:                                 {"compare", "-threshold", "x", "a", "b"},
		`-json "x": must be true or false`:                                                     {"compare", "-json=x", "a", "b"},
		`-v "x": must be true or false`:                                                        {"list", "-v=x"},
		`-pin "9999": must be numbers of processors from 0 to 1023, such as 0,1 or 0-3`:        {"-pin", "9999"},
		`-memlimit "9e9GiB": must be a number of bytes from 1 to 9e18`:                         {"-memlimit", "9e9GiB"},
		`-sync "8761h": must be one of always, never, or a time above 0s, at most 8760h`:       {"-sync", "8761h"},
		`-poll "x": must be true or false`:                                                     {"-poll=x"},
		`-rate needs a value: it is (messages) messages a second, all producers together; a n`: {"-rate"},
	} {
		assert.Contains(t, refused(t, args...), line)
	}
	o, err := parse([]string{"-messages", "1.5M"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, int64(1_500_000), o.scenario.Messages)
}

// TestRefused_WhatWouldCountAsZero: no number of any flag is 0 unless it says so, and none is infinite.
func TestRefused_WhatWouldCountAsZero(t *testing.T) {
	given := func(name, value string) []string {
		switch name {
		case "from", "to", "factor", "precision", "runs":
			return []string{"sweep", "-" + name, value}
		case "threshold":
			return []string{"compare", "-" + name, value, "a", "b"}
		}
		return []string{"-" + name, value}
	}
	for name, form := range forms {
		if form == yesOrNo {
			continue
		}
		for _, value := range []string{"1e-400", "0.1ns", "1e400", "1e400s"} {
			line := refused(t, given(name, value)...)
			assert.Contains(t, line, "-"+name+" \""+value+"\": ", value)
			assert.Contains(t, line, form, value)
		}
	}
	for line, args := range map[string][]string{
		"too near to 0: it would count as 0; must be a number, 0 (as fast as possible)":        {"-rate", "1e-400"},
		"too near to 0: it would count as 0; must be a whole number, 0 (no limit)":             {"-messages", "1e-400"},
		"too near to 0: it would count as 0; must be a number from 0 to 0.9":                   {"-fail", "1e-400"},
		"too near to 0: it would count as 0; must be a number from 0 to 1":                     {"-evict", "-1e-400"},
		"too near to 0: it would count as 0; must be a time from 0s on":                        {"-warmup", "0.1ns"},
		"too near to 0: it would count as 0; must be a time from 0s on, at most 8760h, such a": {"-slow", "0.1ns"},
		`-rate "-0": 0 with a minus; must be a number, 0 (as fast as possible)`:                {"-rate", "-0"},
		`-rate "-0k": 0 with a minus; must be a number`:                                        {"-rate", "-0k"},
		`-messages "-0": 0 with a minus; must be a whole number`:                               {"-messages", "-0"},
		`-readers "-0": 0 with a minus; must be a whole number`:                                {"-readers", "-0"},
		`-fail "-0": 0 with a minus; must be a number from 0`:                                  {"-fail", "-0"},
		`-warmup "-0s": 0 with a minus; must be a time from 0s on`:                             {"-warmup", "-0s"},
		`-slow "-0s": 0 with a minus; must be a time from 0s on`:                               {"-slow", "-0s"},
		`-to "-0": 0 with a minus; must be a number above -from`:                               {"sweep", "-to", "-0"},
		`"rate>-0": "-0" is 0 with a minus: it takes`:                                          {"-slo", "rate>-0"},
		`"e2e.p99=-0s": "-0s" is 0 with a minus: times are 0s`:                                 {"-slo", "e2e.p99=-0s"},
		`SHARE is "-0", 0 with a minus: must be a number from 0 to 1`:                          {"-keys", "hot:-0:10:1000"},
		`"e2e.p99<0.1ns": "0.1ns" is too near to 0`:                                            {"-slo", "e2e.p99<0.1ns"},
		`"rate>1e-400": "1e-400" is too near to 0`:                                             {"-slo", "rate>1e-400"},
		`SHARE is "1e-400", too near to 0: it would count as 0: must be a number from 0 to 1`:  {"-keys", "hot:1e-400:10:1000"},
		`-sync "0.1ns": must be one of always, never, or a time above 0s`:                      {"-sync", "0.1ns"},
		`-memlimit "1e-400": must be a number of bytes from 1 to 9e18`:                         {"-memlimit", "1e-400"},
	} {
		assert.Contains(t, refused(t, args...), line)
	}
}

// bounds are what a form says in numbers.
type bounds struct{ taken, refused []string }

// boundsOf reads a form. False is one that is no number.
func boundsOf(t *testing.T, form string) (b bounds, ok bool) {
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err, form)
		return v
	}
	text := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	below := func(s string) string { return text(math.Nextafter(number(s), math.Inf(-1))) }
	above := func(s string) string { return text(math.Nextafter(number(s), math.Inf(1))) }
	and := func(s string, by int64) string {
		f, _, err := big.ParseFloat(s, 10, 200, big.ToZero)
		require.NoError(t, err, form)
		n, _ := f.Int(nil)
		return n.Add(n, big.NewInt(by)).String()
	}
	if m := regexp.MustCompile(`^a whole number, (\d+)(?: \([^)]*\))? to (1e15|\d+)`).FindStringSubmatch(form); m != nil {
		b = bounds{[]string{and(m[1], 0), and(m[2], 0)}, []string{and(m[1], -1), and(m[2], 1)}}
	} else if m := regexp.MustCompile(`^a number(?:,| from) ([\d.]+)(?: \([^)]*\))? to ([\d.e]+)`).FindStringSubmatch(form); m != nil {
		b = bounds{m[1:], []string{below(m[1]), above(m[2])}}
	} else if m := regexp.MustCompile(`^a number above (\d+|-from), at most ([\d.e]+)`).FindStringSubmatch(form); m != nil {
		least := strings.Replace(m[1], "-from", "10000", 1)
		b = bounds{[]string{above(least), m[2]}, []string{least, above(m[2])}}
	} else if m := regexp.MustCompile(`^a number above (\d+) and below (\d+)$`).FindStringSubmatch(form); m != nil {
		b = bounds{[]string{above(m[1]), below(m[2])}, m[1:]}
	} else {
		return b, false
	}
	if strings.Contains(form, "or 0 (") {
		b.taken = append(b.taken, "0")
		b.refused = append(slices.DeleteFunc(b.refused, func(s string) bool { return s == "0" }), "-1")
	}
	return b, true
}

// parseOne reads a flag where it makes sense.
func parseOne(name, value string) (said string, err error) {
	var b strings.Builder
	args := []string{"-" + name, value, "-engine", "leat", "-warmup", "0s"}
	o, c := options{engines: target.All()}, sweep.Config{}
	switch name {
	case "from", "to", "factor", "precision", "runs":
		err = o.parseSweep(args, &c, &b)
	case "threshold":
		_, _, said = call("compare", args[0], value, "none", "none")
		if strings.Contains(said, "no such file") {
			return said, nil // it has got so far
		}
		return said, errors.New(said)
	default:
		scenario := map[string]string{"fail": "redelivery", "evict": "churn"}[name]
		if fields[name].kind == groupsOnly {
			args = append(args, "-scenario", cmp.Or(scenario, "group"))
		}
		if name == "fail" {
			args = append(args, "-rate", "0") // what handlers can do is another matter
		}
		err = o.parse(args, &b, "run", nil, usage)
	}
	return b.String(), err
}

// TestForms_AgreeWithWhatIsTaken: what a form says is the largest, or the least, is taken, and nothing beyond it; in help there is no
// other form.
func TestForms_AgreeWithWhatIsTaken(t *testing.T) {
	for name, form := range forms {
		b, ok := boundsOf(t, form)
		if !ok {
			assert.Regexp(t, `^(true or false|a time |0s, or a time )`, form, "-%s: a form that no test reads", name)
			continue
		}
		for _, v := range b.taken {
			if name == "from" && v == "5e-324" {
				v = "0.5" // one message in the time that is measured
			}
			said, err := parseOne(name, v)
			assert.NoError(t, err, "-%s %s: %s", name, v, said)
		}
		for _, v := range b.refused {
			said, err := parseOne(name, v)
			if assert.Error(t, err, "-%s %s", name, v) {
				assert.Contains(t, said, "-"+name, "%s", v)
				assert.Contains(t, said, "must be", "-%s %s", name, v)
			}
		}
	}
	for _, fs := range []*flag.FlagSet{flagsOf(t, "run"), flagsOf(t, "sweep")} {
		fs.VisitAll(func(f *flag.Flag) {
			if v, ok := f.Value.(formed); ok {
				assert.Equal(t, forms[f.Name], v.form)
				return
			}
			if f.Name == "sizes" {
				return // reads its own forms, of which a number is one
			}
			_, err := strconv.ParseFloat(f.DefValue, 64)
			_, isTime := time.ParseDuration(f.DefValue)
			assert.True(t, err != nil && isTime != nil, "-%s is a number and has no form", f.Name)
		})
	}
}

// TestForms_AgreeWithTimes: the same of times.
func TestForms_AgreeWithTimes(t *testing.T) {
	for _, name := range []string{"duration", "warmup", "stop", "handler", "backoff", "timeout", "churn", "slow"} {
		args := []string{"-scenario", "slow-consumer", "-rate", "1", "-" + name, "8761h"}
		if name == "churn" {
			args[1] = "churn"
		}
		if name == "stop" {
			args = []string{"-rate", "1", "-stop", "8761h", "-duration", "8760h"}
		}
		line := refused(t, args...)
		assert.Contains(t, line, "-"+name+" is 8761h0m0s: must be ")
		assert.Contains(t, line, "8760h")
	}
}
