package check_test

import (
	"strings"
	"testing"

	"github.com/leatlog/leat/internal/check"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// example is a history that is bad in one way, and the nearest that is good.
type example struct {
	anomaly check.Anomaly
	name    string // what is special about it, if there are several of the anomaly
	play    func(s *scene, bad bool)
	opt     check.Options
}

var examples = []example{
	{anomaly: check.InconsistentOffset, play: func(s *scene, bad bool) {
		s.send(0, 1)
		s.poll(s.subscriber(s.pull), 0, 0, 1)
		s.values[0], s.values[1] = s.values[either(bad, int64(0), 1)], s.values[either(bad, int64(1), 0)]
		s.final(0, 0, 1)
	}},
	{anomaly: check.InconsistentOffset, name: "two sends", play: func(s *scene, bad bool) {
		s.send(0)
		s.log.SendTo(s.p, s.one.Next(24)).Ok(s.p, either(bad, int64(1), 0))
	}},
	{anomaly: check.Duplicate, play: func(s *scene, bad bool) {
		s.send(0, 1)
		s.values[1] = s.values[either(bad, int64(1), 0)]
		s.final(0, 0, 1)
	}},
	{anomaly: check.Duplicate, name: "two partitions", play: func(s *scene, bad bool) {
		s.send(0)
		copies := s.rec.CopyPartition("dead letters/0")
		p := s.log.FinalPoll(either(bad, copies, s.q), 0)
		p.Record(0, s.values[0])
		p.Ok()
	}},
	{anomaly: check.Invented, play: func(s *scene, bad bool) {
		value := s.one.Next(30)
		if !bad {
			s.log.Send(value).Unknown()
		}
		s.values[0] = value
		s.final(0, 0)
	}},
	{anomaly: check.Invented, name: "other partition", play: func(s *scene, bad bool) {
		s.values[0] = s.one.Next(30)
		s.log.SendTo(either(bad, s.p, s.q), s.values[0]).Unknown()
		s.final(0, 0)
	}},
	{anomaly: check.AbortedRead, play: func(s *scene, bad bool) {
		s.values[0] = s.one.Next(30)
		if send := s.log.SendTo(s.p, s.values[0]); bad {
			send.Fail()
		} else {
			send.Unknown()
		}
		s.handle(s.subscriber(s.sub), 0)
	}},
	{anomaly: check.FutureRead, play: func(s *scene, bad bool) {
		s.values[0] = s.one.Next(30)
		if bad {
			s.handle(s.subscriber(s.sub), 0)
		}
		send := s.log.SendTo(s.p, s.values[0])
		if !bad {
			s.handle(s.subscriber(s.sub), 0) // seen before its publisher knows
		}
		send.Ok(s.p, 0)
	}},
	{anomaly: check.LostWrite, name: "at the end", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		s.final(0, either(bad, []int64{0, 1, 2}, []int64{0, 1})...)
	}},
	{anomaly: check.LostWrite, name: "at the beginning", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		low := s.log.Low(s.p)
		p := s.log.FinalPoll(s.p, 1)
		p.Record(1, s.values[1])
		p.Record(2, s.values[2])
		p.Ok()
		low.Is(1)
		s.log.Low(s.p).Is(either(bad, int64(1), 0))
	}},
	{anomaly: check.LostWrite, name: "idle", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		s.handle(s.subscriber(s.sub), either(bad, []int64{0, 1, 2}, []int64{0, 1})...)
		s.log.Idle(s.sub, s.p).Ok()
	}},
	{anomaly: check.LostWrite, name: "passed over", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		s.poll(s.subscriber(s.pull), 0, either(bad, []int64{0, 1, 2}, []int64{0, 2})...)
	}},
	{anomaly: check.OffsetGap, play: func(s *scene, bad bool) {
		s.send(0, either(bad, int64(1), 2))
		s.final(0, either(bad, []int64{0, 1}, []int64{0, 2})...)
	}},
	{anomaly: check.SendOrder, play: func(s *scene, bad bool) {
		x, y := s.rec.Producer(), s.rec.Producer()
		first := s.log.Send(x.Next(24))
		if bad {
			first.Ok(s.p, 1)
		}
		s.log.Send(y.Next(24)).Ok(s.p, 0)
		if !bad {
			first.Ok(s.p, 1) // they were concurrent
		}
	}},
	{anomaly: check.NonmonotonicSend, play: func(s *scene, bad bool) {
		x := s.rec.Producer()
		if bad {
			s.values[1], s.values[0] = x.Next(24), x.Next(24)
			s.log.Send(s.values[1]).Unknown()
			s.log.Send(s.values[0]).Ok(s.p, 0)
		} else {
			s.values[0], s.values[1] = x.Next(24), x.Next(24)
			s.log.Send(s.values[0]).Unknown()
			s.log.Send(s.values[1]).Ok(s.p, 1)
		}
		s.final(0, 0, 1)
	}},
	{anomaly: check.TornBatch, play: func(s *scene, bad bool) {
		b := s.log.SendBatch(s.p, s.one.Next(24), s.one.Next(24))
		b.At(0).Ok(s.p, 0)
		other := s.rec.Producer()
		s.log.Send(other.Next(24)).Ok(s.p, either(bad, int64(2), 1))
		b.At(1).Ok(s.p, either(bad, int64(1), 2))
	}},
	{anomaly: check.TornBatch, name: "a part appears", play: func(s *scene, bad bool) {
		s.values[0], s.values[1] = s.one.Next(24), s.one.Next(24)
		s.log.SendBatch(s.p, s.values[0], s.values[1]).Unknown()
		s.final(0, either(bad, []int64{0, 1}, []int64{0})...)
	}},
	{anomaly: check.StaleRead, play: func(s *scene, bad bool) {
		value := s.one.Next(24)
		send := s.log.Send(value)
		if bad {
			send.Ok(s.p, 0)
		}
		s.poll(s.subscriber(s.pull), 0)
		if !bad {
			send.Ok(s.p, 0)
		}
	}},
	{anomaly: check.IntPoll, play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		s.poll(s.subscriber(s.pull), 0, either(bad, []int64{0, 1, 2}, []int64{0, 2})...)
	}},
	{anomaly: check.PollSkip, name: "poll", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		s.poll(s.subscriber(s.pull), 0, 0)
		s.poll(s.subscriber(s.pull), either(bad, int64(1), 2), either(bad, int64(1), 2))
	}},
	{anomaly: check.PollSkip, name: "push", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		s.handle(s.subscriber(s.sub), 0)
		if !bad {
			s.log.Gap(s.sub, s.p, 1, 2)
		}
		s.handle(s.subscriber(s.sub), 2)
	}},
	{anomaly: check.PollSkip, name: "seek that is not obeyed", play: func(s *scene, bad bool) {
		s.send(0, 1, 2, 3)
		s.handle(s.subscriber(s.sub), 0)
		s.log.Seek(s.sub, s.p, 0).Ok()
		s.handle(s.subscriber(s.sub), 1) // was on its way
		s.handle(s.subscriber(s.sub), either(bad, int64(0), 2))
	}},
	{anomaly: check.PollSkip, name: "failed record left behind", play: func(s *scene, bad bool) {
		s.send(0, 1)
		s.begin(s.subscriber(s.sub), 0).Fail()
		if !bad {
			s.log.Dropped(s.sub, s.p, 0)
		}
		s.handle(s.subscriber(s.sub), 1)
	}},
	{anomaly: check.PollSkip, name: "by key", play: func(s *scene, bad bool) {
		s.sendKey(0, either(bad, uint64(1), 2))
		s.sendKey(1, 2)
		o := s.owner(s.keyed, s.a, 1)
		s.log.Assign(o, 0)
		if bad {
			s.handle(o, 1, 0)
		} else {
			s.handle(o, 1)
			s.handle(o, 0)
		}
	}},
	{anomaly: check.PollSkip, name: "first deliveries of a manual owner", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		o := s.owner(s.manual, s.a, 1)
		s.log.Assign(o, 0)
		s.handle(o, either(bad, []int64{0, 1, 2}, []int64{0, 2, 1})...)
	}},
	{anomaly: check.PollSkip, name: "seek before the first delivery of a manual subscription is seen", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		o := s.subscriber(s.rec.Consumer("manual sub", check.ConsumerConfig{Mode: check.Manual}))
		s.log.Seek(o.Consumer, s.p, either(bad, int64(2), 1)).Ok()
		s.handle(o, 0) // was on its way
		s.handle(o, 2)
	}},
	{anomaly: check.PollSkip, name: "its last delivery outlived its owner", play: func(s *scene, bad bool) {
		s.send(0, 1)
		group := s.rec.Consumer("twice", check.ConsumerConfig{Kind: check.Assigned, MaxDeliveries: 2})
		o := s.owner(group, s.a, 1)
		s.log.Assign(o, 0)
		last := s.again(o, 0, either(bad, 2, 1))
		s.log.Lost(o)
		last.Ok()
		o = s.owner(group, s.b, 2)
		s.log.Assign(o, 0)
		s.handle(o, 1)
	}},
	{anomaly: check.PollSkip, name: "its last delivery failed, and those before were cut short", play: func(s *scene, bad bool) {
		s.send(0, 1)
		group := s.rec.Consumer("twice", check.ConsumerConfig{Kind: check.Assigned, MaxDeliveries: 2})
		o := s.owner(group, s.a, 1)
		s.log.Assign(o, 0)
		first := s.begin(o, 0)
		s.log.Lost(o)
		first.Ok()
		o = s.owner(group, s.b, 2)
		s.log.Assign(o, 0)
		s.again(o, 0, either(bad, 2, 1)).Fail()
		s.handle(o, 1)
	}},
	{anomaly: check.PollSkip, name: "its last delivery had returned when its owner was fenced", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		group := s.rec.Consumer("twice", check.ConsumerConfig{Kind: check.Assigned, MaxDeliveries: 2})
		o := s.owner(group, s.a, 1)
		s.log.Assign(o, 0)
		s.again(o, 0, 2).Ok()
		if bad {
			s.handle(o, 1) // so 0 was settled
		}
		s.log.Lost(o)
		o = s.owner(group, s.b, 2)
		s.log.Assign(o, 0)
		s.handle(o, either(bad, int64(1), 2))
	}},
	{anomaly: check.PollSkip, name: "committed behind what was dropped", play: func(s *scene, bad bool) {
		s.send(0, 1, 2, 3)
		group := s.rec.Consumer("held", check.ConsumerConfig{Kind: check.Assigned, Mode: check.ByCommit, Held: true})
		o := s.owner(group, s.a, 1)
		s.log.Assign(o, 0)
		s.log.Pulled(s.log.Now(), o, 0, 0, s.values[0], s.values[1], s.values[2]).Ok()
		if commit := s.log.Commit(o, 3); bad {
			commit.Fail()
		} else {
			commit.Unknown() // of 1 and 2: 0 had been dropped
		}
		s.log.Lost(o)
		o = s.owner(group, s.b, 2)
		s.log.Assign(o, 0)
		s.log.Gap(group, s.p, 0, 1)
		s.log.Pulled(s.log.Now(), o, 3, 0, s.values[3]).Ok()
	}},
	{anomaly: check.PollSkip, name: "committed by a poll behind what was dropped", play: func(s *scene, bad bool) {
		s.send(0, 1, 2, 3)
		group := s.rec.Consumer("held", check.ConsumerConfig{Kind: check.Assigned, Held: true})
		o := s.owner(group, s.a, 1)
		s.log.Assign(o, 0)
		s.log.Pulled(s.log.Now(), o, 0, 0, either(bad, [][]byte{s.values[0], s.values[1], s.values[2]}, [][]byte{s.values[0], s.values[1]})...).Ok()
		s.log.Revoke(o).Ok()
		o = s.owner(group, s.b, 2)
		s.log.Assign(o, 0)
		s.log.Gap(group, s.p, 0, 1)
		s.log.Pulled(s.log.Now(), o, 3, 0, s.values[3]).Ok()
	}},
	{anomaly: check.Retention, name: "low mark falls", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		s.log.Low(s.p).Is(2)
		s.log.Low(s.p).Is(either(bad, int64(2), 1))
	}},
	{anomaly: check.Retention, name: "passes a protected consumer", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		s.handle(s.subscriber(s.sub), 0)
		s.log.Low(s.p).Is(either(bad, int64(1), 2))
		s.handle(s.subscriber(s.sub), 1, 2)
	}},
	{anomaly: check.Retention, name: "record below the low mark told", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		p := s.log.Poll(s.subscriber(s.pull), 0)
		p.Gap(2)
		if off := either(bad, int64(2), 1); true {
			p.Record(off, s.values[off])
		}
		p.Ok()
	}},
	{anomaly: check.Retention, name: "gap from elsewhere", play: func(s *scene, bad bool) {
		s.send(0, 1, 2, 3)
		s.handle(s.subscriber(s.sub), 0)
		s.log.Gap(s.sub, s.p, either(bad, int64(1), 2), 3)
		s.handle(s.subscriber(s.sub), 3)
	}},
	{anomaly: check.TwoOwners, play: func(s *scene, bad bool) {
		s.log.Assign(s.owner(s.group, s.a, 1), 0)
		if !bad {
			s.log.Revoke(s.owner(s.group, s.a, 1)).Ok()
		}
		s.log.Assign(s.owner(s.group, s.b, 2), 0)
		if bad {
			s.log.Revoke(s.owner(s.group, s.a, 1)).Ok()
		}
	}},
	{anomaly: check.TwoOwners, name: "told late that it is lost", play: func(s *scene, bad bool) {
		s.log.Assign(s.owner(s.group, s.a, 1), 0)
		s.log.Assign(s.owner(s.group, s.b, 2), 0)
		if !bad {
			s.log.Lost(s.owner(s.group, s.a, 1))
		}
	}},
	{anomaly: check.TwoOwners, name: "two holders", play: func(s *scene, bad bool) {
		s.send(0)
		s.handle(s.owner(s.shared, s.a, 0), 0)
		if !bad {
			s.log.Nack(s.owner(s.shared, s.a, 0), 0, 1).Ok()
		}
		s.again(s.owner(s.shared, s.b, 0), 0, 2).Ok()
	}},
	{anomaly: check.GenerationRegression, play: func(s *scene, bad bool) {
		s.log.Assign(s.owner(s.group, s.a, 2), 0)
		s.log.Revoke(s.owner(s.group, s.a, 2)).Ok()
		s.log.Assign(s.owner(s.group, s.b, either(bad, uint64(3), 1)), 0)
	}},
	{anomaly: check.ResumeOffset, name: "given back", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		o := s.owner(s.group, s.a, 1)
		s.log.Assign(o, 0)
		s.handle(o, 0)
		s.log.Revoke(o).Ok()
		s.log.Assign(s.owner(s.group, s.b, 2), either(bad, int64(1), 0))
	}},
	{anomaly: check.ResumeOffset, name: "fenced", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		o := s.owner(s.group, s.a, 1)
		s.log.Assign(o, 0)
		s.handle(o, 0)
		h := s.begin(o, 1)
		s.log.Fence(o).Ok()
		s.log.Assign(s.owner(s.group, s.b, 2), either(bad, int64(1), 0))
		h.Ok()
	}},
	{anomaly: check.ResumeOffset, name: "by commit", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		o := s.owner(s.commit, s.a, 1)
		s.log.Assign(o, 0)
		s.poll(o, 0, 0, 1, 2)
		s.log.Commit(o, 2).Ok()
		s.log.Revoke(o).Ok()
		s.log.Assign(s.owner(s.commit, s.b, 2), either(bad, int64(2), 1))
	}},
	{anomaly: check.ResumeOffset, name: "manual", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		o := s.owner(s.manual, s.a, 1)
		s.log.Assign(o, 0)
		s.handle(o, 0, 1, 2)
		s.log.Ack(o, 0, 1).Ok()
		s.log.Ack(o, 2, 1).Ok()
		s.log.Revoke(o).Ok()
		s.log.Assign(s.owner(s.manual, s.b, 2), either(bad, int64(1), 0))
	}},
	{anomaly: check.ResumeOffset, name: "what was held was dropped, and nobody was told yet", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		group := s.rec.Consumer("held", check.ConsumerConfig{Kind: check.Assigned, Held: true})
		o := s.owner(group, s.a, 1)
		s.log.Assign(o, 0)
		s.log.Pulled(s.log.Now(), o, 0, 0, s.values[0]).Ok()
		s.log.Revoke(o).Ok()
		o = s.owner(group, s.b, 2)
		s.log.Assign(o, 0)
		if bad {
			s.log.Pulled(s.log.Now(), o, 0, 0, s.values[0]).Ok()
		}
		s.log.Low(s.p).Is(2)
	}},
	{anomaly: check.ResumeOffset, name: "told of a gap late", play: func(s *scene, bad bool) {
		s.send(0, 1, 2, 3)
		o := s.owner(s.group, s.a, 1)
		s.log.Assign(o, 0)
		s.handle(o, 0)
		if bad {
			s.log.Revoke(o).Ok()
		} else {
			s.log.Lost(o)
		}
		o = s.owner(s.group, s.b, 2)
		s.log.Assign(o, 3)
		s.handle(o, 3)
		s.log.Gap(s.group, s.p, 1, 3) // a was about to tell
	}},
	{anomaly: check.ResumeOffset, name: "by commit, told of a gap late", play: func(s *scene, bad bool) {
		s.send(0, 1, 2, 3)
		x, y := s.owner(s.commit, s.a, 1), s.owner(s.commit, s.b, 2)
		s.log.Assign(x, 0)
		s.poll(x, 0, 0)
		s.log.Commit(x, 1).Ok()
		s.log.Lost(x)
		s.log.Assign(y, 3)
		s.log.Revoke(y).Ok()
		z := s.owner(s.commit, s.b, 3)
		s.log.Assign(z, either(bad, int64(3), 2))
		s.poll(z, either(bad, int64(3), 2), either(bad, int64(3), 2))
		s.log.Gap(s.commit, s.p, 1, 3)
	}},
	{anomaly: check.ResumeOffset, name: "by commit, told after a seek where it began before", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		x, y := s.owner(s.commit, s.a, 1), s.owner(s.commit, s.b, 2)
		s.log.Assign(x, 0)
		s.poll(x, 0, 0, 1)
		s.log.Commit(x, 2).Ok()
		s.log.Revoke(x).Ok()
		s.log.Seek(s.commit, s.p, 1).Ok()
		if bad {
			s.log.Assign(y, 1) // knew it
			s.log.Revoke(y).Ok()
			y = s.owner(s.commit, s.b, 3)
		}
		s.log.Assign(y, 2)
		s.poll(y, 1, 1, 2)
	}},
	{anomaly: check.ZombieCommit, play: func(s *scene, bad bool) {
		s.send(0, 1)
		o := s.owner(s.commit, s.a, 1)
		s.log.Assign(o, 0)
		s.poll(o, 0, 0, 1)
		s.log.Lost(o)
		s.log.Assign(s.owner(s.commit, s.b, 2), 0)
		if commit := s.log.Commit(o, 1); bad {
			commit.Ok()
		} else {
			commit.Fail()
		}
	}},
	{anomaly: check.ZombieCommit, name: "former holder", play: func(s *scene, bad bool) {
		s.send(0)
		x, y := s.owner(s.shared, s.a, 0), s.owner(s.shared, s.b, 0)
		s.handle(x, 0)
		s.log.Nack(x, 0, 1).Ok()
		s.again(y, 0, 2).Ok()
		s.log.Ack(either(bad, y, x), 0, either(bad, 2, 1)).Ok()
	}},
	{anomaly: check.ZombieCommit, name: "attempts begin anew after a seek", play: func(s *scene, bad bool) {
		s.send(0)
		x, y := s.owner(s.shared, s.a, 0), s.owner(s.shared, s.b, 0)
		s.handle(x, 0)
		s.log.Nack(x, 0, 1).Ok()
		if !bad {
			s.log.Seek(s.shared, s.p, 0).Ok()
		}
		s.again(y, 0, 2).Ok() // before the seek, but is seen late
		s.log.Ack(x, 0, 1).Ok()
	}},
	{anomaly: check.ZombieCommit, name: "seen two deliveries after the seek before which it was decided", play: func(s *scene, bad bool) {
		s.send(0)
		x, y := s.owner(s.shared, s.a, 0), s.owner(s.shared, s.b, 0)
		if !bad {
			s.handle(x, 0)
			s.log.Nack(x, 0, 1).Ok()
		}
		s.log.Seek(s.shared, s.p, 0).Ok()
		s.handle(y, 0)
		s.again(x, 0, 2).Ok() // of what x had before the seek, if it had it
		s.log.Ack(x, 0, 2).Fail()
		s.log.Ack(y, 0, 1).Ok()
	}},
	{anomaly: check.ZombieCommit, name: "settled twice", play: func(s *scene, bad bool) {
		s.send(0)
		o := s.owner(s.manual, s.a, 1)
		s.log.Assign(o, 0)
		s.handle(o, 0)
		s.log.Ack(o, 0, 1).Ok()
		if reject := s.log.Reject(o, 0, 1); bad {
			reject.Ok()
		} else {
			reject.Fail()
		}
	}},
	{anomaly: check.CommitRegression, play: func(s *scene, bad bool) {
		s.send(0, 1)
		s.handle(s.subscriber(s.sub), 0, 1)
		s.log.Committed(s.sub, s.p).Is(2)
		if !bad {
			s.log.Seek(s.sub, s.p, 1).Ok()
		}
		s.log.Committed(s.sub, s.p).Is(1)
	}},
	{anomaly: check.CommitAhead, play: func(s *scene, bad bool) {
		s.send(0, 1)
		h := s.begin(s.subscriber(s.sub), 0)
		if !bad {
			h.Ok()
		}
		s.log.Committed(s.sub, s.p).Is(1)
		if bad {
			h.Ok()
		}
	}},
	{anomaly: check.CommitAhead, name: "by commit", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		o := s.owner(s.commit, s.a, 1)
		s.log.Assign(o, 0)
		s.poll(o, 0, 0, 1)
		s.log.Commit(o, either(bad, int64(2), 3)).Ok()
	}},
	{anomaly: check.UnprocessedBelow, play: func(s *scene, bad bool) {
		s.send(0, 1)
		o := s.owner(s.manual, s.a, 1)
		s.log.Assign(o, 0)
		s.handle(o, 0, 1)
		s.log.Ack(o, 1, 1).Ok()
		if !bad {
			s.log.Reject(o, 0, 1).Ok()
		}
		s.log.Committed(s.manual, s.p).Is(2)
	}},
	{anomaly: check.UnprocessedBelow, name: "shared", play: func(s *scene, bad bool) {
		s.send(0, 1)
		s.log.Committed(s.shared, s.p).Is(0)
		x, y := s.owner(s.shared, s.a, 0), s.owner(s.shared, s.b, 0)
		s.handle(x, 0)
		s.handle(y, 1)
		s.log.Ack(y, 1, 1).Ok()
		if !bad {
			s.log.Ack(x, 0, 1).Ok()
		}
		s.log.Committed(s.shared, s.p).Is(2)
	}},
	{anomaly: check.HandlerOverlap, play: func(s *scene, bad bool) {
		s.send(0, 1)
		h := s.begin(s.subscriber(s.sub), 0)
		if !bad {
			h.Ok()
		}
		s.handle(s.subscriber(s.sub), 1)
		if bad {
			h.Ok()
		}
	}},
	{anomaly: check.HandlerOverlap, name: "fenced", play: func(s *scene, bad bool) {
		s.send(0)
		x, y := s.owner(s.group, s.a, 1), s.owner(s.group, s.b, 2)
		s.log.Assign(x, 0)
		h := s.begin(x, 0)
		if !bad {
			s.log.Fence(x).Ok()
		}
		s.log.Assign(y, 0)
		s.again(y, 0, 2).Ok()
		h.Ok()
	}},
	{anomaly: check.HandlerOverlap, name: "was on its way when its owner was fenced", play: func(s *scene, bad bool) {
		s.send(0)
		x, y := s.owner(s.group, s.a, 1), s.owner(s.group, s.b, 2)
		s.log.Assign(x, 0)
		if bad {
			s.log.Revoke(x).Ok()
		} else {
			s.log.Lost(x)
		}
		s.log.Assign(y, 0)
		h := s.again(y, 0, 2)
		s.handle(x, 0)
		h.Ok()
	}},
	{anomaly: check.HandlerOverlap, name: "by key", play: func(s *scene, bad bool) {
		s.sendKey(0, 1)
		s.sendKey(1, either(bad, uint64(2), 1))
		o := s.owner(s.keyed, s.a, 1)
		s.log.Assign(o, 0)
		h := s.begin(o, 0)
		s.handle(o, 1)
		h.Ok()
	}},
	{anomaly: check.OverDelivery, play: func(s *scene, bad bool) {
		s.send(0)
		if h := s.begin(s.subscriber(s.sub), 0); bad {
			h.Ok()
		} else {
			h.Fail()
		}
		s.again(s.subscriber(s.sub), 0, 2).Ok()
	}},
	{anomaly: check.OverDelivery, name: "after an ack", play: func(s *scene, bad bool) {
		s.send(0)
		o := s.owner(s.manual, s.a, 1)
		s.log.Assign(o, 0)
		s.begin(o, 0).Fail()
		if ack := s.log.Ack(o, 0, 1); bad {
			ack.Ok()
		} else {
			ack.Fail()
		}
		s.again(o, 0, 2).Ok()
	}},
	{anomaly: check.OverDelivery, name: "shared", play: func(s *scene, bad bool) {
		s.send(0)
		s.handle(s.owner(s.shared, s.a, 0), 0)
		if ack := s.log.Ack(s.owner(s.shared, s.a, 0), 0, 1); bad {
			ack.Ok()
		} else {
			ack.Fail()
		}
		s.log.Leave(s.shared, s.a).Ok()
		s.again(s.owner(s.shared, s.b, 0), 0, 2).Ok()
	}},
	{anomaly: check.OverDelivery, name: "polled before a seek and seen after what came of it", play: func(s *scene, bad bool) {
		s.send(0)
		x, y := s.owner(s.shared, s.a, 0), s.owner(s.shared, s.b, 0)
		s.handle(x, 0)
		s.log.Nack(x, 0, 1).Ok()
		if !bad {
			s.log.Seek(s.shared, s.p, 0).Ok()
		}
		s.handle(x, 0)
		s.log.Ack(x, 0, 1).Ok()
		s.again(y, 0, 2).Ok()
		s.log.Ack(y, 0, 2).Fail()
	}},
	{anomaly: check.LateHandler, name: "given back", play: func(s *scene, bad bool) {
		s.send(0, 1)
		o := s.owner(s.group, s.a, 1)
		s.log.Assign(o, 0)
		s.handle(o, 0)
		if !bad {
			s.handle(o, 1)
		}
		s.log.Revoke(o).Ok()
		if bad {
			s.handle(o, 1)
		}
	}},
	{anomaly: check.LateHandler, name: "left", play: func(s *scene, bad bool) {
		s.send(0)
		leave := s.log.Leave(s.shared, s.a)
		if bad {
			leave.Ok()
		}
		s.handle(s.owner(s.shared, s.a, 0), 0)
		if !bad {
			leave.Ok()
		}
	}},
	{anomaly: check.LateHandler, name: "closed", play: func(s *scene, bad bool) {
		s.send(0)
		end := s.log.Close()
		if bad {
			end.Ok()
		}
		s.handle(s.subscriber(s.sub), 0)
		if !bad {
			end.Ok()
		}
	}},
	{anomaly: check.LateHandler, name: "fenced", play: func(s *scene, bad bool) {
		s.send(0, 1, 2)
		o := s.owner(s.group, s.a, 1)
		s.log.Assign(o, 0)
		s.handle(o, 0)
		s.log.Fence(o).Ok()
		s.handle(o, 1) // was on its way
		if bad {
			s.handle(o, 2)
		}
	}},
	{anomaly: check.LateHandler, name: "fenced, by key", play: func(s *scene, bad bool) {
		for off := range int64(3) {
			s.sendKey(off, uint64(1+off%2))
		}
		o := s.owner(s.keyed, s.a, 1)
		s.log.Assign(o, 0)
		s.log.Fence(o).Ok()
		s.handle(o, 0, either(bad, int64(1), 2)) // were on their way, each in a handler of its own
	}},
	{anomaly: check.LateHandler, name: "fenced, more than there are handlers", play: func(s *scene, bad bool) {
		for off := range int64(3) {
			s.sendKey(off, uint64(1+off))
		}
		o := s.owner(s.rec.Consumer("two", check.ConsumerConfig{Kind: check.Assigned, ByKey: true, Handlers: 2}), s.a, 1)
		s.log.Assign(o, 0)
		s.log.Fence(o).Ok()
		s.handle(o, either(bad, []int64{0, 1}, []int64{0, 1, 2})...)
	}},
	{anomaly: check.LateHandler, name: "what was polled may go on", play: func(s *scene, bad bool) {
		s.send(0, 1)
		o := s.owner(s.group, s.a, 1)
		s.log.Assign(o, 0)
		at := s.log.Now()
		s.log.Lost(o)
		for _, off := range []int64{0, 1} {
			if bad {
				s.handle(o, off)
			} else {
				s.log.Pulled(at, o, off, 1, s.values[off]).Ok()
			}
		}
	}},
	{anomaly: check.TornValue, play: func(s *scene, bad bool) {
		s.send(0)
		value := append([]byte(nil), s.values[0]...)
		value[len(value)-1] ^= either(bad, byte(0), 1)
		s.values[0] = value
		s.final(0, 0)
	}},
	{anomaly: check.TornValue, name: "other bytes", play: func(s *scene, bad bool) {
		v := s.one.NextVal()
		s.log.Send(check.Payload(v, 1, 40)).Ok(s.p, 0)
		s.values[0] = check.Payload(v, either(bad, uint64(1), 2), 40)
		s.final(0, 0)
	}},
	{anomaly: check.MutatedView, play: func(s *scene, bad bool) {
		s.send(0)
		value := append([]byte(nil), s.values[0]...)
		h := s.log.Handle(s.subscriber(s.sub), 0, 1, value)
		if !bad {
			h.Ok()
		}
		value[9] ^= 0xDD
		if bad {
			h.Ok()
		}
	}},
	{anomaly: check.Crash, name: "durable record lost", opt: check.Options{Durability: check.Durable}, play: func(s *scene, bad bool) {
		s.send(0)
		s.values[1] = s.one.Next(24)
		if send := s.log.SendTo(s.p, s.values[1]); bad {
			send.Ok(s.p, 1)
		} else {
			send.Unknown()
		}
		s.log.Crash()
		s.log.Reopen(s.p, 2, 1)
		s.final(0, 0)
	}},
	{anomaly: check.Crash, name: "durable after a time", opt: check.Options{Durability: check.Interval, Interval: 10}, play: func(s *scene, bad bool) {
		s.send(0)
		for range either(bad, 2, 20) {
			s.log.Low(s.p).Is(0)
		}
		s.log.Crash()
		s.log.Reopen(s.p, 2, 0)
	}},
	{anomaly: check.Crash, name: "offset used again", play: func(s *scene, bad bool) {
		s.send(0, 1)
		s.handle(s.subscriber(s.sub), 0, 1)
		s.log.Crash()
		s.log.Reopen(s.p, 2, either(bad, int64(1), 2))
		s.send(1)
		s.final(0, 0, 1)
	}},
	{anomaly: check.Crash, name: "resurrected", play: func(s *scene, bad bool) {
		s.values[0] = s.one.Next(24)
		if send := s.log.SendTo(s.p, s.values[0]); bad {
			send.Fail()
		} else {
			send.Unknown()
		}
		s.log.Crash()
		s.log.Reopen(s.p, 2, 1)
		s.final(0, 0)
	}},
	{anomaly: check.Crash, name: "commit beyond the log", play: func(s *scene, bad bool) {
		s.send(0, 1)
		o := s.owner(s.group, s.a, 1)
		s.log.Assign(o, 0)
		s.handle(o, 0, 1)
		s.log.Crash()
		s.log.Reopen(s.p, 2, 1)
		if !bad {
			s.log.Truncated(s.group, s.p, 2, 1)
		}
		s.log.Assign(s.owner(s.group, s.b, 2), 2)
	}},
	{anomaly: check.PublishAfterClose, play: func(s *scene, bad bool) {
		end := s.log.Close()
		if bad {
			end.Ok()
		}
		s.send(0)
		if !bad {
			end.Ok()
		}
	}},
	{anomaly: check.StatsDrift, play: func(s *scene, bad bool) {
		s.send(0)
		s.log.Send(s.one.Next(24)).Unknown()
		s.log.Counter(check.Appended, check.AnyConsumer, s.p).Is(either(bad, int64(2), 3))
	}},
	{anomaly: check.StatsDrift, name: "deliveries", play: func(s *scene, bad bool) {
		s.send(0)
		s.begin(s.subscriber(s.sub), 0).Fail()
		s.again(s.subscriber(s.sub), 0, 2).Ok()
		all := check.AnyPartition
		s.log.Counter(check.Delivered, s.sub, all).Is(2)
		s.log.Counter(check.Failed, s.sub, all).Is(1)
		s.log.Counter(check.Redelivered, s.sub, all).Is(either(bad, int64(1), 2))
	}},
}

// TestAnomaly plays each example in both ways.
func TestAnomaly(t *testing.T) {
	for _, x := range examples {
		name := strings.ReplaceAll(x.anomaly.String(), " ", "_")
		if x.name != "" {
			name += "/" + strings.ReplaceAll(x.name, " ", "_")
		}
		t.Run(name, func(t *testing.T) {
			for _, bad := range []bool{false, true} {
				s := newScene()
				x.play(s, bad)
				r := s.rec.History().Check(x.opt)
				if bad {
					require.True(t, r.Has(x.anomaly), "it was not found\n%s", r)
				} else {
					require.True(t, r.Ok(), "it was found where there is none\n%s", r)
				}
			}
		})
	}
}

func TestAnomaly_EachHasAnExample(t *testing.T) {
	have := make(map[check.Anomaly]bool)
	for _, x := range examples {
		have[x.anomaly] = true
	}
	for i, a := range check.Anomalies() {
		assert.True(t, have[a], "%s", a)
		assert.Equal(t, i+1, int(a))
	}
	assert.Len(t, check.Anomalies(), 29)
	assert.Equal(t, "A-6 lost-write", check.LostWrite.String())
	assert.Equal(t, "A-29 stats-drift", check.StatsDrift.String())
}
