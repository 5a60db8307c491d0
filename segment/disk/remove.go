package disk

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/leatlog/leat/segment/vfs"
)

// Remove removes the log in a directory, which must not be open: its files, and the directory if nothing else is in it. Other
// files stay. It is no error if there is nothing. ErrLocked if somebody has it open.
//
// A crash in the middle leaves what counts as damaged; to call Remove again finishes it. So whoever removes a log for good says
// so in a safe place before.
func Remove(dir string, fsys vfs.FS) error {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lock, err := fsys.Lock(filepath.Join(dir, lockName))
	if err != nil {
		return err
	}
	others := 0
	for _, name := range names {
		_, ours := parseName(strings.TrimSuffix(name, tempExt))
		switch {
		case name == lockName:
		case ours || strings.TrimSuffix(name, tempExt) == stateName:
			if err == nil {
				err = fsys.Remove(filepath.Join(dir, name))
			}
		default:
			others++
		}
	}
	if err == nil {
		err = fsys.Remove(filepath.Join(dir, lockName)) // while it is held: nobody can have it then
	}
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	if closeErr := lock.Close(); err == nil {
		err = closeErr
	}
	if err != nil || others > 0 {
		return err
	}
	if err := fsys.Remove(dir); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(dir))
}
