package tool

import (
	"flag"
	"io"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRefused_Flags: what is wrong with the flags themselves is said in our words, with what was meant, and where to look.
func TestRefused_Flags(t *testing.T) {
	for line, args := range map[string][]string{
		"there is no flag -durtaion: did you mean -duration?":                                             {"-durtaion", "1s"},
		"there is no flag -dur: did you mean -duration?":                                                  {"-dur=1s"},
		"there is no flag -Rate: did you mean -rate?":                                                     {"--Rate", "5"},
		"there is no flag -seeds: did you mean -seed?":                                                    {"run", "-seeds", "1"},
		"there is no flag -x\nleatload -h lists the flags and scenarios":                                  {"-x"},
		"there is no flag -frobnicate\nleatload -h":                                                       {"-frobnicate"},
		"there is no flag -precison: did you mean -precision?\nleatload sweep -h says how it is used\n":   {"sweep", "-precison", "1"},
		"there is no flag -treshold: did you mean -threshold?\nleatload compare -h says how it is used\n": {"compare", "-treshold", "1"},
		"there is no flag -titel: did you mean -title?\nleatload report -h says how it is used\n":         {"report", "a", "-titel", "1"},
		"there is no flag -q\nleatload list -h says how it is used\n":                                     {"list", "-q"},
		"-rate needs a value: it is (messages) ":                                                          {"-q", "-rate"},
		"-o needs a value: it is (file) ":                                                                 {"report", "a", "-o"},
		"-threshold needs a value: it is (change) ":                                                       {"compare", "-threshold"},
		`-poll "maybe": must be true or false`:                                                            {"-poll=maybe"},
		`-q "": must be true or false`:                                                                    {"-q="},
		`-v "2": must be true or false`:                                                                   {"list", "-v=2"},
		"-floor false: must be -floor=false, since true or false may be":                                  {"-floor", "false"},
		"-anyway true: must be -anyway=true":                                                              {"compare", "-anyway", "true", "a", "b"},
		`"---rate": must be a flag, -name or -name=value`:                                                 {"---rate", "1"},
		`"-=1": must be a flag, -name or -name=value`:                                                     {"-=1"},
		`unexpected argument "x"`:                                                                         {"-q", "--", "x"},
		`unexpected argument "-"`:                                                                         {"-"},
		`-h "perhaps": must be true or false`:                                                             {"-h=perhaps"},
		`-rate "x": must be a number`:                                                                     {"-h=false", "-rate", "x"},
	} {
		refused(t, args...)
		_, _, stderr := call(args...)
		assert.Contains(t, stderr, line)
	}
}

// TestRefused_Empty: an empty value is one that was forgotten, of every flag of which help does not say what it stands for.
func TestRefused_Empty(t *testing.T) {
	flags := map[string][]string{"compare": {"threshold", "anyway", "json"}, "list": {"v"}}
	for _, command := range []string{"run", "sweep"} {
		flagsOf(t, command).VisitAll(func(f *flag.Flag) {
			if f.Name != "gc" && f.Name != "memlimit" {
				flags[command] = append(flags[command], f.Name)
			}
		})
	}
	for command, names := range flags {
		for _, name := range names {
			for _, blank := range []string{"", " ", "\t "} {
				assert.Regexp(t, "^leatload: -"+name+" ("+regexp.QuoteMeta(strconv.Quote(blank))+": |is empty: ).*(must|it takes)", refused(t, command, "-"+name+"="+blank))
			}
		}
	}
	for _, args := range [][]string{{"-gc", ""}, {"-memlimit="}} {
		_, err := parse(args, io.Discard)
		assert.NoError(t, err, "as it is")
	}
	for line, args := range map[string][]string{
		`leatload: -json "": must not be empty; it is (file) write the result as JSON to this file; - is standard output.`: {"-json="},
		`leatload: -slo " ": must not be empty; it is (objectives) what the run is to meet, `:                              {"sweep", "-slo", " "},
		"leatload: the name of a file is empty: must be one that -json has written":                                        {"compare", "", ""},
		"leatload: the name of a file is empty: must be one":                                                               {"report", ""},
		`leatload: scenario "": must be one of mixed, unicast`:                                                             {"list", ""},
		`leatload: -keys "file:": PATH is empty`:                                                                           {"-keys", "file:"},
	} {
		assert.Contains(t, refused(t, args...), line)
	}
}

// TestHelp_No: help that is not asked for does not come in the place of what is.
func TestHelp_No(t *testing.T) {
	for _, args := range [][]string{{"-h=false"}, {"--help=0"}, {"run", "-h=F"}} {
		o, err := parse(args[len(args)-1:], io.Discard)
		require.NoError(t, err, "%v", args)
		assert.NotNil(t, o.target)
	}
	code, stdout, stderr := call("list", "-h=false", "churn")
	assert.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, "churn")
	for _, args := range [][]string{{"-h=true"}, {"-help"}, {"--h"}, {"-q", "-h=1"}} {
		_, err := parse(args, io.Discard)
		assert.ErrorIs(t, err, flag.ErrHelp, "%v", args)
	}
}

// TestSetFlags_LikePackageFlag: whatever package flag takes is taken, and means the same.
func TestSetFlags_LikePackageFlag(t *testing.T) {
	type values struct {
		n    int
		s    string
		b    bool
		rest []string
	}
	flags := func(v *values) *flag.FlagSet {
		fs := newFlags("x")
		fs.IntVar(&v.n, "n", 0, "")
		fs.StringVar(&v.s, "s", "", "a text; empty: none")
		fs.BoolVar(&v.b, "b", false, "")
		return fs
	}
	words := []string{"-n", "--n", "-n=1", "1", "-s", "-s=", "--s=-x", "-b", "-b=false", "-b=t", "x", "-", "--", "", "-n=a=b", "-x", "---", "-="}
	for i := range len(words) * len(words) * len(words) {
		args := []string{words[i%len(words)], words[i/len(words)%len(words)], words[i/len(words)/len(words)]}
		var want, got values
		theirs, ours := flags(&want), flags(&got)
		wantErr := theirs.Parse(args)
		want.rest = theirs.Args()
		rest, err := setFlags(ours, args)
		got.rest = rest
		require.Equal(t, wantErr == nil, err == nil, "%q: %v, %v", args, wantErr, err)
		if err == nil {
			assert.ElementsMatch(t, want.rest, got.rest, "%q", args)
			got.rest = want.rest
			assert.Equal(t, want, got, "%q", args)
		}
	}
}
