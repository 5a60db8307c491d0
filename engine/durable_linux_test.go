package engine_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/disk"
)

// TestDurable_SmallFileSystem fills a file system of 1 MiB again and again, and makes space again: each publish has a definite answer
// or an indefinite one, readers go on, and after Resume or a new Open all is there that was acknowledged.
func TestDurable_SmallFileSystem(t *testing.T) {
	mount := t.TempDir()
	if err := unix.Mount("leat", mount, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a file system cannot be mounted here (%v): TestLog_FullDiskOfTheSystem of package disk limits the size of files instead", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(mount, unix.MNT_DETACH)) })
	var e *engine.Engine
	again := func() {
		var err error
		e, err = engine.Open(engine.Config{Dir: filepath.Join(mount, "data")})
		require.NoError(t, err)
	}
	again()
	defer func() { _ = e.Close() }() // it may say why the topic is read-only
	create(t, e, "t", durable(engine.Always, 1))
	acked := map[engine.Offset]string{}
	sure := engine.Offset(0)
	for round := range rounds(20) {
		top := topicOf(t, e, "t")
		filler, err := os.Create(filepath.Join(mount, "filler"))
		require.NoError(t, err)
		_, err = io.Copy(filler, io.LimitReader(zeroes{}, 1<<20))
		require.ErrorIs(t, err, unix.ENOSPC)
		require.NoError(t, filler.Close())
		for n := 0; err == nil || n == 0; n++ {
			var at engine.Published
			v := fmt.Sprintf("round %d, record %d", round, n)
			if at, err = top.Publish(background, engine.Record{Value: []byte(v), Headers: engine.MakeHeaders(engine.Header{Name: "x",
				Value: make([]byte, 700)})}); err == nil {
				acked[at.Offset], sure = v, at.Offset+1
			}
		}
		require.ErrorIs(t, err, engine.ErrNoSpace)
		require.ErrorIs(t, err, engine.ErrReadOnly)
		p := part(t, top, 0)
		require.Equal(t, sure, p.Next(), "readers see what was acknowledged")
		require.NoError(t, os.Remove(filler.Name()))
		if round%2 == 0 {
			require.NoError(t, top.Resume(background))
		} else {
			require.ErrorIs(t, e.Close(), unix.ENOSPC)
			again()
			top = topicOf(t, e, "t")
			p = part(t, top, 0)
		}
		requireAcked(t, p, acked)
		require.NoError(t, p.TruncateBefore(background, p.Next()-10)) // so that it does not fill up for good
		for off := range acked {
			if off < p.First() {
				delete(acked, off)
			}
		}
	}
}

// zeroes reads as zeroes.
type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// requireAcked checks that what was acknowledged is there, and where it should be.
func requireAcked(t testing.TB, p *engine.Partition, acked map[engine.Offset]string) {
	t.Helper()
	rs := make([]engine.Record, 1)
	for off, v := range acked {
		n, err := p.ReadAt(off, rs)
		require.NoError(t, err, "offset %d", off)
		require.Equal(t, 1, n)
		require.Equal(t, v, string(rs[0].Value))
	}
}

// TestDurable_PowerCutOfALoopDevice has an ext4 of its own on a loop device. A copy of the file below it, made while nobody publishes,
// is what a power cut at that moment would leave: it has what the kernel was made to write, and nothing of what it only remembers.
// So every file, name and byte that has not been synced is missing in it.
func TestDurable_PowerCutOfALoopDevice(t *testing.T) {
	mkfs, err := exec.LookPath("mkfs.ext4")
	if err != nil || os.Geteuid() != 0 {
		t.Skipf("it takes mkfs.ext4 and the right to mount: TestDurable_CrashAnywhere has power cuts on a file system of its own instead")
	}
	tmp := t.TempDir()
	image, mount := filepath.Join(tmp, "image"), filepath.Join(tmp, "mount")
	require.NoError(t, os.Mkdir(mount, 0o755))
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, 16<<20))
	run := func(name string, args ...string) error {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
		}
		return nil
	}
	// What it leaves for later, to be done in the background, would change the image while it is copied.
	require.NoError(t, run(mkfs, "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image))
	// Nothing but a sync makes the file system write its journal.
	if err := run("mount", "-o", "loop,commit=300", image, mount); err != nil {
		t.Skipf("no loop device: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, run("umount", "-l", mount)) })
	c := engine.Config{Dir: filepath.Join(mount, "data")}
	e := open(t, c)
	acked := map[engine.Offset]string{}
	small := durable(engine.Always, 1)
	small.Durable.FileBytes = disk.MinSegmentBytes
	top := create(t, e, "t", small)
	never := create(t, e, "never", durable(engine.Never, 1))
	flushed, files := engine.Offset(0), 0
	for round := range rounds(6) {
		for n := range 50 {
			v := fmt.Sprintf("round %d, record %d", round, n)
			at, err := top.Publish(background, engine.Record{Value: []byte(v), Key: make([]byte, 100*(round%3))})
			require.NoError(t, err)
			acked[at.Offset] = v
			_, err = never.Publish(background, engine.Record{Value: []byte(v)})
			require.NoError(t, err)
		}
		if round%3 == 0 {
			require.NoError(t, never.Flush(background))
			flushed = part(t, never, 0).Next()
		}
		files = max(files, part(t, top, 0).DurableStats().Files)
		afterPowerCut(t, run, image, func(dir string) {
			cut := open(t, engine.Config{Dir: dir})
			p := part(t, topicOf(t, cut, "t"), 0)
			requireAcked(t, p, acked)
			require.Equal(t, engine.Offset(len(acked)), p.Next(), "nothing more")
			assert.GreaterOrEqual(t, part(t, topicOf(t, cut, "never"), 0).Next(), flushed)
			send := engine.Record{Value: []byte("after")}
			_, err := p.Publish(background, send)
			require.NoError(t, err)
			require.NoError(t, cut.Close())
		})
	}
	assert.Greater(t, files, 1, "it was about new files, too")
}

// still returns what is in a file at one moment: the system writes back whenever it likes, also while the file is read, and what was there
// at several moments is nothing that a power cut leaves. What is the same in two readings one behind the other was there between them.
func still(t *testing.T, name string) []byte {
	t.Helper()
	var last []byte
	for range 100 {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		if bytes.Equal(b, last) {
			return b
		}
		last = b
	}
	require.Fail(t, "the image changes whenever it is read")
	return nil
}

// afterPowerCut mounts a copy of an image and calls f with the directory of the engine in it.
func afterPowerCut(t *testing.T, run func(string, ...string) error, image string, f func(dir string)) {
	t.Helper()
	b := still(t, image)
	dir := t.TempDir()
	copied, mount := filepath.Join(dir, "copy"), filepath.Join(dir, "mount")
	require.NoError(t, os.WriteFile(copied, b, 0o600))
	require.NoError(t, os.Mkdir(mount, 0o755))
	require.NoError(t, run("mount", "-o", "loop", copied, mount))
	defer func() { require.NoError(t, run("umount", "-l", mount)) }()
	f(filepath.Join(mount, "data"))
}
