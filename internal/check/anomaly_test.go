package check_test

import (
	"slices"
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

var examples = slices.Concat(logExamples, readExamples, ownerExamples, handlerExamples, otherExamples)

// otherExamples are of bytes, crashes, the end and the counters.
var otherExamples = []example{
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
