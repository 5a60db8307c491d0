package rivals

import (
	"context"

	"github.com/leatlog/leat/bench/baseline"
	"github.com/leatlog/leat/bench/rivals/arena"
)

// logs are what keeps messages as Leat does.
func logs() []*arena.Rival {
	return []*arena.Rival{{
		// The textbook: everybody queues for one lock. It holds 65,536 messages and makes producers wait for the slowest reader.
		Name: "mutexlog", About: "A slice of byte slices under a mutex with a condition variable for each partition.",
		Open: openMutexLog,
	}}
}

type mutexLog struct {
	job     *arena.Job
	logs    []*baseline.Log
	readers []*baseline.LogReader
}

func openMutexLog(j *arena.Job) (arena.Line, error) {
	l := &mutexLog{job: j}
	for range j.Topology.Partitions {
		l.logs = append(l.logs, baseline.NewLog(1<<16))
	}
	for i := range j.Sinks {
		l.readers = append(l.readers, l.logs[i%len(l.logs)].NewReader())
	}
	return l, nil
}

func (l *mutexLog) Produce(_ context.Context, _ int, f *arena.Feed) error {
	for n := f.Due(burst); n > 0; n = f.Due(burst) {
		for range n {
			to := l.logs[f.Partition()]
			if _, err := to.Append(f.Next()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *mutexLog) Consume(_ context.Context, i int) error {
	s, r := l.job.Sinks[i], l.readers[i]
	for !s.Full() {
		m, ok := r.Next()
		if !ok {
			return nil
		}
		s.See(m)
	}
	return nil
}

func (l *mutexLog) Close() error {
	for _, x := range l.logs {
		x.Close()
	}
	return nil
}
