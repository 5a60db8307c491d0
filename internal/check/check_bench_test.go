package check_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/leatlog/leat/internal/check"
)

// large makes a good history of about n operations, of the mix of a chaos run: half sends, and readers, subscriptions and groups
// in 8 partitions.
func large(n int) *check.History {
	rec := check.NewRecorderWithClock(1, check.Ticks())
	type partition struct {
		id     check.Partition
		values [][]byte
	}
	var parts []*partition
	for i := range 8 {
		parts = append(parts, &partition{id: rec.Partition(fmt.Sprintf("orders/%d", i))})
	}
	type consumer struct {
		o    check.Owner
		at   int
		part *partition
	}
	var consumers []*consumer
	member := rec.Member("m")
	log := rec.Log("all")
	for kind := range 3 {
		cfg := check.ConsumerConfig{Kind: check.ConsumerKind(min(kind, 1)), Mode: check.AtLeastOnce}
		if kind == 2 {
			cfg.Mode = check.Manual
		}
		c := rec.Consumer(fmt.Sprint("consumer ", kind), cfg)
		for _, p := range parts {
			o := check.Owner{Consumer: c, Partition: p.id}
			if kind > 0 {
				o.Member, o.Gen = member, 1
				log.Assign(o, 0)
			}
			consumers = append(consumers, &consumer{o, 0, p})
		}
	}
	producer := rec.Producer()
	for i := 0; i < n; i++ {
		p := parts[i%len(parts)]
		if i%2 == 0 {
			v := producer.NextKey(uint64(i%7), 32)
			log.SendTo(p.id, v).Ok(p.id, int64(len(p.values)))
			p.values = append(p.values, v)
			continue
		}
		c := consumers[(i/2)%len(consumers)]
		if c.at == len(c.part.values) {
			continue
		}
		off := int64(c.at)
		if c.o.Gen == 0 {
			poll := log.Poll(c.o, off)
			for ; c.at < len(c.part.values); c.at++ {
				poll.Record(int64(c.at), c.part.values[c.at])
			}
			poll.Ok()
			continue
		}
		log.Handle(c.o, off, 1, c.part.values[off]).Ok()
		if c.at++; i%3 == 0 {
			log.Ack(c.o, off, 1).Ok()
		}
	}
	for _, p := range parts {
		poll := log.FinalPoll(p.id, 0)
		for off, v := range p.values {
			poll.Record(int64(off), v)
		}
		poll.Ok()
	}
	return rec.History()
}

// BenchmarkCheck checks a history of a million operations. Bytes in use is what it holds at its end, history included.
func BenchmarkCheck(b *testing.B) {
	h := large(1_000_000)
	b.ReportMetric(float64(len(h.Ops)), "history-ops")
	for b.Loop() {
		if r := h.Check(check.Options{}); !r.Ok() {
			b.Fatal(r)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/1e6, "sys-MB")
	runtime.KeepAlive(h)
}

// BenchmarkCheck_Play checks histories of all kinds of consumers.
func BenchmarkCheck_Play(b *testing.B) {
	h := play(1, 300_000, 1)
	b.ReportMetric(float64(len(h.Ops)), "history-ops")
	for b.Loop() {
		if r := h.Check(check.Options{}); !r.Ok() {
			b.Fatal(r)
		}
	}
}

func BenchmarkLog(b *testing.B) {
	rec := check.NewRecorder(1)
	value := check.Payload(1, 1, 64)
	o := check.Owner{Consumer: rec.Consumer("c", check.ConsumerConfig{}), Partition: rec.Partition("p")}
	b.Run("handle/private", func(b *testing.B) {
		log := rec.Log("l")
		for b.Loop() {
			log.Handle(o, 0, 1, value).Ok()
		}
	})
	b.Run("handle/shared", func(b *testing.B) {
		log := rec.SharedLog("l")
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				log.Handle(o, 0, 1, value).Ok()
			}
		})
	})
}
