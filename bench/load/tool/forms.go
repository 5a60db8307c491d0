package tool

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/number"
	"github.com/leatlog/leat/bench/load/slo"
	"github.com/leatlog/leat/bench/load/stream"
)

const (
	manyTimes = "a time from 0s on, at most 8760h, such as "
	yesOrNo   = "true or false"
)

// forms say what a flag takes, of flags that are numbers, times, or yes and no: in help, and in the error about anything else. The other
// flags have values that say it themselves, or say it where they are checked.
var forms = map[string]string{
	"producers":   "a whole number, 1 to 65536",
	"partitions":  "a whole number, 1 to 65536",
	"readers":     "a whole number, 0 to 10000",
	"subscribers": "a whole number, 0 to 10000",
	"size":        "a whole number, " + strconv.Itoa(load.MinSize) + " to " + strconv.Itoa(stream.SizeMost),
	"rate":        "a number, 0 (as fast as possible) to 1e12, such as 20000, 1e6, 500k or 1M",
	"stages":      "a whole number, 1 to 16",
	"replays":     "a whole number, 0 to 10000",
	"stop":        manyTimes + "3s",
	"duration":    "a time above 0s, at most 8760h, such as 30s or 1h30m",
	"warmup":      manyTimes + "1s",
	"messages":    "a whole number, 0 (no limit) to 1e15, such as 1000000, 1e6, 500k or 1M",
	"seed":        "a whole number, 0 to 18446744073709551615",
	"floor":       yesOrNo,
	"q":           yesOrNo,
	"procs":       "a whole number, 1 to 4096, or 0 (as it is)",

	"members":     "a whole number, 1 to 10000",
	"poll":        yesOrNo,
	"concurrency": "a whole number, 0 to 10000",
	"handler":     manyTimes + "20us or 1ms",
	"fail":        "a number from 0 to 0.9",
	"deliveries":  "a whole number, 1 to 1000",
	"backoff":     "a time above 0s, at most 8760h, such as 1ms",
	"slow":        "a time from 0s on, at most 8760h, such as 5ms, or hang",
	"timeout":     manyTimes + "1s",
	"churn":       "0s, or a time from 1ms on, at most 8760h, such as 50ms",
	"evict":       "a number from 0 to 1",

	"from":      "a number above 0, at most 1e12, such as 20000, 1e6, 500k or 1M",
	"to":        "a number above -from, at most 1e12, such as 20000, 1e6, 500k or 1M, or 0 (no limit)",
	"factor":    "a number above 1, at most 1000",
	"precision": "a number from 0.001 to 1",
	"runs":      "a whole number, 1 to 10000",

	"threshold": "a number above 0 and below 1",
	"anyway":    yesOrNo,
	"json":      yesOrNo, // of compare
	"v":         yesOrNo,
}

// formed is the value of a flag, which says what it takes when it is given something else.
type formed struct {
	flag.Value
	form string
}

// Set implements flag.Value.
func (v formed) Set(text string) error {
	err := v.Value.Set(text)
	if got := v.Value.String(); err == nil && (got == "0" || got == "0s" || got == "-0") {
		err = number.Zero(text) // package flag takes them
	}
	for _, why := range []error{number.ErrVanishes, number.ErrMinus} {
		if errors.Is(err, why) {
			return fmt.Errorf("%w; must be %s", why, v.form)
		}
	}
	if err != nil {
		return fmt.Errorf("must be %s", v.form)
	}
	return nil
}

// IsBoolFlag says to package flag that the value may be left out.
func (v formed) IsBoolFlag() bool { return isBool(v.Value) }

func isBool(v flag.Value) bool {
	b, ok := v.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// withForms makes all flags say what they take.
func withForms(fs *flag.FlagSet) {
	fs.VisitAll(func(f *flag.Flag) {
		form, ok := forms[f.Name]
		if ok && (form == yesOrNo) == isBool(f.Value) {
			f.Value = formed{f.Value, form}
		}
	})
}

// told returns what help says of a flag: the name of its value, what it is for, and what it takes.
func told(f *flag.Flag) (arg, text string) {
	form := ""
	if v, ok := f.Value.(formed); ok {
		inner := *f
		inner.Value, form = v.Value, v.form
		f = &inner
	}
	arg, text = flag.UnquoteUsage(f)
	if form != "" {
		text += "; " + form
	}
	return arg, text
}

// countValue is a whole number that may be written as 1e6, 500k or 1M.
type countValue struct{ to *int64 }

func (v countValue) String() string {
	if v.to == nil {
		return ""
	}
	return strconv.FormatInt(*v.to, 10)
}

// Set implements flag.Value.
func (v countValue) Set(text string) (err error) {
	if *v.to, err = strconv.ParseInt(text, 10, 64); err == nil {
		return nil
	}
	n, err := slo.Number(text)
	if err == nil && (n != math.Trunc(n) || math.Abs(n) > 1<<53) {
		err = fmt.Errorf("%s is no whole number that can be counted", text)
	}
	*v.to = int64(n)
	return err
}
