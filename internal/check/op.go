package check

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Kind is what an operation does.
type Kind uint8

// Kinds of operations. What the fields of an Op mean beyond their names is said here.
const (
	_            Kind = iota
	OpSend            // publish of Val: to Part, if that is known, where it was given Off; several with one Batch are a batch
	OpPoll            // read of Recs from Off on by a consumer that pulls; To is the low mark told, or -1
	OpHandle          // delivery of Recs to a handler: called, returned
	OpAck             // settle record Off
	OpAckThrough      // settle all records up to and including Off that the owner was given
	OpNack            // give record Off back, to be delivered again
	OpReject          // give record Off up
	OpExtend          // hold record Off for longer
	OpCommit          // make Off the next offset to process, by the one who owns the partition
	OpCommitted       // look up the next offset to process, which was Off
	OpAssign          // the member was told that it owns Part from Off on, under Gen
	OpRevoke          // the member was asked to give Part back: its callback was called, and returned when it had
	OpLost            // the member was told, some time after it happened, that it had lost Part
	OpFence           // Part was taken from the member: not before Call and not after Ret
	OpLeave           // the member leaves: nothing is delivered to it after Ret
	OpSeek            // set the consumer's position in Part to Off; -1 if it is not known where that is
	OpGap             // the consumer was told that the records from Off up to but not including To were dropped
	OpTruncated       // the consumer was told that its position Off is beyond the log, which ends at To
	OpDropped         // record Off of the consumer was given up: dead-lettered or dropped, by policy
	OpIdle            // the consumer was asked whether it has nothing left to do in Part, and had
	OpLow             // look up the oldest offset retained, which was Off
	OpClose           // close the engine
	OpCrash           // the process or the machine ends
	OpReopen          // open Part again under Epoch; its log then ended at Off
	OpCounter         // look up the engine's counter number Val, which was Off
	numKinds
)

var kindNames = [numKinds]string{
	"none", "send", "poll", "handle", "ack", "ack-through", "nack", "reject", "extend", "commit", "committed", "assign", "revoke",
	"lost", "fence", "leave", "seek", "gap", "truncated", "dropped", "idle", "low", "close", "crash", "reopen", "counter",
}

// String returns the kind's name.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Res is how an operation ended.
type Res uint8

// Results of operations.
const (
	Unknown Res = iota // it may have taken effect or not; also: it never returned
	Ok                 // it took effect
	Fail               // it did not and never will; of OpHandle: the handler failed
)

// String returns unknown, ok or fail.
func (r Res) String() string { return [...]string{"unknown", "ok", "fail"}[r%3] }

// Never is the Ret of an operation that did not return.
const Never = math.MaxInt64

// Partition, Consumer and Member are numbers that a Recorder gives out for names. No Consumer and no Member is 0; a
// partition that is not known is AnyPartition.
type (
	Partition int32
	Consumer  int32
	Member    int32
)

// AnyPartition stands for a partition that is not known, or for all of them.
const AnyPartition Partition = -1

// Owner is who a record was given to, or who says something about it.
type Owner struct {
	Consumer  Consumer
	Member    Member
	Partition Partition

	// Gen is the generation under which the member owns the partition. If it is 0 for a member of an assigned group, that of
	// the member's latest OpAssign is meant.
	Gen uint64
}

// Rec is a record that was read.
type Rec struct {
	Off int64
	Val uint64 // what record it says it is; see Payload
	Key uint64 // its key
	Sum uint32 // checksum of its bytes
	Bad Damage
}

// Damage is what was wrong with the bytes of a record.
type Damage uint8

// Kinds of damage.
const (
	Torn    Damage = 1 << iota // its own length or checksum was wrong when it was given out
	Mutated                    // its bytes changed while a handler looked at them
)

// Op is an operation. Times are nanoseconds.
type Op struct {
	Kind      Kind
	Res       Res
	Final     bool  // of OpPoll: one of those at the end that read everything
	Pulled    bool  // of OpHandle: not a call of a handler, but what somebody does with records that a poll returned
	Log       int32 // who wrote it down
	Attempt   int32 // of OpHandle and what settles: the number of the delivery, from 1, or 0 if unknown
	Part      Partition
	Consumer  Consumer
	Member    Member
	Sum       uint32 // of OpSend: checksum of the bytes
	Batch     uint32 // of OpSend: number of the batch, or 0
	Gen       uint64
	Epoch     uint64 // of OpReopen
	Call, Ret int64
	Off, To   int64
	Val, Key  uint64
	Recs      []Rec // of OpPoll and OpHandle; not to be changed

	turn uint32 // the order in which the operations of a shared log began
}

// before reports whether a was over when b began.
func (a *Op) before(b *Op) bool { return a.Ret < b.Call }

// may reports whether the operation may have taken effect.
func (o *Op) may() bool { return o.Res != Fail }

// owner returns who the operation is of.
func (o *Op) owner() Owner { return Owner{o.Consumer, o.Member, o.Part, o.Gen} }

// first returns the offset of the operation's first record, or where it would be.
func (o *Op) first() int64 {
	if len(o.Recs) > 0 {
		return o.Recs[0].Off
	}
	return o.Off
}

// end returns the offset after the operation's last record, or where it would go on.
func (o *Op) end() int64 {
	if len(o.Recs) > 0 {
		return o.Recs[len(o.Recs)-1].Off + 1
	}
	return max(o.Off, o.To)
}

// text writes an operation with the names of a history.
func (h *History) text(i int) string {
	o := &h.Ops[i]
	var b strings.Builder
	ret := "never"
	if o.Ret != Never {
		ret = time.Duration(o.Ret).String()
	}
	fmt.Fprintf(&b, "#%d [%v, %s] %s: %s %s", i, time.Duration(o.Call), ret, h.logName(o.Log), o.Kind, o.Res)
	if o.Consumer != 0 {
		b.WriteString(" " + h.consumerName(o.Consumer))
	}
	if o.Member != 0 {
		b.WriteString(" " + h.memberName(o.Member))
	}
	if o.Part != AnyPartition || o.Kind == OpSend {
		b.WriteString(" " + h.partName(o.Part))
	}
	if o.Gen != 0 {
		fmt.Fprintf(&b, " gen %d", o.Gen)
	}
	switch o.Kind {
	case OpSend:
		fmt.Fprintf(&b, " %s", Val(o.Val))
		if o.Res == Ok {
			fmt.Fprintf(&b, " at %d", o.Off)
		}
		if o.Batch != 0 {
			fmt.Fprintf(&b, " batch %d", o.Batch)
		}
	case OpCounter:
		fmt.Fprintf(&b, " %s = %d", Counter(o.Val), o.Off)
	case OpHandle, OpClose, OpCrash, OpRevoke, OpLost, OpFence, OpLeave, OpIdle:
	case OpGap, OpTruncated:
		fmt.Fprintf(&b, " %d to %d", o.Off, o.To)
	default:
		fmt.Fprintf(&b, " %d", o.Off)
	}
	if o.Kind == OpPoll && o.To >= 0 {
		fmt.Fprintf(&b, " low %d", o.To)
	}
	if o.Pulled {
		b.WriteString(" pulled")
	}
	if o.Attempt > 1 {
		fmt.Fprintf(&b, " attempt %d", o.Attempt)
	}
	for j, r := range o.Recs {
		if j == 8 {
			fmt.Fprintf(&b, " ... %d in all, to %d", len(o.Recs), o.Recs[len(o.Recs)-1].Off)
			break
		}
		fmt.Fprintf(&b, " %d=%s", r.Off, Val(r.Val))
		if r.Bad&Torn != 0 {
			b.WriteString("(torn)")
		}
		if r.Bad&Mutated != 0 {
			b.WriteString("(mutated)")
		}
	}
	return b.String()
}
