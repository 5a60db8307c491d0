package load

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/leatlog/leat/segment/vfs"
)

// ErrNoFiles is wrapped by what Run and Check return if a scenario needs a target that keeps messages in files.
var ErrNoFiles = errors.New("keeps nothing in files")

// DurableTarget is a Target that obeys Scenario.Sync.
type DurableTarget interface {
	Target
	// KeepsFiles says so.
	KeepsFiles()
}

// keepsFiles returns why a target cannot keep the messages of a scenario as it wants, or nil.
func keepsFiles(t Target, s *Scenario) error {
	if _, ok := t.(DurableTarget); s.Sync != "" && !ok {
		return fmt.Errorf("%s %w", t.Name(), ErrNoFiles)
	}
	return nil
}

// DurableScenarios returns the named scenarios with files.
func DurableScenarios() []Scenario {
	all := usual([]Scenario{{
		Name: "durable", Producers: 64, Partitions: 1, Readers: 1, Publish: "sync", Sync: "always",
		About: "each publish waits until its message is safe on the disk; those that come together share a sync",
	}})
	all[0].Size = 256
	return all
}

const (
	probeTime  = 300 * time.Millisecond
	probeBytes = 4 << 20 // what is taken for the file, as for a log
)

// probeDisk measures what a write of a message and a sync take where the files are to be.
func probeDisk(s *Scenario, c *Clock) (*Latency, error) {
	if s.Sync == "" || c.exact { // then no time goes by
		return nil, nil
	}
	if s.Dir != "" {
		if err := os.MkdirAll(s.Dir, 0o755); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp(s.Dir, "leatload-probe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	f, err := vfs.OS{}.Create(filepath.Join(dir, "probe"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := errors.Join(f.Allocate(probeBytes), f.Sync()); err != nil {
		return nil, err
	}
	h, buf, at := NewHistogram(), make([]byte, s.Size), int64(0)
	for end := time.Now().Add(probeTime); ; {
		began := time.Now()
		if _, err := f.WriteAt(buf, at); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		now := time.Now()
		h.Record(now.Sub(began).Nanoseconds())
		if at += int64(len(buf)); at > probeBytes-int64(len(buf)) {
			at = 0
		}
		if now.After(end) {
			l := h.Latency()
			return &l, nil
		}
	}
}
