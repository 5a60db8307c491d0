// Package group holds what consumer groups decide, as state machines without goroutines, clocks, locks and user code: events
// go in, what is to be done comes out, and the time is an argument. The engine wires them.
//
//   - [Assignor]: which member is to have which partition. Pure functions.
//   - [Assigned]: the coordinator of an assigned group: who is a member, who owns which partition under which generation, and
//     how a partition gets from one owner to the next. [Word] is the part of it that an owner looks at for each delivery.
//   - [Shared]: one partition of a shared group: which record is held by which member under which token, which are to be
//     delivered again and when, and up to where everything is settled.
//   - [Chooser]: which member of a shared group gets the next record.
//
// # Assigned
//
//	g := group.NewAssigned(group.AssignedConfig{RevokeTimeout: 10 * time.Second}, 0)
//	g.SetPartitions("orders", 2, now)
//	id, actions, err := g.Join(group.Member{Name: "m1", Topics: []string{"orders"}}, now)
//	for _, a := range actions {
//		// Assign: start the lane. Revoke: stop it, commit, then g.Released. Lost: fence it.
//	}
//
// # Shared
//
//	s := group.NewShared(config, floor)
//	d, outcome := s.Acquire(member, committed, now)      // Acquired: deliver the record at d.Token.Offset, attempt d.Attempt
//	err := s.Ack(member, d.Token)                        // or AckThrough, Nack, NackAfter, Reject, Extend, Return
//	s.Tick(now, nil)                                     // at s.NextDue
//	for dead, ok := s.TakeDead(); ok; dead, ok = s.TakeDead() {
//		// publish it to the dead-letter topic, then s.Buried or s.Unburied
//	}
//
// A deadline strikes when Tick is called at it or after it, never by itself: until then a holder holds and an owner owns.
// So a clock that is read a little late makes nothing wrong, and no decision is made twice.
//
// What does not belong here: reading records, calling handlers, publishing dead letters, storing positions, and timers; and
// for each machine the one lock or owner that its calls need.
package group
