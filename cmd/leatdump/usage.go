package main

import (
	"flag"
	"fmt"
	"io"
)

// usage teaches: all of it, or about one command.
func usage(w io.Writer, cmd *command) {
	if cmd != nil {
		fmt.Fprintf(w, "usage: leatdump %s [flags] %s\n\nIt %s.\n", cmd.name, cmd.args, cmd.about)
		list(w, cmd)
		fmt.Fprintln(w, "\nleatdump -h has examples and the exit codes")
		return
	}
	fmt.Fprint(w, `usage: leatdump COMMAND [flags] DIR [NAME]

Leatdump looks into the directory of an engine with durable topics (Config.Dir).

  leatdump topics data                               what is there?
  leatdump segments data orders                      in which files, and how large?
  leatdump records -partition 3 -from 100 -n 10 data orders
  leatdump records -since 15m -format json data orders | jq .value
  leatdump verify data                               is every byte as it was written?
  leatdump groups data billing                       how far is it, and how far behind?
  leatdump export -o orders.json data orders         for another machine, or to look at with other tools
  leatdump import -i orders.json elsewhere           offsets, timestamps and append times are kept

Commands:

`)
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-9s %-13s %s\n", c.name, c.args, c.about)
	}
	fmt.Fprint(w, "\nFlags, each of the commands that are named:\n")
	for _, c := range commands() {
		if len(c.flags) > 0 {
			fmt.Fprintf(w, "\n %s", c.name)
			list(w, &c)
		}
	}
	fmt.Fprint(w, `
All but import open for reading only: nothing is changed, no lock is taken, and the engine that has the directory may be running.
Then they show what it had written a moment ago. Import wants the directory for itself, and the topic must not be there.

A record as JSON has "partition", "offset", "appended", and what it has of "timestamp", "key", "value" and "headers". Bytes that are
not UTF-8 come as "keyBase64" and "valueBase64"; a value that is nil is not there, one that is empty is "".

Verify tells of three things. "mended": an index was damaged, and all records are there; the next open makes a new one. "torn end": what a
crash has left behind the last record that had been safe; the next open cuts it off. "DAMAGED": records that had been safe are
not as they were; an engine refuses such a topic, unless it is opened with Config.Salvage.

Exit code: 0 all is well, 1 it could not be done, 2 the arguments make no sense, 3 something is damaged.
`)
}

// list lists the flags of a command.
func list(w io.Writer, cmd *command) {
	fmt.Fprintln(w)
	var f flags
	f.set(cmd).VisitAll(func(x *flag.Flag) {
		arg, text := flag.UnquoteUsage(x)
		fmt.Fprintf(w, "  %-20s %s\n", "-"+x.Name+" "+arg, text)
	})
}
