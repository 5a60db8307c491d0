package target

import (
	"context"
	"sync"

	"github.com/leatlog/leat/bench/baseline"
	"github.com/leatlog/leat/bench/load"
)

// MutexLog is a slice of messages under a mutex for each partition. Each holds at most 65,536 messages, fewer where they would be more
// than 2 GiB all together, and makes producers wait for the slowest consumer beyond that.
type MutexLog struct{}

const mutexLogLimit = 1 << 16

// Name implements load.Target.
func (MutexLog) Name() string { return "mutexlog" }

// Check implements load.Checker.
func (MutexLog) Check(s load.Scenario) error {
	if err := onlySync("mutexlog", s); err != nil {
		return err
	}
	return fits(&s, func(size int64) int64 { return heldLeast * places(&s) * size })
}

// Open implements load.Target.
func (MutexLog) Open(s load.Scenario) (load.Instance, error) {
	if err := (MutexLog{}).Check(s); err != nil {
		return nil, err
	}
	return chained(s, openLogs)
}

func openLogs(s load.Scenario) (load.Instance, error) {
	m := &mutexLog{s: s}
	for range s.Partitions {
		l := baseline.NewLog(holds(places(&s), mean(&s)+sliceBytes, mutexLogLimit, heldLeast))
		m.logs = append(m.logs, l)
		var readers []*baseline.LogReader
		for range s.Consumers() {
			readers = append(readers, l.NewReader())
		}
		m.readers = append(m.readers, readers)
	}
	return m, nil
}

type mutexLog struct {
	s       load.Scenario
	logs    []*baseline.Log
	readers [][]*baseline.LogReader // partition, consumer
	pushers sync.WaitGroup
}

func (m *mutexLog) Producer(int) (load.Producer, error) { return mutexLogProducer(m.logs), nil }

func (m *mutexLog) Read(reader, partition int, deliver func([]byte)) error {
	r := m.readers[partition][reader]
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		deliver(p)
	}
	return nil
}

func (m *mutexLog) Subscribe(subscriber int, deliver func(int, []byte)) error {
	for i := range m.logs {
		m.pushers.Go(func() {
			// The consumer after the pull readers; Read never fails.
			_ = m.Read(m.s.Readers+subscriber, i, func(p []byte) { deliver(i, p) })
		})
	}
	return nil
}

func (m *mutexLog) Close() error {
	for _, l := range m.logs {
		l.Close()
	}
	m.pushers.Wait()
	return nil
}

type mutexLogProducer []*baseline.Log

func (p mutexLogProducer) Publish(_ context.Context, partition int, payload []byte) error {
	_, err := p[partition].Append(payload)
	return err
}

func (mutexLogProducer) Flush(context.Context) error { return nil }
