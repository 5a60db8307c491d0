package check_test

import "github.com/leatlog/leat/internal/check"

// scene is a small run written by hand, on a clock of its own.
type scene struct {
	rec *check.Recorder
	log *check.Log
	one *check.Producer

	p, q check.Partition

	sub    check.Consumer // broadcast
	pull   check.Consumer // a reader
	group  check.Consumer // assigned
	manual check.Consumer // assigned, acknowledges by itself
	commit check.Consumer // assigned, commits by itself
	keyed  check.Consumer // assigned, parallel by key
	shared check.Consumer // shared, acknowledges by itself

	a, b check.Member

	values map[int64][]byte // of partition p
}

func newScene() *scene {
	rec := check.NewRecorderWithClock(7, check.Ticks())
	assigned := func(name string, mode check.Mode) check.Consumer {
		return rec.Consumer(name, check.ConsumerConfig{Kind: check.Assigned, Mode: mode})
	}
	return &scene{
		rec: rec, log: rec.Log("test"), one: rec.Producer(),
		p: rec.Partition("orders/0"), q: rec.Partition("orders/1"),
		sub:    rec.Consumer("sub", check.ConsumerConfig{Protected: true}),
		pull:   rec.Consumer("pull", check.ConsumerConfig{}),
		group:  assigned("group", check.AtLeastOnce),
		manual: assigned("manual", check.Manual),
		commit: assigned("commit", check.ByCommit),
		keyed:  rec.Consumer("keyed", check.ConsumerConfig{Kind: check.Assigned, ByKey: true}),
		shared: rec.Consumer("shared", check.ConsumerConfig{Kind: check.Shared, Mode: check.Manual}),
		a:      rec.Member("a"), b: rec.Member("b"),
		values: make(map[int64][]byte),
	}
}

// send publishes records that get the given offsets of p.
func (s *scene) send(offs ...int64) {
	for _, off := range offs {
		s.values[off] = s.one.Next(check.MinPayload + int(off)%5)
		s.log.SendTo(s.p, s.values[off]).Ok(s.p, off)
	}
}

// sendKey is send of one record with a key.
func (s *scene) sendKey(off int64, key uint64) {
	s.values[off] = s.one.NextKey(key, 40)
	s.log.SendTo(s.p, s.values[off]).Ok(s.p, off)
}

// owner returns the member as owner of p.
func (s *scene) owner(c check.Consumer, m check.Member, gen uint64) check.Owner {
	return check.Owner{Consumer: c, Member: m, Partition: s.p, Gen: gen}
}

// subscriber returns a consumer without members, in p.
func (s *scene) subscriber(c check.Consumer) check.Owner {
	return check.Owner{Consumer: c, Partition: s.p}
}

// handle delivers records, which are handled well.
func (s *scene) handle(o check.Owner, offs ...int64) {
	for _, off := range offs {
		s.begin(o, off).Ok()
	}
}

func (s *scene) begin(o check.Owner, off int64) check.Handling {
	return s.log.Handle(o, off, 1, s.values[off])
}

// again is begin of a later delivery.
func (s *scene) again(o check.Owner, off int64, attempt int) check.Handling {
	return s.log.Handle(o, off, attempt, s.values[off])
}

// poll reads records at a position.
func (s *scene) poll(o check.Owner, at int64, offs ...int64) {
	p := s.log.Poll(o, at)
	for _, off := range offs {
		p.Record(off, s.values[off])
	}
	p.Ok()
}

// final reads what is there at the end.
func (s *scene) final(at int64, offs ...int64) {
	p := s.log.FinalPoll(s.p, at)
	for _, off := range offs {
		p.Record(off, s.values[off])
	}
	p.Ok()
}

func (s *scene) check() *check.Report { return s.rec.History().Check(check.Options{}) }

// either returns good or bad.
func either[T any](isBad bool, good, bad T) T {
	if isBad {
		return bad
	}
	return good
}
