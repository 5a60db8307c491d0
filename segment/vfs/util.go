package vfs

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
)

// TempExt is what Replace adds to a name while it writes. What it has left there has no meaning, and can be removed.
const TempExt = ".tmp"

// Replace makes data what is in the file of that name, so that after a crash at any instant either all of it is there or what
// was there before, and all of it once Replace has returned nil: it writes a file beside it, syncs that, renames it, and syncs
// the directory. If it fails nobody knows which of the two it is. One call at a time for a name.
func Replace(fsys FS, name string, data []byte) error {
	temp := name + TempExt
	f, err := fsys.Create(temp)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(data, 0); err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = fsys.Rename(temp, name)
	}
	if err == nil {
		err = fsys.SyncDir(filepath.Dir(name))
	}
	return err
}

// ReadFile returns what is in a file, if that is at most limit bytes; otherwise the first limit+1 bytes.
func ReadFile(fsys FS, name string, limit int) ([]byte, error) {
	f, err := fsys.OpenRead(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(size, int64(limit)+1))
	n, err := f.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil // it has got shorter
	}
	return b[:n], err
}

// MkdirAll makes a directory, and those that it is in, and makes the names of all that it has made safe.
func MkdirAll(fsys FS, dir string) error {
	dir = filepath.Clean(dir)
	if info, err := fsys.Stat(dir); err == nil && info.Dir {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MkdirAll(fsys, parent); err != nil {
			return err
		}
	}
	if err := fsys.Mkdir(dir); err != nil {
		return err
	}
	return fsys.SyncDir(parent)
}
