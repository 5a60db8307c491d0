package report

import (
	"fmt"
	"math"
	"strings"
)

// gap stands between a number and its unit: a blank at which no line breaks.
const gap = "\u00a0"

// duration writes nanoseconds with three digits.
func duration(ns float64) string {
	switch {
	case ns < 999.5:
		return digits(ns) + gap + "ns"
	case ns < 999.5e3:
		return digits(ns/1e3) + gap + "us"
	case ns < 999.5e6:
		return digits(ns/1e6) + gap + "ms"
	}
	return digits(ns/1e9) + gap + "s"
}

// count writes a number of things with three digits.
func count(v float64) string {
	switch {
	case v < 9999.5 && v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case v < 999.5:
		return digits(v)
	case v < 999.5e3:
		return digits(v/1e3) + gap + "k"
	case v < 999.5e6:
		return digits(v/1e6) + gap + "M"
	}
	return digits(v/1e9) + gap + "G"
}

// memory writes a size in bytes.
func memory(v float64) string {
	switch {
	case v < 1<<20:
		return digits(v/(1<<10)) + gap + "KiB"
	case v < 1<<30:
		return digits(v/(1<<20)) + gap + "MiB"
	}
	return digits(v/(1<<30)) + gap + "GiB"
}

// rate writes messages a second.
func rate(v float64) string {
	text := count(v)
	if strings.Contains(text, gap) {
		return text + "/s"
	}
	return text + gap + "/s"
}

// seconds writes a time in seconds.
func seconds(v float64) string { return digits(v) + gap + "s" }

func digits(v float64) string {
	text := ""
	switch {
	case v < 9.995:
		text = fmt.Sprintf("%.2f", v)
	case v < 99.95:
		text = fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// percentile writes a share as a percentile: 99.9 %.
func percentile(p float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.7f", p*100), "0"), ".") + "%"
}
