package rivals

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/leatlog/leat/bench/rivals/arena"
)

//go:embed lmax/Lmax.java
var lmaxSource []byte

// lmaxJar is where Debian's libdisruptor-java puts the Disruptor, 3.4; DISRUPTOR_JAR names another place.
const lmaxJar = "/usr/share/java/disruptor.jar"

func disruptorJar() string {
	if jar := os.Getenv("DISRUPTOR_JAR"); jar != "" {
		return jar
	}
	return lmaxJar
}

// lmaxes are the LMAX Disruptor in Java, which a process of its own runs: see lmax/Lmax.java. Its three wait strategies are
// Blocking (its own default), Yielding and BusySpin. It publishes each message, or every so many, as those are measured.
func lmaxes() (all []*arena.Rival) {
	for _, n := range []int{1, 10, 100, 256} {
		name, about := every("lmax", n)
		all = append(all, &arena.Rival{
			Name: name, About: "LMAX Disruptor 3.4 in Java, BlockingWaitStrategy (spin: BusySpin, yield: Yielding); " + about + ".",
			Waits:   []arena.Wait{arena.Park, arena.Yield, arena.Spin},
			Start:   func(s arena.Spec) (arena.Runner, error) { return startLMAX(s, n) },
			Missing: missingLMAX,
			Warm:    3 * time.Second,
		})
	}
	return all
}

func missingLMAX() string {
	for _, tool := range []string{"java", "javac"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "skipped: there is no " + tool + " here (a JDK, 11 or later)"
		}
	}
	if _, err := os.Stat(disruptorJar()); err != nil {
		return "skipped: there is no Disruptor here (Debian's package libdisruptor-java, or set DISRUPTOR_JAR)"
	}
	return ""
}

// lmaxClasses is the compiled program, for as long as somebody uses it.
var lmaxClasses classes

type classes struct {
	mu    sync.Mutex
	users int
	dir   string
}

// take compiles the program if nobody has it, and returns the folder of its classes. Each take needs a give.
func (c *classes) take() (dir string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users == 0 {
		if c.dir, err = compileLMAX(); err != nil {
			return "", err
		}
	}
	c.users++
	return c.dir, nil
}

func (c *classes) give() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users--; c.users > 0 {
		return nil
	}
	return os.RemoveAll(c.dir)
}

func compileLMAX() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "lmax"); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	source := filepath.Join(dir, "Lmax.java")
	if err := os.WriteFile(source, lmaxSource, 0o600); err != nil {
		return "", err
	}
	out, err := exec.Command("javac", "-cp", disruptorJar(), "-d", dir, source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("javac: %w: %s", err, out)
	}
	return dir, nil
}

// lmax is the process.
type lmax struct {
	spec  arena.Spec
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // what it says, until it ends
	said  strings.Builder
	err   error // what a slice failed with: there are no more
}

// lmaxPatience is how long the process may say nothing.
const lmaxPatience = time.Minute

func startLMAX(s arena.Spec, batch int) (arena.Runner, error) {
	dir, err := lmaxClasses.take()
	if err != nil {
		return nil, err
	}
	top := s.Topology
	l := &lmax{spec: s, lines: make(chan string, 16)}
	// A fixed heap that is touched beforehand, as in its own tests; nothing is allocated while messages move.
	l.cmd = exec.Command("java", "-Xms256m", "-Xmx256m", "-XX:+AlwaysPreTouch", "-cp", dir+string(os.PathListSeparator)+disruptorJar(), "Lmax",
		fmt.Sprint(top.Producers), fmt.Sprint(top.Partitions), fmt.Sprint(top.Copies), fmt.Sprint(s.Size), s.Wait.String(), fmt.Sprint(batch))
	l.cmd.Stderr = &l.said
	out, err := l.cmd.StdoutPipe()
	if err == nil {
		l.in, err = l.cmd.StdinPipe()
	}
	if err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, lmaxClasses.give())
	}
	go func() {
		defer close(l.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			l.lines <- scan.Text()
		}
	}()
	if line, err := l.hear(context.Background()); err != nil || line != "ready" {
		return nil, errors.Join(fmt.Errorf("lmax does not start: %q", line), err, l.Close())
	}
	return l, nil
}

// hear returns the next line.
func (l *lmax) hear(ctx context.Context) (string, error) {
	timer := time.NewTimer(lmaxPatience)
	defer timer.Stop()
	select {
	case line, ok := <-l.lines:
		if !ok {
			return "", errors.New("lmax has ended")
		}
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-timer.C:
		return "", fmt.Errorf("%w: lmax says nothing", arena.ErrStuck)
	}
}

// Rated implements arena.Runner.
func (l *lmax) Rated(rate float64) { l.spec.Rate = rate }

// Slice implements arena.Runner. Numbers are rounded up as those of arena.Traffic. Processor time is that of the Java process;
// nothing is known of what it allocates.
func (l *lmax) Slice(ctx context.Context, n uint64) (arena.Slice, error) {
	if l.err != nil {
		return arena.Slice{}, l.err
	}
	s, err := l.slice(ctx, n)
	if err != nil {
		l.err = fmt.Errorf("lmax: %v: %w", l.spec, err)
	}
	return s, l.err
}

func (l *lmax) slice(ctx context.Context, n uint64) (s arena.Slice, err error) {
	top := l.spec.Topology
	share := l.spec.Share(n)
	cpu, known := processCPU(l.cmd.Process.Pid)
	if _, err := fmt.Fprintf(l.in, "%d %g\n", share, l.spec.Rate); err != nil {
		return s, err
	}
	line, err := l.hear(ctx)
	if err != nil {
		return s, err
	}
	if text, ok := strings.CutPrefix(line, "fault "); ok {
		return s, fmt.Errorf("%w: %s", arena.ErrFault, text)
	}
	s.Messages = share * uint64(top.Producers)
	h := &s.Latency
	_, err = fmt.Sscanf(line, "ok %d %d %d %d %d %f %d %d %d %d %d %d", &s.Ns, &s.CPU, &s.GCs, &s.GCPause,
		&h.Count, &h.Mean, &h.P50, &h.P90, &h.P99, &h.P999, &h.P9999, &h.Max)
	if err != nil {
		return s, fmt.Errorf("lmax says %q: %w", line, err)
	}
	if after, ok := processCPU(l.cmd.Process.Pid); ok && known {
		s.CPU = after - cpu // with what it takes to start the threads of the slice
	}
	return s, nil
}

// Close implements arena.Runner.
func (l *lmax) Close() error {
	err := l.in.Close() // that is its end
	timer := time.AfterFunc(10*time.Second, func() { _ = l.cmd.Process.Kill() })
	defer timer.Stop()
	for line := range l.lines {
		if text, ok := strings.CutPrefix(line, "fault "); ok && l.err == nil {
			err = errors.Join(err, fmt.Errorf("%w: %s", arena.ErrFault, text))
		}
	}
	if e := l.cmd.Wait(); e != nil && l.err == nil {
		err = errors.Join(err, fmt.Errorf("lmax: %w: %s", e, l.said.String()))
	}
	return errors.Join(err, lmaxClasses.give())
}
