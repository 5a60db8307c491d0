package engine

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/internal/mutant"
)

// The headers of a dead letter, behind those of the record: where it comes from, how often it was delivered, and the last
// error. The record's key, value and timestamp are its own.
const (
	HeaderTopic     = "leat-topic"
	HeaderPartition = "leat-partition"
	HeaderOffset    = "leat-offset"
	HeaderAttempts  = "leat-attempts"
	HeaderError     = "leat-error"
	HeaderConsumer  = "leat-consumer" // the group or subscription
)

// burialWait is how long a worker waits for room in the dead-letter topic before the record has to wait by itself.
const burialWait = 10 * time.Millisecond

// burier returns what publishes the records that a consumer gives up.
func (e *Engine) burier(deadLetter, consumer string) (func(ctx context.Context, m *Message, err error) error, error) {
	if deadLetter == "" {
		return nil, nil
	}
	if _, err := e.Topic(deadLetter); err != nil {
		return nil, err
	}
	return func(ctx context.Context, m *Message, why error) error {
		t, err := e.Topic(deadLetter) // one that is created anew will do
		if err == nil {
			ctx, cancel := context.WithTimeout(ctx, burialWait)
			defer cancel()
			_, err = t.Publish(ctx, letter(m, consumer, why))
		}
		if err != nil {
			e.log(slog.LevelError, "leat: dead letter not published, the record stays due", "topic", m.Topic, "consumer", consumer,
				"partition", m.Partition, "offset", m.Offset, "deadletter", deadLetter, "error", err)
		}
		if mutant.Enabled && mutant.Is(mutant.BuryUnpublished) {
			return nil
		}
		return err
	}, nil
}

// letter returns the dead letter of a record.
func letter(m *delivery.Message, consumer string, why error) Record {
	var hs []Header
	for name, value := range m.Headers.All() {
		hs = append(hs, Header{Name: name, Value: value})
	}
	number := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	hs = append(hs,
		Header{Name: HeaderTopic, Value: []byte(m.Topic)},
		Header{Name: HeaderPartition, Value: number(int64(m.Partition))},
		Header{Name: HeaderOffset, Value: number(m.Offset)},
		Header{Name: HeaderAttempts, Value: number(int64(m.Attempt))},
		Header{Name: HeaderError, Value: []byte(why.Error())},
		Header{Name: HeaderConsumer, Value: []byte(consumer)},
	)
	return Record{Key: m.Key, Value: m.Value, Timestamp: m.Timestamp, Headers: MakeHeaders(hs...)}
}
