package check

// Send begins the publish of a payload to a partition that is not known yet.
func (l *Log) Send(value []byte) Sending { return l.SendTo(AnyPartition, value) }

// SendTo begins the publish of a payload to a partition.
func (l *Log) SendTo(p Partition, value []byte) Sending {
	r := record(0, value)
	return Sending{l.begin(Op{Kind: OpSend, Part: p, Val: r.Val, Key: r.Key, Sum: r.Sum})}
}

// Sending is a publish that has begun.
type Sending struct{ o Open }

// Ok says that the record is at an offset.
func (s Sending) Ok(p Partition, off int64) {
	s.o.s.end.part, s.o.s.end.off = p, off
	s.o.Ok()
}

// Fail says that the record will never appear.
func (s Sending) Fail() { s.o.Fail() }

// Unknown says that the record may appear or not.
func (s Sending) Unknown() { s.o.Unknown() }

// SendBatch begins the publish of several payloads to a partition, which may be AnyPartition. Those that come to lie in one
// partition must be consecutive there and appear together.
func (l *Log) SendBatch(p Partition, values ...[]byte) Batch {
	b := Batch{sends: make([]Sending, len(values))}
	number := l.rec.batches.Add(1)
	for i, value := range values {
		s, _ := l.take(0)
		r := record(0, value)
		s.op = Op{Kind: OpSend, Log: l.id, Part: p, Val: r.Val, Key: r.Key, Sum: r.Sum, Batch: number, turn: s.op.turn}
		b.sends[i] = Sending{Open{l.rec, s}}
	}
	call := l.rec.clock()
	for _, s := range b.sends {
		s.o.s.op.Call = call
	}
	return b
}

// Batch is a publish of several records that has begun. It is ended as a whole, or by ending At for each.
type Batch struct{ sends []Sending }

// At returns one of the batch's publishes.
func (b Batch) At(i int) Sending { return b.sends[i] }

// Ok says that the records are at consecutive offsets of one partition.
func (b Batch) Ok(p Partition, first int64) {
	for i, s := range b.sends {
		s.Ok(p, first+int64(i))
	}
}

// Fail says that none of the records will ever appear.
func (b Batch) Fail() {
	for _, s := range b.sends {
		s.Fail()
	}
}

// Unknown says that the records may appear or not.
func (b Batch) Unknown() {
	for _, s := range b.sends {
		s.Unknown()
	}
}

// Poll begins a read by a consumer that pulls, at its position. If the position is not known, at is -1.
func (l *Log) Poll(o Owner, at int64) *Polling {
	return &Polling{o: l.begin(Op{Kind: OpPoll, Consumer: o.Consumer, Member: o.Member, Part: o.Partition, Gen: o.Gen, Off: at, To: -1}), low: -1}
}

// FinalPoll begins one of the reads at the end of the run, when all is quiet, that together read a partition from its oldest
// record to its end. The first must be at the oldest record's offset.
func (l *Log) FinalPoll(p Partition, at int64) *Polling {
	return &Polling{o: l.begin(Op{Kind: OpPoll, Final: true, Part: p, Off: at, To: -1}), low: -1}
}

// Polling is a read that has begun. One goroutine uses it.
type Polling struct {
	o    Open
	ret  int64
	low  int64
	recs []Rec
}

// returned notes the time at which the engine has answered: that of the first call after it.
func (p *Polling) returned() {
	if p.ret == 0 {
		p.ret = p.o.rec.clock()
	}
}

// Record adds a record of the answer.
func (p *Polling) Record(off int64, value []byte) {
	p.returned()
	p.recs = append(p.recs, record(off, value))
}

// Gap notes that the records from the position up to low were reported as dropped. Records that follow begin at low.
func (p *Polling) Gap(low int64) {
	p.returned()
	p.low = low
}

// Ok ends the read. If nothing was added the answer was that there is nothing at the position.
func (p *Polling) Ok() { p.finish(Ok) }

// Fail ends the read with an error. What was added has been seen nevertheless.
func (p *Polling) Fail() { p.finish(Fail) }

func (p *Polling) finish(res Res) {
	p.returned()
	p.o.s.end.recs, p.o.s.end.to = p.recs, p.low
	p.o.end(res, p.ret)
}

// Handle begins the call of a handler with one record. It is for the first line of the handler. The value must not change
// until the Handling has ended; that it does not is checked.
func (l *Log) Handle(o Owner, off int64, attempt int, value []byte) Handling {
	call := l.rec.clock()
	s, recs := l.take(1)
	recs[0] = record(off, value)
	return Handling{o: l.handle(s, o, call, attempt, recs), value: value}
}

// HandleBatch begins the call of a handler with a run of consecutive records, of which the first has the given offset.
func (l *Log) HandleBatch(o Owner, first int64, attempt int, values ...[]byte) Handling {
	call := l.rec.clock()
	s, recs := l.take(len(values))
	for i, value := range values {
		recs[i] = record(first+int64(i), value)
	}
	return Handling{o: l.handle(s, o, call, attempt, recs), values: values}
}

// Now returns the time, for Pulled.
func (l *Log) Now() int64 { return l.rec.clock() }

// Pulled begins what a member of a group that polls does with a run of consecutive records, which a poll returned just before
// the time at. Unlike a handler it may go on when the partition has been taken away, and several may go on at a time; which of
// it counts is for commits and acknowledgements to say. With AtLeastOnce it counts as soon as the member polls again, commits or
// closes, so for the checker at once.
func (l *Log) Pulled(at int64, o Owner, first int64, attempt int, values ...[]byte) Handling {
	h := l.HandleBatch(o, first, attempt, values...)
	h.o.s.op.Call, h.o.s.op.Pulled = at, true
	return h
}

func (l *Log) handle(s *slot, o Owner, call int64, attempt int, recs []Rec) Open {
	s.op = Op{Kind: OpHandle, Log: l.id, Consumer: o.Consumer, Member: o.Member, Part: o.Partition, Gen: o.Gen,
		Attempt: int32(attempt), Recs: recs, Call: call, turn: s.op.turn}
	return Open{l.rec, s}
}

// Handling is the call of a handler. It is ended by one of Ok, Fail and Done as the last thing before the handler returns, and
// by FailIfOpen in a deferred call if the handler may panic.
type Handling struct {
	o      Open
	value  []byte
	values [][]byte
}

// Ok says that the handler succeeded.
func (h Handling) Ok() { h.finish(Ok) }

// Fail says that the handler fails.
func (h Handling) Fail() { h.finish(Fail) }

// Done is Ok if err is nil, or else Fail. It returns err.
func (h Handling) Done(err error) error {
	if err != nil {
		h.Fail()
	} else {
		h.Ok()
	}
	return err
}

// FailIfOpen is Fail if the call has not been ended: because of a panic.
func (h Handling) FailIfOpen() {
	if !h.o.s.done.Load() {
		h.Fail()
	}
}

func (h Handling) finish(res Res) {
	op, end := &h.o.s.op, &h.o.s.end
	if h.value != nil {
		end.mutated = mutated(op.Recs[0], h.value)
	}
	for i, value := range h.values {
		end.mutated |= mutated(op.Recs[i], value) << min(i, 63)
	}
	h.o.end(res, 0)
}

// mutated returns 1 if the value is not the record's any more.
func mutated(r Rec, value []byte) uint64 {
	if record(r.Off, value).Sum != r.Sum {
		return 1
	}
	return 0
}

// about is an operation of an owner on an offset.
func (l *Log) about(k Kind, o Owner, off int64, attempt int) Open {
	return l.begin(Op{Kind: k, Consumer: o.Consumer, Member: o.Member, Part: o.Partition, Gen: o.Gen, Off: off, Attempt: int32(attempt)})
}

// Ack begins the acknowledgement of a record that was delivered to the owner; attempt is that of the delivery. Fail means that
// it was refused.
func (l *Log) Ack(o Owner, off int64, attempt int) Open { return l.about(OpAck, o, off, attempt) }

// AckThrough begins the acknowledgement of all records up to and including off.
func (l *Log) AckThrough(o Owner, off int64) Open { return l.about(OpAckThrough, o, off, 0) }

// Nack begins giving a record back.
func (l *Log) Nack(o Owner, off int64, attempt int) Open { return l.about(OpNack, o, off, attempt) }

// Reject begins giving a record up.
func (l *Log) Reject(o Owner, off int64, attempt int) Open { return l.about(OpReject, o, off, attempt) }

// Extend begins asking for more time for a record.
func (l *Log) Extend(o Owner, off int64, attempt int) Open { return l.about(OpExtend, o, off, attempt) }

// Commit begins the commit of next as the next offset to process. If only some of the records below could be committed it is Unknown.
func (l *Log) Commit(o Owner, next int64) Open { return l.about(OpCommit, o, next, 0) }

// Assign says that the member is told that it owns the partition under a generation, from an offset on. It is for the first
// line of the callback; of a subscription or a reader it may say where it starts.
func (l *Log) Assign(o Owner, start int64) {
	l.point(Op{Kind: OpAssign, Consumer: o.Consumer, Member: o.Member, Part: o.Partition, Gen: o.Gen, Off: start})
}

// Revoke begins the callback that asks the member to give the partition back: no handler of it runs any more.
func (l *Log) Revoke(o Owner) Open { return l.about(OpRevoke, o, 0, 0) }

// Lost says that the member is told that it has lost the partition, some time after that happened.
func (l *Log) Lost(o Owner) {
	l.point(Op{Kind: OpLost, Consumer: o.Consumer, Member: o.Member, Part: o.Partition, Gen: o.Gen})
}

// Fence begins taking the partition from the member.
func (l *Log) Fence(o Owner) Open { return l.about(OpFence, o, 0, 0) }

// Leave begins the member's leaving, and with Member 0 the end of a subscription. Ok means that no handler of it runs or will
// run any more.
func (l *Log) Leave(c Consumer, m Member) Open {
	return l.begin(Op{Kind: OpLeave, Consumer: c, Member: m, Part: AnyPartition})
}

// Seek begins setting a consumer's position, or resetting that of a group. If it is not known where that is, to is -1.
func (l *Log) Seek(c Consumer, p Partition, to int64) Open {
	return l.begin(Op{Kind: OpSeek, Consumer: c, Part: p, Off: to})
}

// Gap says that the consumer is told that the records from from up to but not including to were dropped.
func (l *Log) Gap(c Consumer, p Partition, from, to int64) {
	l.point(Op{Kind: OpGap, Consumer: c, Part: p, Off: from, To: to})
}

// Truncated says that the consumer is told that its position from is beyond the log, which ends at to since a crash.
func (l *Log) Truncated(c Consumer, p Partition, from, to int64) {
	l.point(Op{Kind: OpTruncated, Consumer: c, Part: p, Off: from, To: to})
}

// Dropped says that a record of the consumer was given up.
func (l *Log) Dropped(c Consumer, p Partition, off int64) {
	l.point(Op{Kind: OpDropped, Consumer: c, Part: p, Off: off})
}

// Idle begins asking whether the consumer has nothing left to do in the partition. Ok means yes.
func (l *Log) Idle(c Consumer, p Partition) Open {
	return l.begin(Op{Kind: OpIdle, Consumer: c, Part: p})
}

// Close begins closing the engine.
func (l *Log) Close() Open { return l.begin(Op{Kind: OpClose, Part: AnyPartition}) }

// Crash says that the process, or the machine, has ended.
func (l *Log) Crash() { l.point(Op{Kind: OpCrash, Part: AnyPartition}) }

// Reopen says that the partition was opened again under a new epoch, and that its log ended at end.
func (l *Log) Reopen(p Partition, epoch uint64, end int64) {
	l.point(Op{Kind: OpReopen, Part: p, Epoch: epoch, Off: end})
}

// Reading is a look-up of a number that has begun.
type Reading struct{ o Open }

// Is ends the look-up.
func (r Reading) Is(n int64) {
	r.o.s.end.off = n
	r.o.Ok()
}

// Low begins looking up the offset of the oldest record that the partition retains.
func (l *Log) Low(p Partition) Reading { return Reading{l.begin(Op{Kind: OpLow, Part: p})} }

// Committed begins looking up the consumer's next offset to process.
func (l *Log) Committed(c Consumer, p Partition) Reading {
	return Reading{l.begin(Op{Kind: OpCommitted, Consumer: c, Part: p})}
}

// Counter begins looking up one of the engine's counters, when all is quiet. What it does not depend on is AnyConsumer or
// AnyPartition.
func (l *Log) Counter(n Counter, c Consumer, p Partition) Reading {
	return Reading{l.begin(Op{Kind: OpCounter, Consumer: c, Part: p, Val: uint64(n)})}
}
