package check_test

import "github.com/leatlog/leat/internal/check"

// logExamples are of what is sent and of what the log holds.
var logExamples = []example{
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
}
