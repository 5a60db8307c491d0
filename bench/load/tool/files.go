package tool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// fileOf is a file that a flag names, or, without one, an argument.
type fileOf struct{ flag, name string }

func (f fileOf) String() string {
	if f.flag == "" {
		return f.name
	}
	return "-" + f.flag + " " + f.name
}

// distinct says which of the files that are to be written is one that is read, or is to be written twice, or is a flag, since the file
// was forgotten.
func distinct(in, out []fileOf) error {
	for i, o := range out {
		if len(o.name) > 1 && o.name[0] == '-' {
			return fmt.Errorf("-%s is %q: must be a file, and ./%s if that is one", o.flag, o.name, o.name)
		}
		for _, other := range slices.Concat(in, out[:i]) {
			if o.name != "" && o.name != "-" && other.name != "" && sameFile(o.name, other.name) {
				return fmt.Errorf("%s and %s are one file: must be different ones, or one would overwrite the other", o, other)
			}
		}
	}
	return nil
}

// sameFile reports whether two names are those of one file, which need not be there yet. Devices may be written by several.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX == nil && errY == nil {
		return x.Mode().IsRegular() && os.SameFile(x, y)
	}
	return resolved(a) == resolved(b)
}

// resolved is the name with all links in its directory followed, as far as that is there.
func resolved(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		name = abs
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(name))
	if err != nil {
		return name
	}
	return filepath.Join(dir, filepath.Base(name))
}

// openOut opens the file of a flag; - is standard output. What cannot be written into it is what Close returns, whoever writes: some do
// not look at that.
func openOut(flag, name string, stdout io.Writer) (io.WriteCloser, error) {
	if name == "-" {
		return &toStdout{flag, stdout}, nil
	}
	_, missing := os.Lstat(name)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("-%s %q: must be a file that can be written: %w", flag, name, err)
	}
	return &outFile{flag: flag, f: f, created: errors.Is(missing, fs.ErrNotExist)}, nil
}

// finished closes an output and returns what went wrong: with writing into it, or else, which is err, with making what is written.
func finished(flag string, to io.Closer, err error) error {
	if closeErr := to.Close(); closeErr != nil {
		return closeErr
	}
	if err != nil {
		return fmt.Errorf("-%s: %w", flag, err)
	}
	return nil
}

// notWritten says that an output is not what it should be.
func notWritten(what string, err error) error {
	return fmt.Errorf("%s could not be written: %w", what, err)
}

// outFile is a file that is opened before a run. It keeps what it has until there is something to write, and is removed if there never is
// and it was not there before.
type outFile struct {
	flag    string
	f       *os.File
	created bool

	mu     sync.Mutex // profiles and traces are written by the runtime's goroutines
	begun  bool
	closed bool
	err    error // the first one; what comes after it is not written
}

// Write implements io.Writer.
func (o *outFile) Write(p []byte) (n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && !o.begun {
		o.begun = true
		if info, err := o.f.Stat(); err == nil && info.Mode().IsRegular() {
			o.err = o.f.Truncate(0)
		}
	}
	if o.err == nil {
		n, o.err = o.f.Write(p)
	}
	return n, o.err
}

// Close implements io.Closer. It may be called again, and then does nothing.
func (o *outFile) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	o.closed = true
	if err := o.f.Close(); o.err == nil {
		o.err = err
	}
	if o.created && !o.begun {
		if err := os.Remove(o.f.Name()); o.err == nil {
			o.err = err
		}
	}
	if o.err != nil {
		return notWritten("-"+o.flag, o.err)
	}
	return nil
}

// printed is standard output or standard error. It remembers what could not be written, whether or not who wrote it looks at that.
type printed struct {
	w      io.Writer
	name   string
	unread func(again func()) // see leftovers

	mu  sync.Mutex // a run is watched by others
	err error      // the first one, until somebody tells of it
}

// Write implements io.Writer.
func (p *printed) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if p.unread != nil && isPipe(err) {
		p.unread(func() { _, _ = p.w.Write(b[n:]) })
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	return n, err
}

// lost returns what could not be written, to who will tell of it.
func (p *printed) lost() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.err
	p.err = nil
	return err
}

// toStdout is standard output as the file of a flag.
type toStdout struct {
	flag string
	io.Writer
}

// Close implements io.Closer. It says what could not be written.
func (t *toStdout) Close() error {
	if p, ok := t.Writer.(*printed); ok {
		if err := p.lost(); err != nil {
			return notWritten("-"+t.flag, err)
		}
	}
	return nil
}

// makeDir makes a directory in another one, and those above it that are missing. What it returns removes it with all that is in it by then,
// though somebody may be writing there, and the others that it has made as far as they are empty.
func makeDir(in string) (dir string, undo func(), err error) {
	var missing []string
	for d := filepath.Clean(in); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			return "", nil, err
		}
		missing = append(missing, d)
	}
	var made []string
	undo = func() {
		for range 100 { // until nothing new has come meanwhile
			if dir == "" || os.RemoveAll(dir) == nil {
				break
			}
		}
		for _, d := range slices.Backward(made) {
			_ = os.Remove(d) // somebody else may have something in it by now
		}
	}
	for _, d := range slices.Backward(missing) {
		if err := os.Mkdir(d, 0o755); err != nil {
			undo()
			return "", nil, err
		}
		made = append(made, d)
	}
	if dir, err = os.MkdirTemp(in, "leatload-"); err != nil {
		undo()
		return "", nil, err
	}
	return dir, undo, nil
}
