package main

import (
	"fmt"

	"github.com/leatlog/leat/segment/disk"
)

// verify reads everything.
func (p *program) verify() error {
	topics, err := p.selected()
	if err != nil {
		return err
	}
	total := int64(0)
	for _, t := range topics {
		err := p.partitions(&t, func(_ int, log *disk.Log, err error) error {
			if err == nil {
				for _, f := range log.Files() {
					total += f.Bytes
				}
			}
			return nil // told below
		})
		if err != nil {
			return err
		}
	}
	bar := p.newBar("verify", total)
	defer bar.done()
	damaged := 0
	tell := func(format string, args ...any) {
		bar.clear()
		fmt.Fprintf(p.out, format+"\n", args...)
		_ = p.out.Flush() // it says so again at the end
	}
	var all disk.Verified
	for _, t := range topics {
		if t.Err != nil {
			damaged++
			tell("%s, positions of subscriptions: DAMAGED: %v", t.Name, t.Err)
		}
		err := p.partitions(&t, func(i int, log *disk.Log, err error) error {
			if err != nil {
				if !wrong(err) {
					return err
				}
				damaged++
				tell("%s, partition %d: DAMAGED: %v", t.Name, i, err)
				return nil
			}
			v, err := log.Verify(bar.add)
			if err != nil {
				return err
			}
			all.Files += v.Files
			all.Records += v.Records
			all.Bytes += v.Bytes
			state := "sound"
			if len(v.Damage) > 0 {
				state = "DAMAGED"
			}
			tell("%s, partition %d: offsets [%d, %d), %d records in %d files, %s: %s", t.Name, i, log.First(), log.Next(), v.Records,
				v.Files, size(v.Bytes), state)
			for _, d := range v.Damage {
				damaged++
				tell("  DAMAGED: %v", d)
			}
			for _, name := range log.Recovery().Mended {
				tell("  mended: %s: the index was damaged, all records are there", name)
			}
			if cut := log.Recovery().Cut; cut != nil {
				tell("  torn end: %s: %d bytes from %d on (%v), or somebody is writing them", cut.File, cut.Bytes, cut.Pos, cut.Err)
			}
			return nil
		})
		if err != nil {
			return notDone("verify", err)
		}
	}
	if p.name == "" {
		contents, err := p.inspect()
		if err != nil {
			return err
		}
		for _, g := range contents.Groups {
			if g.Err != nil {
				damaged++
				tell("group %s: DAMAGED: %v", g.Name, g.Err)
			}
		}
	}
	bar.done()
	fmt.Fprintf(p.out, "%d records in %d files, %s: ", all.Records, all.Files, size(all.Bytes))
	if damaged > 0 {
		fmt.Fprintf(p.out, "%d places DAMAGED\n", damaged)
		return errDamaged
	}
	fmt.Fprintln(p.out, "all is sound")
	return nil
}
