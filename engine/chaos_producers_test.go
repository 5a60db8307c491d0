package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/check"
)

// chaosKeys is how many keys records have; those above have none.
const chaosKeys = 6

// chaosProducer is one producer of a run.
type chaosProducer struct {
	x      *chaosRun
	rng    *rand.Rand
	log    *check.Log
	values *check.Producer
	lone   uint64 // how many records without a key there were
}

// produce publishes in all ways.
func (x *chaosRun) produce(rng *rand.Rand) {
	p := chaosProducer{x: x, rng: rng, log: x.rec.Log("producer"), values: x.rec.Producer()}
	for n := 0; n < x.size; {
		ct := x.topics[rng.IntN(len(x.topics))]
		if ct.deleted.Load() && rng.IntN(10) > 0 {
			ct = x.topics[0]
		}
		i := rng.IntN(ct.Partitions())
		to, err := ct.Partition(i)
		if err != nil {
			p.failed(err)
			n++
			continue
		}
		ctx, cancel := context.WithTimeout(background, time.Duration(1+rng.IntN(20))*time.Millisecond)
		n += p.publish(ctx, ct, to, ct.part(x, i))
		cancel()
		if rng.IntN(8) == 0 {
			runtime.Gosched()
		}
	}
}

// record makes a record. One without a key has a key of its own for the checker: it is in no order with any other.
func (p *chaosProducer) record() engine.Record {
	key := p.rng.Uint64N(chaosKeys + 1)
	var name []byte
	if key < chaosKeys {
		name = fmt.Append(nil, key)
	} else {
		p.lone++
		key = uint64(p.values.Number())<<32 | p.lone
	}
	return engine.Record{Key: name, Value: p.values.NextKey(key, check.MinPayload+p.rng.IntN(200))}
}

// publish publishes something in some way, and returns how many records it was.
func (p *chaosProducer) publish(ctx context.Context, ct *chaosTopic, to *engine.Partition, cp check.Partition) int {
	switch p.rng.IntN(24) {
	case 0, 1, 2, 3, 4, 5, 6:
		r := p.record()
		send := p.log.SendTo(cp, r.Value)
		p.sent(send, ct)(to.Publish(ctx, r))
	case 7, 8, 9, 10, 11: // the partitioner chooses
		r := p.record()
		send := p.log.Send(r.Value)
		p.sent(send, ct)(ct.Publish(ctx, r))
	case 12, 13, 14, 15:
		r := p.record()
		send := p.log.SendTo(cp, r.Value)
		if err := to.PublishAsync(ctx, r, p.sent(send, ct)); err != nil {
			p.failed(err)
			send.Fail()
		}
	case 16, 17:
		r := p.record()
		send := p.log.SendTo(cp, r.Value)
		if err := to.TryPublish(r); err != nil {
			p.failed(err)
			send.Fail()
		} else {
			send.Unknown()
		}
	case 18:
		return p.append(ctx, to, cp)
	default:
		batch := make([]engine.Record, 2+p.rng.IntN(6))
		bytes := make([][]byte, len(batch))
		for j := range batch {
			batch[j] = p.record()
			bytes[j] = batch[j].Value
		}
		send := p.log.SendBatch(cp, bytes...)
		if err := to.PublishBatch(ctx, batch); err != nil {
			p.failed(err)
			send.Fail()
		} else {
			send.Ok(cp, batch[0].Offset)
		}
		return len(batch)
	}
	return 1
}

// sent returns what ends a send.
func (p *chaosProducer) sent(send check.Sending, ct *chaosTopic) func(engine.Published, error) {
	return func(at engine.Published, err error) {
		if err != nil {
			p.failed(err)
			send.Fail()
		} else {
			send.Ok(ct.part(p.x, at.Partition), at.Offset)
		}
	}
}

// append takes the partition for a while.
func (p *chaosProducer) append(ctx context.Context, to *engine.Partition, cp check.Partition) (n int) {
	a, err := to.Appender(ctx)
	if err != nil {
		p.failed(err)
		return 1
	}
	p.x.strike(faultAppender)
	defer a.Close()
	type staged struct {
		send check.Sending
		off  engine.Offset
	}
	for range 1 + p.rng.IntN(3) {
		if p.rng.IntN(2) == 0 {
			n += p.reserve(ctx, a, cp)
			continue
		}
		var all []staged
		for range 1 + p.rng.IntN(4) {
			n++
			r := p.record()
			send := p.log.SendTo(cp, r.Value)
			off, err := a.Append(ctx, r)
			if err != nil {
				p.failed(err)
				send.Fail()
				break
			}
			all = append(all, staged{send, off})
		}
		err := a.Flush()
		for _, s := range all {
			if err != nil {
				s.send.Unknown()
			} else {
				s.send.Ok(cp, s.off)
			}
		}
	}
	return n
}

// reserve makes records in place. Now and then it thinks better of it.
func (p *chaosProducer) reserve(ctx context.Context, a *engine.Appender, cp check.Partition) (n int) {
	rs, size := make([]engine.Record, 1+p.rng.IntN(4)), 0
	for i := range rs {
		rs[i] = p.record()
		size += len(rs[i].Key) + len(rs[i].Value)
	}
	room, err := a.Reserve(ctx, len(rs), size)
	if err != nil {
		p.failed(err)
		return len(rs)
	}
	if p.rng.IntN(8) == 0 {
		copy(room.Next(size), "nothing of this may ever be seen")
		room.Discard()
		return len(rs)
	}
	var sends []check.Sending
	for _, r := range rs {
		copy(room.NextKey(r.Key, len(r.Value)), r.Value)
		sends = append(sends, p.log.SendTo(cp, r.Value))
	}
	first, err := room.Commit(ctx)
	if err != nil {
		p.failed(err)
	}
	for i, send := range sends {
		if err != nil {
			send.Fail()
		} else {
			send.Ok(cp, first+engine.Offset(i))
		}
	}
	return len(rs)
}

// failed checks that a publish fails as it may.
func (p *chaosProducer) failed(err error) {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		p.x.strike(faultCancel)
	case errors.Is(err, engine.ErrFull):
		p.x.strike(faultFull)
	case errors.Is(err, engine.ErrClosed), errors.Is(err, engine.ErrDraining), errors.Is(err, engine.ErrTopicDeleted), errors.Is(err, engine.ErrExclusive):
	default:
		p.x.t.Errorf("publish: %v", err)
	}
}

// read reads partitions by hand, one after the other.
func (x *chaosRun) read(rng *rand.Rand, stop <-chan struct{}) {
	log := x.rec.Log("reader")
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(rng.IntN(1000)) * time.Microsecond):
		}
		ct := x.topics[rng.IntN(len(x.topics))]
		i := rng.IntN(ct.Partitions())
		p, err := ct.Partition(i)
		if err != nil {
			continue
		}
		r, err := p.Reader(engine.ReaderConfig{Start: engine.Last(rng.Int64N(100)), Gating: rng.IntN(2) == 0})
		if err != nil {
			continue // it is closed, or deleted
		}
		c := x.rec.Consumer(fmt.Sprintf("reader %d of %s", n, ct.Name()), check.ConsumerConfig{})
		x.poll(rng, log, r, p, check.Owner{Consumer: c, Partition: ct.part(x, i)}, stop)
		r.Close()
	}
}

// poll reads with one reader for a while.
func (x *chaosRun) poll(rng *rand.Rand, log *check.Log, r *engine.Reader, p *engine.Partition, owner check.Owner, stop <-chan struct{}) {
	buf, values := make([]engine.Record, 16), make([][]byte, 16)
	for range 20 {
		select {
		case <-stop:
			return
		default:
		}
		if rng.IntN(10) == 0 {
			first, next := p.First(), p.Next()
			to := first + rng.Int64N(next-first+1)
			o := log.Seek(owner.Consumer, owner.Partition, to)
			_ = o.Done(r.Seek(engine.At(to)))
		}
		ctx, cancel := context.WithTimeout(background, time.Duration(1+rng.IntN(5))*time.Millisecond)
		poll := log.Poll(owner, r.Position())
		var n int
		var err error
		switch most := 1 + rng.IntN(len(buf)); rng.IntN(3) {
		case 0:
			n, err = r.NextValues(ctx, values[:most])
			for i, v := range values[:n] {
				poll.Record(r.Position()-engine.Offset(n-i), v)
			}
		case 1:
			var run []byte
			run, n, err = r.NextRun(ctx, most)
			for i := range n {
				size := len(run) / n
				poll.Record(r.Position()-engine.Offset(n-i), run[i*size:(i+1)*size])
			}
		case 2:
			n, err = r.NextBatch(ctx, buf[:most])
			for _, m := range buf[:n] {
				poll.Record(m.Offset, m.Value)
			}
		}
		cancel()
		var gap *engine.GapError
		switch {
		case err == nil:
			poll.Ok()
		case errors.As(err, &gap):
			poll.Gap(gap.To)
			poll.Ok()
		default:
			poll.Fail()
			if !errors.Is(err, context.DeadlineExceeded) {
				return
			}
		}
	}
}
