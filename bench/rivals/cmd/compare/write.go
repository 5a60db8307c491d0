package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/leatlog/leat/bench/rivals/arena"
	"github.com/leatlog/leat/bench/rivals/report"
)

// write writes what is to be kept.
func write(o *options, rep *report.Report, raw []arena.Outcome, stderr io.Writer) error {
	if o.raw != "" {
		err := file(o.raw, func(w io.Writer) error { return json.NewEncoder(w).Encode(raw) })
		if err != nil {
			return err
		}
	}
	if o.out == "" || len(rep.Lines) == 0 {
		return nil
	}
	name := o.name
	if name == "" {
		switch name = "compare"; {
		case o.targets:
			name = "targets"
		case o.floors:
			name = "floors"
		}
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	base := filepath.Join(o.out, fmt.Sprintf("%s-%s-%s-%dcpu", name, rep.Date, rep.Machine.Arch, rep.Machine.MaxProcs))
	for ext, write := range map[string]func(io.Writer) error{".json": rep.WriteJSON, ".svg": rep.WriteSVG, ".txt": rep.WriteTable} {
		if err := file(base+ext, write); err != nil {
			return err
		}
		fmt.Fprintln(stderr, "wrote", base+ext)
	}
	return nil
}

func file(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
