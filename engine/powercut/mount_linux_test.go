package powercut_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// system is a kind of file system.
type system struct {
	name  string
	bytes int64    // how large an image is
	args  []string // of mkfs, before the name of the image
	// options of mount: nothing but a sync makes the file system write its journal, as far as it can be told so
	options string
	// careless is the option with which it does not flush the disk, if there is one
	careless string
	// whole is the one place that the file system writes without a journal, and takes to be written as a whole: if half of it is
	// missing it cannot be mounted any more.
	whole span
	alone bool // two copies of a file system cannot be mounted at once, at least not by every kernel
}

var systems = []system{
	{"ext4", 16 << 20, []string{"-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"}, "commit=300", "nobarrier",
		span{1 << 10, 2 << 10}, false},
	{"xfs", 300 << 20, []string{"-q", "-f"}, "nouuid", "", span{}, false},
	{"btrfs", 128 << 20, []string{"-q", "-f", "--mixed"}, "commit=300", "nobarrier", span{64 << 10, 68 << 10}, true},
}

// make returns the image of an empty file system. The test is skipped if none can be made here.
func (s system) make(t testing.TB) *image {
	t.Helper()
	mkfs, err := exec.LookPath("mkfs." + s.name)
	if err != nil {
		t.Skipf("there is no mkfs.%s here", s.name)
	}
	name := filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	require.NoError(t, os.Truncate(name, s.bytes))
	out, err := exec.Command(mkfs, append(s.args, name)...).CombinedOutput()
	require.NoError(t, err, "%s: %s", mkfs, out)
	file, err := os.Open(name)
	require.NoError(t, err)
	defer file.Close()
	im, b := newImage(s.bytes), make([]byte, pageBytes)
	for off := int64(0); off < s.bytes; off += pageBytes {
		_, err := file.ReadAt(b, off)
		require.NoError(t, err)
		if [pageBytes]byte(b) != (page{}) {
			im.write(b, off)
		}
	}
	return im
}

// requireMounts skips the test where nothing can be mounted.
func requireMounts(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may mount: TestDurable_CrashAnywhere of package engine has power cuts on a file system of its own")
	}
	for _, name := range []string{"/dev/fuse", "/dev/loop-control"} {
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Skipf("%s cannot be opened: %v", name, err)
		}
		require.NoError(t, unix.Close(fd))
	}
}

// loop puts a loop device over a file, and returns a descriptor of it and its name. It goes when nobody has it open or mounted
// any more, also if the process is killed.
func loop(file int) (fd int, name string, err error) {
	control, err := unix.Open("/dev/loop-control", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, "", err
	}
	defer unix.Close(control)
	for range 1000 {
		n, err := unix.IoctlRetInt(control, unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return -1, "", fmt.Errorf("a free loop device: %w", err)
		}
		name = fmt.Sprintf("/dev/loop%d", n)
		if fd, err = unix.Open(name, unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			return -1, "", fmt.Errorf("%s: %w", name, err)
		}
		err = unix.IoctlLoopConfigure(fd, &unix.LoopConfig{Fd: uint32(file), Size: sectorBytes,
			Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}})
		if err == nil {
			return fd, name, nil
		}
		_ = unix.Close(fd)
		if !errors.Is(err, unix.EBUSY) { // somebody else was faster
			return -1, "", fmt.Errorf("%s: %w", name, err)
		}
	}
	return -1, "", errors.New("somebody else always gets the free loop device")
}

// errMount is why a file system cannot be mounted.
var errMount = errors.New("mounting it failed")

// mountFile mounts the file system that is in a file.
func (s system) mountFile(file int, dir string) error {
	fd, name, err := loop(file)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Mount(name, dir, s.name, unix.MS_NOATIME, s.options); err != nil {
		return fmt.Errorf("%w: %s: %w", errMount, name, err)
	}
	return nil
}

// unmount takes a file system away, whoever still uses it.
func unmount(dir string) error {
	err := unix.Unmount(dir, 0)
	if err != nil {
		err = errors.Join(err, unix.Unmount(dir, unix.MNT_DETACH))
	}
	return err
}

// withImage mounts an image and calls f with the directory.
func (s system) withImage(im *image, dir string, f func(dir string) error) (err error) {
	fd, err := unix.MemfdCreate("image", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "image")
	defer file.Close()
	if err := file.Truncate(im.bytes()); err != nil {
		return err
	}
	if err := im.writeTo(file); err != nil {
		return err
	}
	if err := s.mountFile(fd, dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unmount(dir)) }()
	return f(dir)
}

// stand is a disk with a file system on it that is mounted.
type stand struct {
	*device
	sys    system
	server *fuse.Server
	base   string
	dir    string // where the file system is mounted
	on     bool   // it is
}

// start makes a disk that holds an image, and mounts it below a directory.
func (s system) start(im *image, base string) (*stand, error) {
	d := &stand{device: newDevice(im), sys: s, base: filepath.Join(base, "fuse"), dir: filepath.Join(base, "mount")}
	for _, dir := range []string{d.base, d.dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	forever := time.Hour
	var err error
	d.server, err = fs.Mount(d.base, &folder{disk: d.device}, &fs.Options{
		AttrTimeout: &forever, EntryTimeout: &forever,
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "leat-powercut", MaxWrite: 1 << 20, DisableXAttrs: true},
	})
	if err != nil {
		return nil, fmt.Errorf("mounting FUSE: %w", err)
	}
	if err := d.mount(); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

// mount mounts the file system.
func (d *stand) mount() error {
	fd, err := unix.Open(filepath.Join(d.base, diskName), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := d.sys.mountFile(fd, d.dir); err != nil {
		return err
	}
	d.on = true
	return nil
}

// unmount unmounts the file system; the disk stays.
func (d *stand) unmount() error {
	d.on = false
	return unmount(d.dir)
}

// stop takes all away.
func (d *stand) stop() (err error) {
	if d.on {
		err = d.unmount()
	}
	if failed := d.server.Unmount(); failed != nil {
		err = errors.Join(err, failed, unix.Unmount(d.base, unix.MNT_DETACH))
		d.server.Wait()
	}
	return err
}

// stand makes a disk for a test. The test is skipped if nothing can be mounted.
func (s system) stand(t testing.TB, im *image) *stand {
	t.Helper()
	d, err := s.start(im, t.TempDir())
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENODEV) {
		t.Skipf("%s cannot be mounted here: %v", s.name, err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.stop()) })
	return d
}
