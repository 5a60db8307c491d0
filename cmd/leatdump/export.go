package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/disk"
)

// What export writes is lines of JSON: an opening, the records partition by partition in the order of their offsets, and a closing
// that says how many there are and what the checksum of all lines before it is. So a file that is not whole is noticed.

// opening is the first line.
type opening struct {
	Leat     string          `json:"leat"`
	Version  int             `json:"version"`
	Topic    string          `json:"topic"`
	First    []engine.Offset `json:"first"` // offsets of the first records, by partition
	Next     []engine.Offset `json:"next"`  // those behind the last ones
	Settings json.RawMessage `json:"settings"`
	// Positions of named subscriptions and groups, to look at.
	Subscriptions map[string][]engine.Offset `json:"subscriptions,omitempty"`
	Groups        map[string][]engine.Offset `json:"groups,omitempty"`
}

// closing is the last line.
type closing struct {
	End     bool   `json:"end"`
	Records int64  `json:"records"`
	CRC     uint32 `json:"crc32c"`
}

const (
	exportKind    = "export"
	exportVersion = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// summing counts and sums what goes to a writer.
type summing struct {
	w   io.Writer
	crc uint32
}

func (s *summing) Write(b []byte) (int, error) {
	s.crc = crc32.Update(s.crc, castagnoli, b)
	return s.w.Write(b)
}

// export writes a topic.
func (p *program) export() (err error) {
	topics, err := p.selected()
	if err != nil {
		return err
	}
	t := &topics[0]
	open := opening{Leat: exportKind, Version: exportVersion, Topic: t.Name, Settings: t.Settings, Subscriptions: t.Subscriptions}
	if open.Groups, err = p.positionsIn(t.Name); err != nil {
		return err
	}
	// First everything is opened, so that a topic that cannot be exported is none that was exported in part.
	var logs []*disk.Log
	total := int64(0)
	logs, err = openAll(t)
	defer func() {
		for _, l := range logs {
			err = errors.Join(err, l.Close())
		}
	}()
	if err != nil {
		return err
	}
	for i, log := range logs {
		if d := log.Recovery().Damage; len(d) > 0 {
			return fmt.Errorf("partition %d: %w", i, d[0])
		}
		first, err := p.afterLost(t, log)
		if err != nil {
			return err
		}
		if from := engine.Offset(log.First()); first > from {
			fmt.Fprintf(p.stderr, "leatdump: partition %d: records were lost in a salvage: what is before %d is left out\n", i, first)
		}
		open.First, open.Next = append(open.First, first), append(open.Next, engine.Offset(log.Next()))
		for _, f := range log.Files() {
			total += f.Bytes
		}
	}
	out, finish, err := p.create()
	if err != nil {
		return err
	}
	bar := p.newBar("export", total)
	defer bar.done()
	err = p.exportTo(out, &open, logs, bar)
	return notDone("export", errors.Join(err, finish(err == nil)))
}

// openAll opens the files of all partitions.
func openAll(t *engine.TopicContents) (logs []*disk.Log, err error) {
	for i, dir := range t.Dirs {
		log, err := disk.Open(dir, partitionConfig(t, i))
		if err != nil {
			return logs, err
		}
		logs = append(logs, log)
	}
	return logs, nil
}

// positionsIn returns where groups are in a topic.
func (p *program) positionsIn(topic string) (map[string][]engine.Offset, error) {
	all, err := p.inspect()
	if err != nil {
		return nil, err
	}
	at := map[string][]engine.Offset{}
	for _, g := range all.Groups {
		if offs := g.Positions[topic]; offs != nil {
			at[g.Name] = offs
		}
	}
	return at, nil
}

// afterLost returns from where on all offsets of a log have a record.
func (p *program) afterLost(t *engine.TopicContents, log *disk.Log) (engine.Offset, error) {
	first := log.First()
	if t.Salvaged {
		skip := func(*engine.Record, int64, bool) error { return nil }
		err := p.scan(log, first, log.Next(), skip, func(_, to uint64, err error) error {
			first = to
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return engine.Offset(first), nil
}

// create opens what is written to. finish closes it, and removes a file that is not whole.
func (p *program) create() (w io.Writer, finish func(whole bool) error, err error) {
	if p.flags.file == "-" {
		return p.out, func(bool) error { return p.out.Flush() }, nil
	}
	f, err := os.Create(p.flags.file)
	if err != nil {
		return nil, nil, err
	}
	buf := bufio.NewWriterSize(f, 1<<20)
	return buf, func(whole bool) error {
		err := buf.Flush()
		if err == nil && whole {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
		if !whole || err != nil {
			err = errors.Join(err, os.Remove(p.flags.file))
		}
		return err
	}, nil
}

// exportTo writes the lines.
func (p *program) exportTo(w io.Writer, open *opening, logs []*disk.Log, bar *bar) error {
	sum := &summing{w: w}
	enc := json.NewEncoder(sum)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(open); err != nil {
		return err
	}
	n := int64(0)
	for i, log := range logs {
		err := p.scan(log, uint64(open.First[i]), uint64(open.Next[i]), func(r *engine.Record, appended int64, own bool) error {
			n++
			bar.add(int64(r.Size()))
			r.Partition = int32(i)
			return enc.Encode(newLine(r, appended, own))
		}, func(_, _ uint64, err error) error { return err })
		if err != nil {
			return err
		}
	}
	return json.NewEncoder(w).Encode(closing{End: true, Records: n, CRC: sum.crc})
}

// imports makes a topic of what export has written.
func (p *program) imports() (err error) {
	in, total := p.stdin, int64(0)
	if p.flags.file != "-" {
		f, err := os.Open(p.flags.file)
		if err != nil {
			return err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			total = info.Size()
		}
		in = f
	}
	bar := p.newBar("import", total)
	defer bar.done()
	r := lines{r: bufio.NewReaderSize(in, 1<<20), bar: bar}
	open, err := r.opening()
	if err != nil {
		return err
	}
	name := p.name
	if name == "" {
		name = open.Topic
	}
	imp, err := engine.Import(p.dir, name, open.Settings, open.First)
	if err != nil {
		return err
	}
	n, err := p.importFrom(&r, open, imp)
	if err == nil {
		err = imp.Close()
	} else {
		err = errors.Join(err, imp.Abort())
	}
	if err != nil {
		return notDone("import", err)
	}
	bar.done()
	fmt.Fprintf(p.out, "topic %s: %d partitions, %d records\n", name, len(open.First), n)
	return nil
}

// importFrom reads the records.
func (p *program) importFrom(r *lines, open *opening, imp *engine.Importer) (n int64, err error) {
	for {
		if err := p.ctx.Err(); err != nil {
			return n, err
		}
		crc := r.crc
		b, err := r.next()
		if err == io.EOF {
			return n, fmt.Errorf("line %d: the file is not whole: it has no end", r.n)
		}
		if err != nil {
			return n, err
		}
		var l struct {
			line
			closing
		}
		if err := strict(b, &l); err != nil {
			return n, fmt.Errorf("line %d: %w", r.n, err)
		}
		if l.End {
			if l.closing.Records != n || l.CRC != crc {
				return n, fmt.Errorf("line %d: %w: there should be %d records with checksum %08x, and there are %d with %08x", r.n, errDamaged,
					l.closing.Records, l.CRC, n, crc)
			}
			return n, nil
		}
		rec, appended := l.record()
		if err := imp.Add(&rec, appended); err != nil {
			return n, fmt.Errorf("line %d: %w", r.n, err)
		}
		n++
	}
}

// lines reads what export has written.
type lines struct {
	r   *bufio.Reader
	bar *bar
	n   int
	crc uint32
	buf []byte
}

// next returns the next line; it is valid until the next call.
func (r *lines) next() ([]byte, error) {
	r.buf = r.buf[:0]
	for {
		b, err := r.r.ReadSlice('\n')
		r.buf = append(r.buf, b...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, err // also io.EOF in the middle of a line: that is not whole
		}
		break
	}
	r.n++
	r.crc = crc32.Update(r.crc, castagnoli, r.buf)
	r.bar.add(int64(len(r.buf)))
	return r.buf, nil
}

// opening reads the first line.
func (r *lines) opening() (*opening, error) {
	b, err := r.next()
	if err != nil && err != io.EOF {
		return nil, err
	}
	var o opening
	if err != nil || json.Unmarshal(b, &o) != nil || o.Leat != exportKind {
		return nil, errors.New("this is not what leatdump export writes")
	}
	if o.Version != exportVersion {
		return nil, fmt.Errorf("the file is of version %d, and only %d is known", o.Version, exportVersion)
	}
	return &o, nil
}

// strict decodes one line.
func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
