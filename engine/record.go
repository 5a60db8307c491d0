package engine

import (
	"context"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/segment"
)

// Offset is the position of a record in its partition: its index, from 0, without gaps.
type Offset = int64

// Record is one record: Key, Value, Headers, Timestamp, and where it is. Publishing copies it: its memory is the caller's
// again as soon as the call returns. A record that was read is a view of the log's memory and must not be changed; each way
// of reading says how long the view is valid, and Clone makes a copy that stays.
type Record = segment.Record

type (
	// Headers is a list of named values that goes with a record.
	Headers = segment.Headers

	// Header is one of them.
	Header = segment.Header
)

// MakeHeaders returns the list of the given headers.
func MakeHeaders(hs ...Header) Headers { return segment.MakeHeaders(hs...) }

// Published says where a record was put: its Partition and its Offset there.
type Published = partition.Published

// Message is a record on its way to a handler, with its Topic and the number of the Attempt. It is valid until the handler
// returns; Record.Clone makes a copy that stays. In Manual mode it is settled by its methods Ack, AckThrough, Nack and
// Reject, or by those of its Token when it is not valid any more; Extend gives more time for it.
type Message = delivery.Message

// Handler gets the records of a subscription, or those that fall to a member of a group: one call at a time for each partition,
// in offset order, but with ByKey, in Manual mode for what comes again, and in shared groups. It may block, panic, and call
// anything of the engine, with ctx where a context is asked for. Returning nil says that the record is processed, but in
// Manual mode. ctx ends when the subscription or member does, or the member loses the partition.
type Handler interface {
	OnMessage(ctx context.Context, m *Message) error
}

// HandlerFunc is a function that is a Handler.
type HandlerFunc func(ctx context.Context, m *Message) error

// OnMessage calls f.
func (f HandlerFunc) OnMessage(ctx context.Context, m *Message) error { return f(ctx, m) }

// BatchHandler is a Handler that would rather have several records at once: if the Handler given to Subscribe is one,
// OnBatch is called instead of OnMessage, with a run of consecutive records of one partition. They are processed, or
// delivered again, all together.
type BatchHandler interface {
	Handler
	OnBatch(ctx context.Context, ms []Message) error
}

// Token stands for one delivery of one record in Manual mode, to settle it when the message is not valid any more, from any
// goroutine: Ack, AckThrough, Nack, Extend, Reject, Deadline. It is a value that can be copied and kept.
type Token = delivery.Token
