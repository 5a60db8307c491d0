package check

import (
	"sync"
	"sync/atomic"
)

// Log is where a goroutine, or several, write down what they do. See Recorder.Log and Recorder.SharedLog.
//
// # Memory
//
// Operations lie in blocks that never move, so whoever ends one writes to where it is, from any goroutine, without a lock. What
// is known when it begins is written by the one who begins it and never again; what is known when it ends is apart from that
// and is published by the slot's done. So History can look at an operation that has not ended: it reads only the first half.
type Log struct {
	rec    *Recorder
	id     int32
	name   string
	shards []shard

	// turn spreads the goroutines over the shards, and says in which order they came. Each begin adds to it, nobody else
	// reads it, it publishes nothing.
	turn atomic.Uint32
}

// shard is a part of a log. Its lock is taken if there are several.
type shard struct {
	mu     sync.Mutex
	blocks [][]slot
	used   int   // slots of the last block
	recs   []Rec // memory for records, of which the rest is free
}

// slot is an operation.
type slot struct {
	op  Op     // as it began
	end ending // how it ended, once done

	// done is set by the one who ends the operation and loaded by History, and by whoever would end it twice. It publishes
	// end.
	done atomic.Bool
}

// ending is what is known when an operation ends.
type ending struct {
	res     Res
	ret     int64
	part    Partition
	off, to int64
	recs    []Rec  // of OpPoll
	mutated uint64 // of OpHandle: which records, by bits; the last one stands for all above it
}

// Blocks begin small, since a run may have many logs, and end big.
const (
	firstBlock = 32
	lastBlock  = 2048
)

// take returns a new slot, and memory for n records.
func (s *shard) take(n int) (*slot, []Rec) {
	if len(s.blocks) == 0 || s.used == len(s.blocks[len(s.blocks)-1]) {
		size := firstBlock
		if len(s.blocks) > 0 {
			size = min(2*s.used, lastBlock)
		}
		s.blocks = append(s.blocks, make([]slot, size))
		s.used = 0
	}
	at := &s.blocks[len(s.blocks)-1][s.used]
	s.used++
	if n == 0 {
		return at, nil
	}
	if n > len(s.recs) {
		s.recs = make([]Rec, max(n, len(s.blocks[len(s.blocks)-1])))
	}
	recs := s.recs[:n:n]
	s.recs = s.recs[n:]
	return at, recs
}

// take returns a new slot of any of the shards.
func (l *Log) take(n int) (*slot, []Rec) {
	if len(l.shards) == 1 {
		return l.shards[0].take(n)
	}
	turn := l.turn.Add(1)
	at := turn
	s := &l.shards[at%uint32(len(l.shards))]
	for try := 0; !s.mu.TryLock(); try++ {
		if try == len(l.shards) {
			s.mu.Lock()
			break
		}
		at++
		s = &l.shards[at%uint32(len(l.shards))]
	}
	defer s.mu.Unlock()
	slot, recs := s.take(n)
	slot.op.turn = turn
	return slot, recs
}

// begin writes an operation down whose call is now.
func (l *Log) begin(op Op) Open {
	s, _ := l.take(0)
	op.Log, op.turn = l.id, s.op.turn
	s.op = op
	s.op.Call = l.rec.clock()
	return Open{l.rec, s}
}

// point writes down something that was the case before now, or happens now, and is over.
func (l *Log) point(op Op) { l.begin(op).end(Ok, 0) }

func (l *Log) len() (n int) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for _, b := range s.blocks {
			n += len(b)
		}
		s.mu.Unlock()
	}
	return n
}

// appendTo appends the log's operations to ops.
func (l *Log) appendTo(ops []Op) []Op {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for j, b := range s.blocks {
			if j == len(s.blocks)-1 {
				b = b[:s.used]
			}
			for k := range b {
				ops = append(ops, b[k].get())
			}
		}
		s.mu.Unlock()
	}
	return ops
}

// get returns the operation with how it ended.
func (s *slot) get() Op {
	op := s.op
	if !s.done.Load() {
		op.Res, op.Ret = Unknown, Never
		return op
	}
	op.Res, op.Ret = s.end.res, s.end.ret
	switch op.Kind {
	case OpSend:
		if s.end.res == Ok {
			op.Part, op.Off = s.end.part, s.end.off
		}
	case OpPoll:
		op.Recs, op.To = s.end.recs, s.end.to
	case OpLow, OpCommitted, OpCounter:
		op.Off = s.end.off
	case OpHandle:
		if s.end.mutated != 0 {
			recs := append([]Rec(nil), op.Recs...)
			for i := range recs {
				if s.end.mutated>>min(i, 63)&1 != 0 {
					recs[i].Bad |= Mutated
				}
			}
			op.Recs = recs
		}
	}
	return op
}

// Open is an operation that has begun. It is ended by one call of one of its methods.
type Open struct {
	rec *Recorder
	s   *slot
}

// end ends the operation at a time, or now if that is 0.
func (o Open) end(res Res, ret int64) {
	if ret == 0 {
		ret = o.rec.clock()
	}
	o.s.end.res, o.s.end.ret = res, ret
	o.close()
}

// close publishes the end.
func (o Open) close() {
	if o.s.done.Swap(true) {
		panic("check: " + o.s.op.Kind.String() + " ended twice")
	}
}

// Ok says that the operation took effect.
func (o Open) Ok() { o.end(Ok, 0) }

// Fail says that the operation did not take effect and never will.
func (o Open) Fail() { o.end(Fail, 0) }

// Unknown says that the operation has taken effect, or may still do so, or not.
func (o Open) Unknown() { o.end(Unknown, 0) }

// Done is Ok if err is nil, or else Fail. It returns err.
func (o Open) Done(err error) error {
	if err != nil {
		o.Fail()
	} else {
		o.Ok()
	}
	return err
}
