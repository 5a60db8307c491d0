package disk

import (
	"strings"

	"github.com/leatlog/leat/segment/vfs"
)

// flaw is an error that tests put into the log, to see that they would find it.
type flaw uint32

const (
	flawNoDirSync        flaw = 1 << iota // names are never made safe
	flawRenameFirst                       // a file gets its name before its head is safe
	flawNoHeadSync                        // a file's head is never made safe
	flawDurableFirst                      // records count as durable before the sync
	flawDurableAll                        // what was written during a sync counts as durable after it
	flawIgnoreSyncError                   // a sync that failed counts as done
	flawIgnoreWriteError                  // writing goes on after a write that failed
	flawUnlinkFirst                       // files are removed before the state says so
	flawNoSealSync                        // a file is sealed and not synced
	flawSealEarly                         // a seal is written before the records are safe
	flawCutDamage                         // damage is taken for a torn tail
	flawNoRewrite                         // what was seen after a failed sync is believed
	flawNoRecoverySync                    // what recovery keeps is not made safe
	flawSameEpoch                         // an open does not raise the epoch
	flawStateInPlace                      // the state is overwritten
	flawTrimUnsynced                      // the log may begin beyond what is safe
	flawNoChecksum                        // a frame's bytes are not checked at open
	flawForgetEnd                         // a log without records begins at First again
	flawTrimKeepsLow                      // the state says less than what was removed
	flawSkipFrame                         // recovery passes over a bad frame
	flawSkipRoll                          // a sync passes over the roll that is not finished
	flawNameFirst                         // the next file gets its name before the one that is full is sealed
	flawNextGap                           // the next file is taken over though the one before is torn
	flawNextUnsafe                        // what is taken over from it is not made safe
	flawNextLost                          // it is never taken over
	flaws                = iota
)

// has reports whether the log is wrong in that way.
func (f flaw) has(x flaw) bool { return f&x != 0 }

// brokenFS makes vfs.Replace wrong, for tests of the tests.
type brokenFS struct {
	vfs.FS
	broken flaw
}

// Create makes a file under its final name, if that is what is wrong.
func (f brokenFS) Create(name string) (vfs.File, error) {
	if f.broken.has(flawStateInPlace) {
		name = strings.TrimSuffix(name, vfs.TempExt)
	}
	return f.FS.Create(name)
}

// Rename does nothing if there is nothing to rename.
func (f brokenFS) Rename(from, to string) error {
	if f.broken.has(flawStateInPlace) {
		return nil
	}
	return f.FS.Rename(from, to)
}

// SyncDir does nothing, if that is what is wrong.
func (f brokenFS) SyncDir(dir string) error {
	if f.broken.has(flawNoDirSync) {
		return nil
	}
	return f.FS.SyncDir(dir)
}
