package bench_test

import (
	"sync"
	"testing"

	"github.com/leatlog/leat/bench/baseline"
)

// chanLine is a buffered channel of 64-byte structs for each consumer.
type chanLine struct {
	fan *baseline.Fan[baseline.Slot]
	*pushers
}

func openChan(_ testing.TB, f flow) line {
	l := &chanLine{fan: baseline.NewFan[baseline.Slot](f.consumers, baseline.Capacity)}
	if f.push {
		l.pushers = newPushers(f)
		for c, handle := range l.handlers {
			l.loops.Go(func() {
				var m baseline.Slot // one for all: its address goes to the handler
				for m = range l.fan.Reader(c) {
					handle(m[:])
				}
			})
		}
	}
	return l
}

func (l *chanLine) produce(producer int, from, n uint64) error {
	var m baseline.Slot
	for seq := from; seq < from+n; seq++ {
		fill(m[:], uint64(producer), seq)
		l.fan.Send(m)
	}
	return nil
}

func (l *chanLine) consume(consumer int, c *checker, n uint64) error {
	if l.pushers != nil {
		l.await(consumer, c, n)
		return nil
	}
	in := l.fan.Reader(consumer)
	for range n {
		m := <-in
		c.see(m[:])
	}
	return nil
}

func (l *chanLine) close() error {
	l.fan.Close()
	if l.pushers != nil {
		l.loops.Wait()
	}
	return nil
}

// mutexLogLine is a slice under a mutex.
type mutexLogLine struct {
	log     *baseline.Log
	readers []*baseline.LogReader
	*pushers
}

func openMutexLog(_ testing.TB, f flow) line {
	l := &mutexLogLine{log: baseline.NewLog(1 << 16)}
	for range f.consumers {
		l.readers = append(l.readers, l.log.NewReader())
	}
	if f.push {
		l.pushers = newPushers(f)
		for c, handle := range l.handlers {
			l.loops.Go(func() {
				for m, ok := l.readers[c].Next(); ok; m, ok = l.readers[c].Next() {
					handle(m)
				}
			})
		}
	}
	return l
}

func (l *mutexLogLine) produce(producer int, from, n uint64) error {
	p := make([]byte, size)
	for seq := from; seq < from+n; seq++ {
		fill(p, uint64(producer), seq)
		if _, err := l.log.Append(p); err != nil {
			return err
		}
	}
	return nil
}

func (l *mutexLogLine) consume(consumer int, c *checker, n uint64) error {
	if l.pushers != nil {
		l.await(consumer, c, n)
		return nil
	}
	r := l.readers[consumer]
	for range n {
		m, ok := r.Next()
		if !ok {
			return baseline.ErrClosed
		}
		c.see(m)
	}
	return nil
}

func (l *mutexLogLine) close() error {
	l.log.Close()
	if l.pushers != nil {
		l.loops.Wait()
	}
	return nil
}

// pushers are the consumers of a line that calls them. Each checks what it is given, on the line's goroutine, and says when it
// has seen as many as are awaited.
type pushers struct {
	handlers []func([]byte)
	loops    sync.WaitGroup

	turn []chan push // for each consumer: what to do next
	done []chan struct{}
}

// push is one benchmark run of a push consumer.
type push struct {
	c *checker
	n uint64
}

func newPushers(f flow) *pushers {
	p := &pushers{}
	for i := range f.consumers {
		p.turn = append(p.turn, make(chan push, 1))
		p.done = append(p.done, make(chan struct{}, 1))
		var now push
		p.handlers = append(p.handlers, func(m []byte) {
			if now.n == 0 {
				now = <-p.turn[i] // consume is called before the first message is, or about then
			}
			now.c.see(m)
			if now.n--; now.n == 0 {
				p.done[i] <- struct{}{}
			}
		})
	}
	return p
}

// await gives the consumer its checker and waits until it has seen n messages.
func (p *pushers) await(consumer int, c *checker, n uint64) {
	if n == 0 {
		return
	}
	p.turn[consumer] <- push{c, n}
	<-p.done[consumer]
}
