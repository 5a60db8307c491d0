package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/disk"
)

// table begins a table; its columns are separated by tabs.
func table(w io.Writer, columns ...string) *tabwriter.Writer {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(columns, "\t"))
	return t
}

// topics lists the topics.
func (p *program) topics() error {
	topics, err := p.selected()
	if err != nil {
		return err
	}
	w := table(p.out, "topic", "partitions", "records", "bytes", "files", "sync", "max bytes", "max age", "when full", "id")
	damaged := false
	for _, t := range topics {
		var records, bytes, files int64
		state := ""
		err := p.partitions(&t, func(_ int, log *disk.Log, err error) error {
			if err != nil {
				if !wrong(err) {
					return err
				}
				state, damaged = " DAMAGED", true
				return nil
			}
			records += int64(log.Next() - log.First())
			for _, f := range log.Files() {
				files++
				bytes += f.Bytes
			}
			if len(log.Recovery().Damage) > 0 {
				state, damaged = " DAMAGED", true
			}
			return nil
		})
		if err != nil {
			return err
		}
		c := &t.Config
		fmt.Fprintf(w, "%s%s\t%d\t%d\t%s\t%d\t%v\t%s\t%s\t%v\t%v\n", t.Name, state, len(t.Dirs), records, size(bytes), files,
			c.Durable.Sync, limit(c.Retention.MaxBytes), age(c.Retention.MaxAge), policy(c.OnFull), t.ID)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if damaged {
		return fmt.Errorf("%w: verify says what", errDamaged)
	}
	return nil
}

// segments lists the files.
func (p *program) segments() error {
	topics, err := p.selected()
	if err != nil {
		return err
	}
	damaged := false
	for _, t := range topics {
		err := p.partitions(&t, func(i int, log *disk.Log, err error) error {
			if err != nil {
				if !wrong(err) {
					return err
				}
				damaged = true
				fmt.Fprintf(p.out, "%s, partition %d: DAMAGED: %v\n\n", t.Name, i, err)
				return nil
			}
			fmt.Fprintf(p.out, "%s, partition %d: offsets [%d, %d) in %s\n", t.Name, i, log.First(), log.Next(), t.Dirs[i])
			w := table(p.out, "  file", "first", "end", "bytes", "epoch", "sealed", "oldest", "newest")
			for _, f := range log.Files() {
				fmt.Fprintf(w, "  %s\t%d\t%d\t%d\t%d\t%t\t%s\t%s\n", base(f.Name), f.First, f.End, f.Bytes, f.Epoch, f.Sealed,
					stamp(f.Oldest), stamp(f.Newest))
			}
			if err := w.Flush(); err != nil {
				return err
			}
			for _, d := range log.Recovery().Damage {
				damaged = true
				fmt.Fprintf(p.out, "  DAMAGED: %v\n", d)
			}
			fmt.Fprintln(p.out)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if damaged {
		return errDamaged
	}
	return nil
}

// groups shows positions.
func (p *program) groups() error {
	all, err := p.inspect()
	if err != nil {
		return err
	}
	ends, err := p.ends(all)
	if err != nil {
		return err
	}
	known, damaged := false, false
	w := table(p.out, "consumer", "kind", "topic", "partition", "position", "end", "lag")
	rows := func(name, kind, topic string, at []engine.Offset) {
		for i, off := range at {
			end, lag := "?", "?"
			if e := ends[topic]; i < len(e) && e[i] >= 0 {
				end, lag = fmt.Sprint(e[i]), fmt.Sprint(e[i]-off)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", name, kind, topic, i, off, end, lag)
		}
	}
	failed := func(name, kind string, err error) {
		if err != nil {
			damaged = true
			fmt.Fprintf(w, "%s\t%s\tDAMAGED: %v\n", name, kind, err)
		}
	}
	for _, g := range all.Groups {
		if p.name != "" && p.name != g.Name {
			continue
		}
		known = true
		kind := fmt.Sprintf("%v, %s", g.Config.Kind, mode(g.Config.Mode))
		for _, topic := range slices.Sorted(maps.Keys(g.Positions)) {
			rows(g.Name, kind, topic, g.Positions[topic])
		}
		failed(g.Name, kind, g.Err)
	}
	for _, t := range all.Topics {
		for _, id := range slices.Sorted(maps.Keys(t.Subscriptions)) {
			if p.name == "" || p.name == id {
				known = true
				rows(id, "subscription", t.Name, t.Subscriptions[id])
			}
		}
		failed("?", "subscriptions of "+t.Name, t.Err)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case damaged:
		return errDamaged
	case p.name != "" && !known:
		return fmt.Errorf("there is no group or named subscription %s", p.name)
	}
	return nil
}

// ends returns where the partitions end, by topic; -1 for one that cannot be opened.
func (p *program) ends(all *engine.Contents) (map[string][]engine.Offset, error) {
	ends := map[string][]engine.Offset{}
	for _, t := range all.Topics {
		err := p.partitions(&t, func(_ int, log *disk.Log, err error) error {
			end := engine.Offset(-1)
			if err == nil {
				end = engine.Offset(log.Next())
			} else if !wrong(err) {
				return err
			}
			ends[t.Name] = append(ends[t.Name], end)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return ends, nil
}

// base returns a file's name without the directory.
func base(name string) string { return name[strings.LastIndexAny(name, `/\`)+1:] }

// stamp shows a time in ns since the Unix epoch.
func stamp(ns int64) string {
	if ns == 0 {
		return "-"
	}
	return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z")
}

// size shows a number of bytes.
func size(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	case n < 10<<30:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d GiB", n>>30)
}

func limit(n int64) string {
	if n <= 0 {
		return "-"
	}
	return size(n)
}

func age(d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	return d.String()
}

func policy(f engine.OnFull) string {
	switch f {
	case engine.Block:
		return "block"
	case engine.Reject:
		return "reject"
	case engine.DropOldest:
		return "drop oldest"
	}
	return fmt.Sprint(f)
}

func mode(m engine.Mode) string {
	switch m {
	case engine.AtLeastOnce:
		return "at least once"
	case engine.AtMostOnce:
		return "at most once"
	case engine.Manual:
		return "manual"
	}
	return fmt.Sprint(m)
}

// notDone returns why something was not done to the end.
func notDone(what string, err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("%s was not finished", what), err)
}
