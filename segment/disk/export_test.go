package disk

// Flaw is an error put into the log on purpose.
type Flaw = flaw

// Flaws are all of them by name.
var Flaws = map[string]Flaw{
	"NoDirSync": flawNoDirSync, "RenameFirst": flawRenameFirst, "NoHeadSync": flawNoHeadSync, "DurableFirst": flawDurableFirst,
	"DurableAll": flawDurableAll, "IgnoreSyncError": flawIgnoreSyncError, "IgnoreWriteError": flawIgnoreWriteError,
	"UnlinkFirst": flawUnlinkFirst, "NoSealSync": flawNoSealSync, "SealEarly": flawSealEarly,
	"CutDamage": flawCutDamage, "NoRewrite": flawNoRewrite, "NoRecoverySync": flawNoRecoverySync, "SameEpoch": flawSameEpoch,
	"StateInPlace": flawStateInPlace, "TrimUnsynced": flawTrimUnsynced, "NoChecksum": flawNoChecksum, "ForgetEnd": flawForgetEnd,
	"TrimKeepsLow": flawTrimKeepsLow, "SkipFrame": flawSkipFrame,
	"SkipRoll": flawSkipRoll, "NameFirst": flawNameFirst, "NextGap": flawNextGap, "NextUnsafe": flawNextUnsafe, "NextLost": flawNextLost,
}

// FlawCount is how many there are.
const FlawCount = flaws

// Broken returns c with an error in the log.
func Broken(c Config, f Flaw) Config {
	c.broken = f
	return c
}

// SegmentName and StateName are names of files.
var SegmentName = segmentName

const StateName = stateName

// ParseName is the opposite of SegmentName.
var ParseName = parseName

// SealRoom is what a small file keeps free for its seal.
const SealRoom = leastSealRoom
