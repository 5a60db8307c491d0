package stream

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
)

// SizeForms are the forms that ParseSizes knows, for help and errors.
const SizeForms = "a number (64), uniform:LEAST-MOST (uniform:16-1024), lognormal:MEDIAN:SIGMA[:MOST] (lognormal:64:1.2), " +
	"bimodal:SMALL:LARGE:SHARE of large ones (bimodal:64:4096:0.1), file:PATH with a size a line"

// SizeMost is the largest size that ParseSizes reads, in bytes: 256 MiB.
const SizeMost = 1 << 28

// logMost is the largest size where a form does not say it, and fileMost how many lines a file may have.
const (
	logMost  = 1 << 20
	fileMost = 1 << 24
)

type sizeKind int

const (
	fixed sizeKind = iota
	uniform
	logNormal
	bimodal
	listed
)

// Sizes says how large messages are, in bytes. The zero value is a size of 0.
type Sizes struct {
	kind  sizeKind
	least int // of all that can come
	most  int
	a, b  float64 // log-normal: mean and deviation of the logarithm; bimodal: b is the share of the large ones
	path  string
	list  []int
	mean  float64
}

// ParseSizes reads one of SizeForms. No size may be below least: what a message needs for itself. A file is read now.
//
// Sizes from a log-normal distribution above MOST (by default 1 MiB) become MOST, and those below least become least. The sizes
// in a file come in the order of its lines, again and again; producers begin at places of their own.
func ParseSizes(text string, least int) (Sizes, error) {
	s := Sizes{}
	kind, args := fields(text)
	var err error
	switch kind {
	case "uniform":
		err = s.parseUniform(args, least)
	case "lognormal":
		err = s.parseLogNormal(args, least)
	case "bimodal":
		err = s.parseBimodal(args, least)
	case "file":
		err = s.parseFile(strings.TrimPrefix(text, "file:"), least)
	default:
		if err = arguments(args, 0, 0, "a number"); err != nil {
			err = fmt.Errorf("%q is unknown", kind)
			break
		}
		s.least, err = whole("size", kind, least, SizeMost)
		s.most, s.mean = s.least, float64(s.least)
	}
	if err != nil {
		return Sizes{}, formError(text, SizeForms, "%v", err)
	}
	return s, nil
}

func (s *Sizes) parseUniform(args []string, least int) (err error) {
	if err := arguments(args, 1, 1, "uniform:LEAST-MOST"); err != nil {
		return err
	}
	low, high, _ := strings.Cut(args[0], "-")
	if s.least, err = whole("LEAST", low, least, SizeMost); err != nil {
		return err
	}
	s.most, err = whole("MOST", high, s.least, SizeMost)
	s.kind, s.mean = uniform, (float64(s.least)+float64(s.most))/2
	return err
}

func (s *Sizes) parseLogNormal(args []string, least int) (err error) {
	if err := arguments(args, 2, 3, "lognormal:MEDIAN:SIGMA[:MOST]"); err != nil {
		return err
	}
	median, err := between("MEDIAN", args[0], float64(max(least, 1)), SizeMost)
	if err != nil {
		return err
	}
	if s.b, err = between("SIGMA", args[1], 0, 10); err != nil {
		return err
	}
	s.kind, s.least, s.most, s.a = logNormal, least, max(logMost, int(median)), math.Log(median)
	if len(args) == 3 {
		if s.most, err = whole("MOST", args[2], int(math.Ceil(median)), SizeMost); err != nil {
			return err
		}
	}
	s.mean = s.clampedMean()
	return nil
}

// clampedMean is the mean of the log-normal distribution with both ends cut off and put there, as Next does it.
func (s *Sizes) clampedMean() float64 {
	if s.b == 0 {
		return math.Round(math.Exp(s.a))
	}
	cdf := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
	z := func(v int) float64 {
		if v <= 0 {
			return math.Inf(-1)
		}
		return (math.Log(float64(v)) - s.a) / s.b
	}
	low, high := z(s.least), z(s.most)
	middle := math.Exp(s.a+s.b*s.b/2) * (cdf(high-s.b) - cdf(low-s.b))
	return middle + float64(s.least)*cdf(low) + float64(s.most)*cdf(-high)
}

func (s *Sizes) parseBimodal(args []string, least int) (err error) {
	if err := arguments(args, 3, 3, "bimodal:SMALL:LARGE:SHARE"); err != nil {
		return err
	}
	if s.least, err = whole("SMALL", args[0], least, SizeMost); err != nil {
		return err
	}
	if s.most, err = whole("LARGE", args[1], s.least, SizeMost); err != nil {
		return err
	}
	s.b, err = between("SHARE", args[2], 0, 1)
	s.kind, s.mean = bimodal, float64(s.least)*(1-s.b)+float64(s.most)*s.b
	return err
}

func (s *Sizes) parseFile(path string, least int) error {
	s.kind, s.path, s.least = listed, path, SizeMost
	var sum float64
	err := eachLine(path, func(line string) error {
		line = strings.TrimSpace(line)
		v, err := whole("size", line[:min(len(line), 32)], least, SizeMost) // no number is longer, and an error shows it
		if err != nil {
			return err
		}
		s.list = append(s.list, v)
		s.least, s.most, sum = min(s.least, v), max(s.most, v), sum+float64(v)
		return nil
	})
	s.mean = sum / float64(max(len(s.list), 1))
	return err
}

// eachLine calls f with each line of a file that is not blank. Lines may have 64 KiB.
func eachLine(path string, f func(line string) error) error {
	if path == "" {
		return errors.New("PATH is empty")
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewScanner(file)
	lines, used := 0, 0
	for in.Scan() {
		lines++
		if strings.TrimSpace(in.Text()) == "" {
			continue
		}
		if used++; used > fileMost {
			return fmt.Errorf("%s has more than %d lines", path, fileMost)
		}
		if err := f(in.Text()); err != nil {
			return fmt.Errorf("%s, line %d: %v", path, lines, err)
		}
	}
	if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%s, line %d: more than %d KiB: must be a line for each", path, lines+1, bufio.MaxScanTokenSize>>10)
	} else if err != nil {
		return fmt.Errorf("%s, line %d: %v", path, lines+1, err)
	}
	if used == 0 {
		return fmt.Errorf("%s is empty", path)
	}
	return nil
}

// String returns the text that ParseSizes reads.
func (s Sizes) String() string {
	switch s.kind {
	case uniform:
		return fmt.Sprintf("uniform:%d-%d", s.least, s.most)
	case logNormal:
		// The median as it was given: its logarithm is off in the last digits.
		median := strconv.FormatFloat(math.Exp(s.a), 'g', 12, 64)
		return fmt.Sprintf("lognormal:%s:%s:%d", median, text(s.b), s.most)
	case bimodal:
		return fmt.Sprintf("bimodal:%d:%d:%s", s.least, s.most, text(s.b))
	case listed:
		return "file:" + s.path
	}
	return strconv.Itoa(s.least)
}

// Most returns the largest size that can come: what a buffer must hold.
func (s Sizes) Most() int { return s.most }

// Least returns the smallest size that can come.
func (s Sizes) Least() int { return s.least }

// Mean returns the mean size.
func (s Sizes) Mean() float64 { return s.mean }

// SizeStream draws sizes.
type SizeStream struct {
	s      Sizes
	random *rand.Rand
	at     int
}

// Stream returns the sizes of a part's messages.
func (s Sizes) Stream(p Part) *SizeStream {
	return &SizeStream{s: s, random: p.random(forSizes), at: p.place(len(s.list))}
}

// place is where a part begins in a list of n.
func (p Part) place(n int) int {
	return int(float64(n) * float64(p.Producer) / float64(max(p.Of, 1)))
}

// Next returns the size of the next message.
func (x *SizeStream) Next() int {
	s := &x.s
	switch s.kind {
	case uniform:
		return s.least + x.random.IntN(s.most-s.least+1)
	case logNormal:
		v := math.Exp(s.a + s.b*x.random.NormFloat64())
		return int(math.Round(min(max(v, float64(s.least)), float64(s.most))))
	case bimodal:
		if x.random.Float64() < s.b {
			return s.most
		}
		return s.least
	case listed:
		v := s.list[x.at]
		if x.at++; x.at == len(s.list) {
			x.at = 0
		}
		return v
	}
	return s.least
}
