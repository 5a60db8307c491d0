package check_test

import "github.com/leatlog/leat/internal/check"

// readExamples are of what a poll or a subscription is told, and of what retention takes from it.
var readExamples = []example{
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
}
