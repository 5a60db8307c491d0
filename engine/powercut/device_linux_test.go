package powercut_test

import (
	"context"
	"slices"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// device is a disk in memory that notes what it is told to do. It is the one file of a FUSE file system.
type device struct {
	fs.Inode
	before *image // immutable: what there was at the beginning

	mu      sync.Mutex
	now     *image  // under mu
	log     []event // under mu: what has been done since the beginning; what is in it is not changed
	failing bool    // under mu: flushes fail
	refused int     // under mu: so many have
}

const diskName = "disk"

func newDevice(im *image) *device { return &device{before: im, now: im.clone()} }

// position returns how much has been done. What the disk said was safe before the call is safe in each power cut from that
// position on.
func (d *device) position() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.log)
}

// events returns what has been done.
func (d *device) events() []event {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clip(d.log)
}

// fail lets flushes fail from now on, or no longer.
func (d *device) fail(yes bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failing = yes
}

// failures returns how many flushes have failed.
func (d *device) failures() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused
}

func (d *device) write(b []byte, off int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now.write(b, off)
	d.log = append(d.log, event{off: off, data: b})
}

var (
	_ fs.NodeOpener    = (*device)(nil)
	_ fs.NodeReader    = (*device)(nil)
	_ fs.NodeWriter    = (*device)(nil)
	_ fs.NodeFsyncer   = (*device)(nil)
	_ fs.NodeFlusher   = (*device)(nil)
	_ fs.NodeGetattrer = (*device)(nil)
	_ fs.NodeSetattrer = (*device)(nil)
	_ fs.NodeAllocater = (*device)(nil)
)

func (d *device) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, 0
}

func (d *device) Read(_ context.Context, _ fs.FileHandle, b []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fuse.ReadResultData(b[:d.now.read(b, off)]), 0
}

func (d *device) Write(_ context.Context, _ fs.FileHandle, b []byte, off int64) (uint32, syscall.Errno) {
	if off+int64(len(b)) > d.before.bytes() {
		return 0, syscall.ENOSPC
	}
	d.write(slices.Clone(b), off)
	return uint32(len(b)), 0
}

// Fsync is the flush of the disk.
func (d *device) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failing {
		d.refused++
		return syscall.EIO
	}
	d.log = append(d.log, event{flush: true})
	return 0
}

// Flush is a close, and says nothing to the disk.
func (d *device) Flush(context.Context, fs.FileHandle) syscall.Errno { return 0 }

func (d *device) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = syscall.S_IFREG|0o600, uint64(d.before.bytes())
	return 0
}

// Setattr changes nothing but times, which there are not.
func (d *device) Setattr(ctx context.Context, h fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if _, ok := in.GetSize(); ok {
		return syscall.EPERM
	}
	return d.Getattr(ctx, h, out)
}

// Allocate is what the loop device uses to write zeroes, and to discard.
func (d *device) Allocate(_ context.Context, _ fs.FileHandle, off, size uint64, mode uint32) syscall.Errno {
	const keepSize, punchHole, zeroRange = 1, 2, 16
	if mode&^keepSize != punchHole && mode&^keepSize != zeroRange {
		return syscall.EOPNOTSUPP
	}
	d.write(make([]byte, size), int64(off))
	return 0
}

// folder is the root of the file system.
type folder struct {
	fs.Inode
	disk *device
}

var _ fs.NodeOnAdder = (*folder)(nil)

func (f *folder) OnAdd(ctx context.Context) {
	f.AddChild(diskName, f.NewPersistentInode(ctx, f.disk, fs.StableAttr{Mode: syscall.S_IFREG}), false)
}
