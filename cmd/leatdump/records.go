package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
)

// records shows records.
func (p *program) records() error {
	topics, err := p.selected()
	if err != nil {
		return err
	}
	since, err := p.flags.when(time.Now())
	if err != nil {
		return err
	}
	write := p.writer()
	damaged := false
	err = p.partitions(&topics[0], func(i int, log *disk.Log, err error) error {
		if err != nil {
			return err
		}
		from, to := int64(log.First()), int64(log.Next())
		if p.flags.since != "" {
			off, err := log.OffsetAt(since)
			if err != nil {
				return err
			}
			from = int64(off)
		}
		if p.flags.from > to {
			fmt.Fprintf(p.stderr, "leatdump: partition %d ends at %d\n", i, to)
		}
		from = min(max(from, p.flags.from), to)
		if p.flags.to >= 0 {
			to = min(to, p.flags.to)
		}
		left := p.flags.count
		if left == 0 {
			left = math.MaxInt64
		}
		return p.scan(log, uint64(from), uint64(to), func(r *engine.Record, appended int64, own bool) error {
			if p.flags.since != "" && appended < since {
				return nil // the frame begins before
			}
			if left--; left < 0 {
				return errEnough
			}
			r.Partition = int32(i)
			return write(r, appended, own)
		}, func(from, to uint64, err error) error {
			if err != nil {
				damaged = true
				fmt.Fprintf(p.stderr, "leatdump: %v\n", err)
			} else {
				fmt.Fprintf(p.stderr, "leatdump: partition %d: [%d, %d) were lost in a salvage\n", i, from, to)
			}
			return nil
		})
	})
	if err == nil && damaged {
		return errDamaged
	}
	return err
}

// errEnough ends a scan.
var errEnough = errors.New("enough")

// when returns the time that -since means, in ns since the Unix epoch.
func (f *flags) when(now time.Time) (int64, error) {
	if f.since == "" {
		return 0, nil
	}
	if d, err := time.ParseDuration(f.since); err == nil {
		return now.Add(-d).UnixNano(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, f.since)
	if err != nil {
		return 0, errUsage{fmt.Errorf("-since is %q: neither a time like 2026-11-29T23:00:00Z nor a duration like 15m", f.since)}
	}
	return t.UnixNano(), nil
}

// writer returns what writes a record in the format that was asked for.
func (p *program) writer() func(r *engine.Record, appended int64, own bool) error {
	switch p.flags.format {
	case "json":
		enc := json.NewEncoder(p.out)
		enc.SetEscapeHTML(false)
		return func(r *engine.Record, appended int64, own bool) error { return enc.Encode(newLine(r, appended, own)) }
	case "hex":
		return func(r *engine.Record, appended int64, own bool) error { return writeHex(p.out, r, appended, own) }
	}
	return func(r *engine.Record, appended int64, own bool) error { return writeText(p.out, r, appended, own) }
}

// scan calls f for the records [from, to) of a log, as far as they are there, and gap for ranges that are not: with the damage, or
// with nil if they were lost in a salvage. own says that a record's timestamp is its own. It goes on behind damage with the next file.
func (p *program) scan(log *disk.Log, from, to uint64, f func(r *engine.Record, appended int64, own bool) error,
	gap func(from, to uint64, err error) error) error {
	for from < to {
		r, err := log.NewReader(from)
		if err != nil {
			return err
		}
		err = p.read(r, from, to, f, gap)
		at := r.Offset()
		if closeErr := r.Close(); err == nil && closeErr != nil {
			err = closeErr
		}
		var bad *disk.CorruptError
		switch {
		case errors.Is(err, errEnough):
			return nil
		case !errors.As(err, &bad):
			return err
		}
		next := to
		for _, file := range log.Files() {
			if file.First > at {
				next = min(next, file.First)
				break
			}
		}
		if err := gap(at, next, bad); err != nil {
			return err
		}
		from = next
	}
	return nil
}

// read reads frames up to an offset.
func (p *program) read(r *disk.Reader, from, to uint64, f func(r *engine.Record, appended int64, own bool) error,
	gap func(from, to uint64, err error) error) error {
	for r.Offset() < to {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		b, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if b.Kind == frame.Lost {
			if err := gap(b.First, b.Next(), nil); err != nil {
				return err
			}
			continue
		}
		var rec frame.Record
		for it := b.Records(); it.Next(&rec); {
			if rec.Offset < from || rec.Offset >= to {
				continue
			}
			view, err := disk.View(&rec)
			if err != nil {
				return err
			}
			if err := f(&view, rec.Appended, rec.Timestamp != 0); err != nil {
				return err
			}
		}
	}
	return nil
}
