package check_test

import "github.com/leatlog/leat/internal/check"

// ownerExamples are of who owns a partition, where it goes on, and what it commits.
var ownerExamples = []example{
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
}
