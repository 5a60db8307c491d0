package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitDamaged = 3
)

// program is one call of the program.
type program struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	out            *bufio.Writer // to stdout
	flags          flags
	dir            string
	name           string // of a topic or group; may be empty
}

// flags are those of all commands.
type flags struct {
	partition int
	from, to  int64
	since     string
	count     int64
	format    string
	file      string
	progress  string
}

// command is a sub-command.
type command struct {
	name  string
	args  string
	about string
	named bool     // needs a second argument
	flags []string // which it has
	run   func(*program) error
}

func commands() []command {
	return []command{
		{"topics", "DIR", "lists the topics: what they are like and how much they hold", false, nil, (*program).topics},
		{"segments", "DIR [TOPIC]", "lists the files of each partition, with their offsets and times", false, []string{"partition"}, (*program).segments},
		{"records", "DIR TOPIC", "shows records", true, []string{"partition", "from", "to", "since", "n", "format"}, (*program).records},
		{"verify", "DIR [TOPIC]", "reads everything and checks every checksum", false, []string{"partition", "progress"}, (*program).verify},
		{"groups", "DIR [GROUP]", "shows where groups and named subscriptions are, and how far behind", false, nil, (*program).groups},
		{"export", "DIR TOPIC", "writes a topic as lines of JSON", true, []string{"o", "progress"}, (*program).export},
		{"import", "DIR [TOPIC]", "makes a topic of what export has written", false, []string{"i", "progress"}, (*program).imports},
	}
}

// errUsage is an error of the arguments.
type errUsage struct{ error }

// errDamaged says that something is damaged; what it is has been told.
var errDamaged = errors.New("something is damaged")

// run is the program. Its arguments are those after the program's name.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr, out: bufio.NewWriterSize(stdout, 64<<10)}
	cmd, err := p.parse(args)
	if errors.Is(err, flag.ErrHelp) {
		usage(stdout, cmd)
		return exitOK
	}
	if err == nil {
		err = cmd.run(p)
		if flushErr := p.out.Flush(); err == nil {
			err = flushErr
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "leatdump: %v\n", err)
	}
	var u errUsage
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &u):
		fmt.Fprintln(stderr, "leatdump -h explains")
		return exitUsage
	case errors.Is(err, errDamaged), errors.Is(err, engine.ErrCorrupt), errors.Is(err, disk.ErrCorrupt):
		return exitDamaged
	}
	return exitFailed
}

// parse takes the arguments apart. Flags may stand anywhere behind the command.
func (p *program) parse(args []string) (*command, error) {
	if len(args) == 0 {
		return nil, errUsage{errors.New("what is to be done?")}
	}
	if args[0] == "help" || strings.HasPrefix(args[0], "-") {
		if args[0] != "help" && strings.TrimLeft(args[0], "-") != "h" && strings.TrimLeft(args[0], "-") != "help" {
			return nil, errUsage{fmt.Errorf("flags come after the command: %s", args[0])}
		}
		return nil, flag.ErrHelp
	}
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == args[0] })
	if i < 0 {
		return nil, errUsage{fmt.Errorf("unknown command %q", args[0])}
	}
	cmd := &all[i]
	set := p.flags.set(cmd)
	var words []string
	for rest := args[1:]; ; {
		if err := set.Parse(rest); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return cmd, err
			}
			return cmd, errUsage{err}
		}
		if set.NArg() == 0 {
			break
		}
		words, rest = append(words, set.Arg(0)), set.Args()[1:]
	}
	switch {
	case len(words) == 0 || cmd.named && len(words) < 2 || len(words) > 2 || len(words) == 2 && cmd.args == "DIR":
		return cmd, errUsage{fmt.Errorf("usage: leatdump %s [flags] %s", cmd.name, cmd.args)}
	case len(words) == 2:
		p.name = words[1]
	}
	p.dir = words[0]
	return cmd, p.flags.check()
}

// set returns the flags of a command.
func (f *flags) set(cmd *command) *flag.FlagSet {
	all, set := flag.NewFlagSet(cmd.name, flag.ContinueOnError), flag.NewFlagSet(cmd.name, flag.ContinueOnError)
	all.IntVar(&f.partition, "partition", -1, "only this `number`; -1 means all")
	all.Int64Var(&f.from, "from", -1, "begin at this `offset`")
	all.Int64Var(&f.to, "to", -1, "end before this `offset`")
	all.StringVar(&f.since, "since", "", "begin with what was appended at this `time`: 2026-11-29T23:00:00Z, or 15m for so long ago")
	all.Int64Var(&f.count, "n", 0, "show so `many` of each partition at the most; 0 means all")
	all.StringVar(&f.format, "format", "text", "`how`: text, hex, or json for a line of JSON each")
	all.StringVar(&f.file, "o", "-", "write to this `file`; - means standard output")
	all.StringVar(&f.file, "i", "-", "read this `file`; - means standard input")
	all.StringVar(&f.progress, "progress", "auto", "show a bar on standard error: auto (on a terminal), always, never; `when`")
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	all.VisitAll(func(x *flag.Flag) {
		if slices.Contains(cmd.flags, x.Name) {
			set.Var(x.Value, x.Name, x.Usage)
		}
	})
	return set
}

func (f *flags) check() error {
	switch {
	case !slices.Contains([]string{"text", "hex", "json"}, f.format):
		return errUsage{fmt.Errorf("-format is %q, not text, hex or json", f.format)}
	case !slices.Contains([]string{"auto", "always", "never"}, f.progress):
		return errUsage{fmt.Errorf("-progress is %q, not auto, always or never", f.progress)}
	case f.from >= 0 && f.since != "":
		return errUsage{errors.New("-from and -since exclude each other")}
	case f.count < 0:
		return errUsage{fmt.Errorf("-n is %d", f.count)}
	}
	return nil
}

// inspect reads what the directory says about itself.
func (p *program) inspect() (*engine.Contents, error) {
	all, err := engine.Inspect(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not the directory of an engine: %w", p.dir, err)
	}
	return all, err
}

// selected returns the topics that are meant: the one that has been named, or all.
func (p *program) selected() ([]engine.TopicContents, error) {
	all, err := p.inspect()
	if err != nil || p.name == "" {
		if err != nil {
			return nil, err
		}
		return all.Topics, nil
	}
	for _, t := range all.Topics {
		if t.Name == p.name {
			if p.flags.partition >= len(t.Dirs) {
				return nil, errUsage{fmt.Errorf("topic %s has %d partitions", t.Name, len(t.Dirs))}
			}
			return []engine.TopicContents{t}, nil
		}
	}
	return nil, fmt.Errorf("there is no topic %s", p.name)
}

// partitions calls f for each partition that is meant, with its files open for reading. If they cannot be opened log is nil.
func (p *program) partitions(t *engine.TopicContents, f func(i int, log *disk.Log, err error) error) error {
	for i, dir := range t.Dirs {
		if p.flags.partition >= 0 && p.flags.partition != i {
			continue
		}
		if err := p.ctx.Err(); err != nil {
			return err
		}
		log, err := disk.Open(dir, partitionConfig(t, i))
		err = f(i, log, err)
		if log != nil {
			err = errors.Join(err, log.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// partitionConfig says how to open the files of a partition for reading.
func partitionConfig(t *engine.TopicContents, i int) disk.Config {
	return disk.Config{Topic: frame.ID(t.ID), Partition: int32(i), ReadOnly: true, Existing: true}
}

// wrong reports whether an error of opening says that the files are not what they should be.
func wrong(err error) bool {
	return errors.Is(err, disk.ErrCorrupt) || errors.Is(err, disk.ErrForeign) || errors.Is(err, disk.ErrVersion) ||
		errors.Is(err, fs.ErrNotExist)
}
