package vfs

import (
	"errors"
	"io"
)

var (
	// ErrLocked says that somebody else holds the lock, in this process or another. Trying again helps once that one is gone.
	ErrLocked = errors.New("vfs: locked by somebody else")

	// ErrFull says that the file system has no room for more. What the real system reports for that differs; IsFull knows.
	ErrFull = errors.New("vfs: no space left")
)

// IsFull reports whether err means that there is no room: on the device, in the quota, or below the limit for the size of
// files.
func IsFull(err error) bool { return errors.Is(err, ErrFull) || isFull(err) }

// FS is a file system. Names are paths in the form of package path/filepath. Errors match fs.ErrNotExist and fs.ErrExist
// where that is what is wrong. All methods may be called by any number of goroutines.
type FS interface {
	// Create makes an empty file, or empties the one that is there, and opens it for reading and writing.
	Create(name string) (File, error)
	// Open opens a file that is there for reading and writing.
	Open(name string) (File, error)
	// OpenRead opens a file that is there for reading.
	OpenRead(name string) (File, error)
	// Rename gives a file another name in the same directory. If that name was taken its file is gone.
	Rename(from, to string) error
	// Remove takes a file, or a directory with nothing in it, away.
	Remove(name string) error
	// List returns the names of what is in a directory, sorted.
	List(dir string) ([]string, error)
	// Mkdir makes a directory; its parent must be there. It is no error if the directory is there already.
	Mkdir(dir string) error
	// Stat says what there is under a name.
	Stat(name string) (Info, error)
	// SyncDir makes the names in a directory safe: see the package's promises.
	SyncDir(dir string) error
	// Lock takes the lock with the name of a file, which it makes if necessary and leaves in place. It does not wait: if
	// somebody else has the lock the error is ErrLocked. Closing what it returns gives the lock back, and so does the end of
	// the process.
	Lock(name string) (io.Closer, error)
}

// File is an open file. ReadAt may be called by any number of goroutines, beside one that calls the other methods and one
// that calls Sync.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes safe what has been written before it was called, and the length of the file: see the package's promises.
	Sync() error
	// Truncate changes the length of the file. What it grows by is zeroes.
	Truncate(size int64) error
	// Allocate makes the file at least size bytes long, with zeroes at its end, and if the file system can do so takes the
	// space for them, so that writing there will not fail for want of it.
	Allocate(size int64) error
	// Size returns how many bytes the file has.
	Size() (int64, error)
}

// Info is what Stat returns.
type Info struct {
	// Size is the length of a file in bytes.
	Size int64
	// Dir says that it is a directory.
	Dir bool
}
