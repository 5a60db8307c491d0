package check_test

import "github.com/leatlog/leat/internal/check"

// handlerExamples are of when a handler may run, and how often.
var handlerExamples = []example{
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
}
