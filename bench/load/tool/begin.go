package tool

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/leatlog/leat/bench/load"
)

// begun is what a run, or a search, has besides its load: files that are open, a directory, and the process as the flags say. All of it
// is there before anything runs, not after minutes of it.
type begun struct {
	outs      []opened
	log       *logger                   // nil without -hlog
	files     map[string]io.WriteCloser // of the process, by flag
	left      *leftovers                // of the process
	removeDir func()
	end       func() error // makes the process as it was, and writes what there is about it
}

// opened is an output that is open.
type opened struct {
	output
	to io.WriteCloser
}

// begin opens the files, makes the directory and changes the process. If one of them cannot be, it says so on stderr, leaves everything
// as it was and returns nil with the exit code: that of a wrong value of a flag, or, once all of them are right, of a failure.
func (o *options) begin(command string, stdout, stderr io.Writer) (*begun, int) {
	b := &begun{files: map[string]io.WriteCloser{}, left: cmp.Or(o.left, &leftovers{}), removeDir: func() {}}
	if err := o.open(b, stdout); err != nil {
		b.close()
		_ = complain(stderr, command, err)
		return nil, exitUsage
	}
	var err error
	if b.end, err = o.process.apply(b.files); err != nil {
		b.close()
		fmt.Fprintf(stderr, "leatload: %v\n", err)
		return nil, exitFailed
	}
	b.left.set(b.undo)
	return b, exitOK
}

// open does what can show that a flag is wrong.
func (o *options) open(b *begun, stdout io.Writer) (err error) {
	for _, x := range o.out.all() {
		to, err := openOut(x.flag, x.name, stdout)
		if err != nil {
			return err
		}
		if x.flag == "hlog" {
			b.log = &logger{scenario: o.scenario.Name, w: bufio.NewWriter(to)}
		}
		b.outs = append(b.outs, opened{x, to})
	}
	for _, x := range o.process.files() {
		if x.name == "" {
			continue
		}
		if b.files[x.flag], err = openOut(x.flag, x.name, stdout); err != nil {
			delete(b.files, x.flag)
			return err
		}
	}
	undo, err := o.makeDir()
	if err == nil {
		b.removeDir = undo
	}
	return err
}

// close closes what is open still, and removes the directory. Files that were made and have nothing in them go, too.
func (b *begun) close() { b.left.end(b.undo) }

// undo is close, also while the run goes on.
func (b *begun) undo() {
	for _, x := range b.outs {
		_ = x.to.Close() // what went wrong has been told by write
	}
	for _, to := range b.files {
		_ = to.Close() // or by end
	}
	b.removeDir()
}

// out returns the output of a flag, or nil.
func (b *begun) out(flag string) io.WriteCloser {
	for _, x := range b.outs {
		if x.flag == flag {
			return x.to
		}
	}
	return nil
}

// write writes what a run has shown into all outputs, and closes them.
func (b *begun) write(r *load.Result) error {
	var errs []error
	for _, x := range b.outs {
		var err error
		if x.flag == "hlog" {
			err = b.log.end()
		} else {
			err = x.write(x.to, r)
		}
		errs = append(errs, finished(x.flag, x.to, err))
	}
	return errors.Join(errs...)
}

// makeDir makes the directory for files that messages are kept in: one of this process, in that of -dir. What it returns removes what
// it has made.
func (o *options) makeDir() (undo func(), err error) {
	s := &o.scenario
	if s.Sync == "" {
		return func() {}, nil
	}
	given := s.Dir
	s.Dir, undo, err = makeDir(cmp.Or(given, os.TempDir()))
	switch {
	case err == nil:
	case given == "":
		err = fmt.Errorf("-dir is empty, and -sync needs one: must be a directory, since that for temporary files takes none: %w", err)
	default:
		err = fmt.Errorf("-dir %q: must be a directory in which files can be made, or can be one: %w", given, err)
	}
	return undo, err
}
