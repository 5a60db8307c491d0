package rivals

import (
	"context"
	"fmt"

	"github.com/leatlog/leat/bench/rivals/arena"
	"github.com/leatlog/leat/engine"
)

func leatIns() []leatIn {
	ins := []leatIn{
		{"async", "PublishAsync of each message", false, leatAsync},
		{"sync", "Publish of each message, which waits for its offset", false, leatSync},
	}
	for _, n := range []int{16, 64} {
		ins = append(ins, leatIn{
			fmt.Sprintf("batch%d", n), fmt.Sprintf("PublishBatch of up to %d messages", n), false,
			func(l *leat) (leatProduce, error) {
				return leatBatch(l, n, func(ctx context.Context, p int, batch []engine.Record) error {
					return l.parts[p].PublishBatch(ctx, batch)
				}), nil
			},
		})
	}
	for _, n := range []int{1, 10, 100, 256} {
		name, about := fmt.Sprintf("append%d", n), fmt.Sprintf("an exclusive Appender that flushes every %d messages", n)
		switch n {
		case 1:
			about = "an exclusive Appender, Publish of each message"
		case 256:
			// 256 is what an Appender stages at the most, so this is also what happens to those who flush only before a pause.
			name, about = "append", "an exclusive Appender that flushes when there is nothing more to send, at least every 256 messages"
		}
		ins = append(ins, leatIn{name, about, true, func(l *leat) (leatProduce, error) { return leatAppend(l, n) }})
	}
	for _, n := range []int{1, 10, 100, 256} {
		name, about := fmt.Sprintf("reserve%d", n), fmt.Sprintf("an exclusive Appender, messages made in place in reservations of %d", n)
		switch n {
		case 1:
			about = "an exclusive Appender, each message made in place and visible at once"
		case 256:
			name, about = "reserve", "an exclusive Appender, messages made in place in reservations for what is to be sent, at most 256"
		}
		ins = append(ins, leatIn{name, about, true, func(l *leat) (leatProduce, error) { return leatReserve(l, n) }})
	}
	return append(ins, leatIn{
		"append-batch64", "an exclusive Appender, AppendBatch of up to 64 messages and a flush", true, leatAppendBatch(64),
	})
}

// burst is how many messages a producer that sends one by one asks for at once.
const burst = 64

func leatAsync(l *leat) (leatProduce, error) {
	return func(ctx context.Context, f *arena.Feed) error {
		for n := f.Due(burst); n > 0; n = f.Due(burst) {
			for range n {
				p := l.parts[f.Partition()]
				if err := p.PublishAsync(ctx, engine.Record{Value: f.Next()}, nil); err != nil {
					return err
				}
			}
		}
		return nil
	}, nil
}

func leatSync(l *leat) (leatProduce, error) {
	return func(ctx context.Context, f *arena.Feed) error {
		for n := f.Due(burst); n > 0; n = f.Due(burst) {
			for range n {
				p := l.parts[f.Partition()]
				if _, err := p.Publish(ctx, engine.Record{Value: f.Next()}); err != nil {
					return err
				}
			}
		}
		return nil
	}, nil
}

// leatBatch makes as many messages as are due and fit a batch, for each partition, and sends them. The records and the memory that they
// point to are the same each time, as they may be: what is sent has been copied.
func leatBatch(l *leat, most int, send func(ctx context.Context, partition int, batch []engine.Record) error) leatProduce {
	size, parts := l.job.Size, len(l.parts)
	return func(ctx context.Context, f *arena.Feed) error {
		memory, batches, filled := make([]byte, parts*most*size), make([][]engine.Record, parts), make([]int, parts)
		for p := range batches {
			batches[p] = make([]engine.Record, most)
			for i := range batches[p] {
				batches[p][i].Value = memory[(p*most+i)*size:][:size]
			}
		}
		for n := f.Due(most * parts); n > 0; n = f.Due(most * parts) {
			for range n { // by turns, so that no partition gets more than fit
				p := f.Partition()
				f.Fill(batches[p][filled[p]].Value)
				filled[p]++
			}
			for p, k := range filled {
				if k == 0 {
					continue
				}
				if err := send(ctx, p, batches[p][:k]); err != nil {
					return err
				}
				filled[p] = 0
			}
		}
		return nil
	}
}

// appenders takes all partitions.
func (l *leat) appenders() (xs []*engine.Appender, err error) {
	for _, p := range l.parts {
		x, err := p.Appender(context.Background())
		if err != nil {
			return nil, err
		}
		xs = append(xs, x)
	}
	return xs, nil
}

func leatAppendBatch(most int) func(*leat) (leatProduce, error) {
	return func(l *leat) (leatProduce, error) {
		appenders, err := l.appenders()
		return leatBatch(l, most, func(ctx context.Context, p int, batch []engine.Record) error {
			if _, err := appenders[p].AppendBatch(ctx, batch); err != nil {
				return err
			}
			return appenders[p].Flush()
		}), err
	}
}

// leatAppend appends one by one.
func leatAppend(l *leat, most int) (leatProduce, error) {
	appenders, err := l.appenders()
	if err != nil {
		return nil, err
	}
	if len(appenders) == 1 && most == 1 {
		return leatAppendNow(appenders[0]), nil
	}
	if len(appenders) == 1 {
		return leatAppendOne(appenders[0], most), nil
	}
	return func(ctx context.Context, f *arena.Feed) error {
		for n := f.Due(most * len(appenders)); n > 0; n = f.Due(most * len(appenders)) {
			for range n {
				x := appenders[f.Partition()]
				if _, err := x.Append(ctx, engine.Record{Value: f.Next()}); err != nil {
					return err
				}
			}
			for _, x := range appenders {
				if err := x.Flush(); err != nil {
					return err
				}
			}
		}
		return nil
	}, nil
}

// leatAppendNow publishes each message by itself.
func leatAppendNow(x *engine.Appender) leatProduce {
	return func(ctx context.Context, f *arena.Feed) error {
		for n := f.Due(burst); n > 0; n = f.Due(burst) {
			for range n {
				if _, err := x.Publish(ctx, engine.Record{Value: f.Next()}); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func leatAppendOne(x *engine.Appender, most int) leatProduce {
	return func(ctx context.Context, f *arena.Feed) error {
		for n := f.Due(most); n > 0; n = f.Due(most) {
			for range n {
				if _, err := x.Append(ctx, engine.Record{Value: f.Next()}); err != nil {
					return err
				}
			}
			if err := x.Flush(); err != nil {
				return err
			}
		}
		return nil
	}
}

// leatReserve makes messages in place.
func leatReserve(l *leat, most int) (leatProduce, error) {
	appenders, err := l.appenders()
	if err != nil {
		return nil, err
	}
	if len(appenders) == 1 {
		return leatReserveOne(appenders[0], most, l.job.Size), nil
	}
	return func(ctx context.Context, f *arena.Feed) error {
		out := make([]*engine.Reservation, len(appenders))
		for n := f.Due(most * len(appenders)); n > 0; n = f.Due(most * len(appenders)) {
			each := (n + len(appenders) - 1) / len(appenders) // they take turns
			for p, x := range appenders {
				if out[p], err = x.Reserve(ctx, each, each*l.job.Size); err != nil {
					return err
				}
			}
			for range n {
				f.Fill(out[f.Partition()].Next(l.job.Size))
			}
			for _, r := range out {
				if _, err := r.Commit(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	}, nil
}

func leatReserveOne(x *engine.Appender, most, size int) leatProduce {
	return func(ctx context.Context, f *arena.Feed) error {
		for n := f.Due(most); n > 0; n = f.Due(most) {
			r, err := x.Reserve(ctx, n, n*size)
			if err != nil {
				return err
			}
			b := r.NextRun(n, size)
			for ; len(b) > 0; b = b[size:] {
				f.Fill(b[:size:size])
			}
			if _, err := r.Commit(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}
