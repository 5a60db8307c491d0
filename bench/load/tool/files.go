package tool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// outFile is a file that is opened before a run, not after minutes of it. It keeps what it has until there is something to write, and is
// removed if there never is and it was not there before.
type outFile struct {
	f       *os.File
	created bool
	begun   bool
	closed  bool
}

// openOut opens the file of a flag; - is standard output, and nothing is nil.
func openOut(flag, name string, stdout io.Writer) (io.WriteCloser, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return nopCloser{stdout}, nil
	}
	_, missing := os.Lstat(name)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("-%s: must be a file that can be written: %w", flag, err)
	}
	return &outFile{f: f, created: errors.Is(missing, fs.ErrNotExist)}, nil
}

// Write implements io.Writer.
func (o *outFile) Write(p []byte) (int, error) {
	if !o.begun {
		o.begun = true
		if info, err := o.f.Stat(); err == nil && info.Mode().IsRegular() {
			if err := o.f.Truncate(0); err != nil {
				return 0, err
			}
		}
	}
	return o.f.Write(p)
}

// Close implements io.Closer. It may be called again.
func (o *outFile) Close() error {
	if o.closed {
		return nil
	}
	o.closed = true
	err := o.f.Close()
	if o.created && !o.begun {
		err = errors.Join(err, os.Remove(o.f.Name()))
	}
	return err
}

// nopCloser is a writer whose Close does nothing.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// makeDir makes a directory, and those above it that are missing, and tries whether there can be others in it. What it returns removes
// those it has made, as far as they are empty.
func makeDir(dir string) (undo func(), err error) {
	var missing []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			return nil, err
		}
		missing = append(missing, d)
	}
	var made []string
	undo = func() {
		for _, d := range slices.Backward(made) {
			_ = os.Remove(d) // somebody else may have something in it by now
		}
	}
	for _, d := range slices.Backward(missing) {
		if err := os.Mkdir(d, 0o755); err != nil {
			undo()
			return nil, err
		}
		made = append(made, d)
	}
	try, err := os.MkdirTemp(dir, "leatload-")
	if err == nil {
		err = os.Remove(try)
	}
	if err != nil {
		undo()
		return nil, err
	}
	return undo, nil
}
