package vfs

import (
	"io"
	"os"
)

// OS is the file system of the operating system.
type OS struct{}

var _ FS = OS{}

// osFile is an open file of the operating system.
type osFile struct{ *os.File }

// open opens a file.
func open(name string, flags int) (File, error) {
	f, err := os.OpenFile(name, flags, 0o644)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Create implements FS.
func (OS) Create(name string) (File, error) { return open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC) }

// Open implements FS.
func (OS) Open(name string) (File, error) { return open(name, os.O_RDWR) }

// OpenRead implements FS.
func (OS) OpenRead(name string) (File, error) { return open(name, os.O_RDONLY) }

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// List implements FS.
func (OS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// Mkdir implements FS.
func (OS) Mkdir(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if os.IsExist(err) {
		if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
			return nil
		}
	}
	return err
}

// Stat implements FS.
func (OS) Stat(name string) (Info, error) {
	info, err := os.Stat(name)
	if err != nil {
		return Info{}, err
	}
	return Info{Size: info.Size(), Dir: info.IsDir()}, nil
}

// SyncDir implements FS.
func (OS) SyncDir(dir string) error { return syncDir(dir) }

// Lock implements FS. It uses the advisory lock of the file, which the system gives back when the process ends in whatever
// way.
func (OS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Size implements File.
func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Sync implements File.
func (f osFile) Sync() error { return syncData(f.File) }

// Allocate implements File.
func (f osFile) Allocate(size int64) error {
	have, err := f.Size()
	if err != nil || have >= size {
		return err
	}
	return allocate(f.File, have, size)
}

// extend makes f longer without taking space for it.
func extend(f *os.File, size int64) error { return f.Truncate(size) }
