package target

import (
	"context"
	"slices"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/stream"
	"github.com/leatlog/leat/engine"
)

// leatReserve is about how many bytes are reserved at once, if no message is larger.
const leatReserve = 64 << 10

func (l *leat) Producer(i int) (load.Producer, error) {
	switch l.publish {
	case "sync":
		return leatSync(l.parts), nil
	case "batch":
		return newLeatBatch(l.parts, &l.s), nil
	case "appender":
		return newLeatAppender(l.parts, i, l.s.Producers)
	case "reserve":
		return newLeatReserve(l.parts, i, &l.s)
	default:
		return leatAsync(l.parts), nil
	}
}

// leatAsync hands records over and does not ask what became of them: if one were lost, the checks would say so.
type leatAsync []*engine.Partition

func (p leatAsync) Publish(ctx context.Context, partition int, payload []byte) error {
	return p[partition].PublishAsync(ctx, engine.Record{Value: payload}, nil)
}

// PublishKey implements load.KeyProducer.
func (p leatAsync) PublishKey(ctx context.Context, partition int, key, payload []byte) error {
	return p[partition].PublishAsync(ctx, engine.Record{Key: key, Value: payload}, nil)
}

func (leatAsync) Flush(context.Context) error { return nil }

// leatSync waits until each record is committed.
type leatSync []*engine.Partition

func (p leatSync) Publish(ctx context.Context, partition int, payload []byte) error {
	_, err := p[partition].Publish(ctx, engine.Record{Value: payload})
	return err
}

// PublishKey implements load.KeyProducer.
func (p leatSync) PublishKey(ctx context.Context, partition int, key, payload []byte) error {
	_, err := p[partition].Publish(ctx, engine.Record{Key: key, Value: payload})
	return err
}

func (leatSync) Flush(context.Context) error { return nil }

// leatBatches collects records for each partition.
type leatBatches struct {
	parts   []*engine.Partition
	batches [][]engine.Record
	memory  [][]byte // for each partition, room for the values of a batch
	size    int
	most    int // messages of a batch
}

func newLeatBatch(parts []*engine.Partition, s *load.Scenario) *leatBatches {
	return &leatBatches{
		parts: parts, size: s.Size, most: holds(int64(s.Producers)*int64(s.Partitions), int64(s.Size), leatBatch, 1),
		batches: make([][]engine.Record, len(parts)), memory: make([][]byte, len(parts)),
	}
}

func (b *leatBatches) Publish(ctx context.Context, partition int, payload []byte) error {
	i := len(b.batches[partition])
	if b.memory[partition] == nil {
		b.batches[partition], b.memory[partition] = make([]engine.Record, 0, b.most), make([]byte, b.most*b.size)
	}
	value := b.memory[partition][i*b.size:][:len(payload)]
	copy(value, payload)
	b.batches[partition] = append(b.batches[partition], engine.Record{Value: value})
	if i+1 < b.most {
		return nil
	}
	return b.send(ctx, partition)
}

func (b *leatBatches) send(ctx context.Context, partition int) error {
	batch := b.batches[partition]
	if len(batch) == 0 {
		return nil
	}
	b.batches[partition] = batch[:0]
	return b.parts[partition].PublishBatch(ctx, batch)
}

func (b *leatBatches) Flush(ctx context.Context) error {
	for i := range b.parts {
		if err := b.send(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// leatAppenders has some partitions for itself.
type leatAppenders struct {
	owns      []int
	appenders []*engine.Appender // by partition; nil for those of others
}

func newLeatAppender(parts []*engine.Partition, producer, of int) (*leatAppenders, error) {
	a := &leatAppenders{appenders: make([]*engine.Appender, len(parts))}
	for i := producer; i < len(parts); i += of {
		x, err := parts[i].Appender(context.Background())
		if err != nil {
			return nil, err
		}
		a.appenders[i] = x
		a.owns = append(a.owns, i)
	}
	return a, nil
}

// Owns implements load.Owner.
func (a *leatAppenders) Owns() []int { return slices.Clone(a.owns) }

func (a *leatAppenders) Publish(ctx context.Context, partition int, payload []byte) error {
	_, err := a.appenders[partition].Append(ctx, engine.Record{Value: payload})
	return err
}

// PublishKey implements load.KeyProducer.
func (a *leatAppenders) PublishKey(ctx context.Context, partition int, key, payload []byte) error {
	_, err := a.appenders[partition].Append(ctx, engine.Record{Key: key, Value: payload})
	return err
}

func (a *leatAppenders) Flush(context.Context) error {
	for _, i := range a.owns {
		if err := a.appenders[i].Flush(); err != nil {
			return err
		}
	}
	return nil
}

// leatReserves has some partitions for itself, and in each a reservation that it fills, or nil.
type leatReserves struct {
	*leatAppenders
	rooms []*engine.Reservation // by partition
	most  int                   // messages of a reservation
	bytes int                   // of a reservation
}

func newLeatReserve(parts []*engine.Partition, producer int, s *load.Scenario) (load.Producer, error) {
	a, err := newLeatAppender(parts, producer, s.Producers)
	if err != nil {
		return nil, err
	}
	each := int64(s.Size)
	if !s.Keys.None() {
		each += stream.KeyMost
	}
	most := max(1, min(leatBatch, int(min(leatReserve, kept(s)/leatHeld)/each)))
	return &leatReserves{leatAppenders: a, rooms: make([]*engine.Reservation, len(parts)), most: most, bytes: most * int(each)}, nil
}

func (a *leatReserves) Publish(ctx context.Context, partition int, payload []byte) error {
	return a.PublishKey(ctx, partition, nil, payload)
}

// PublishKey implements load.KeyProducer.
func (a *leatReserves) PublishKey(ctx context.Context, partition int, key, payload []byte) error {
	r := a.rooms[partition]
	if r == nil {
		var err error
		if r, err = a.appenders[partition].Reserve(ctx, a.most, a.bytes); err != nil {
			return err
		}
		a.rooms[partition] = r
	}
	copy(r.NextKey(key, len(payload)), payload)
	if r.Records() < a.most {
		return nil
	}
	a.rooms[partition] = nil
	_, err := r.Commit(ctx)
	return err
}

func (a *leatReserves) Flush(ctx context.Context) error {
	for _, i := range a.owns {
		if r := a.rooms[i]; r != nil {
			a.rooms[i] = nil
			if _, err := r.Commit(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
