// Package tool is the program leatload, for whichever targets it is given: sub-commands, flags, files and exit codes. Command
// leatload runs it with Leat and two rivals, the command of the same name in bench/rivals with many more of them, and a program
// of a few lines with a queue of your own:
//
//	func main() { tool.Main(mine{}) }
//
// where mine is a [load.Target]; then its -engine knows mine, and every scenario, flag, file, report, comparison and search is there.
package tool

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/leatlog/leat/bench/load"
)

// Main is all of the program: it loads one of these targets, the first one by default, as the process's arguments say, ends cleanly at
// Ctrl-C, and when its terminal goes, and exits with the code that says what came of it. It does not return. Without a target it panics.
func Main(targets ...load.Target) {
	signals, left := make(chan os.Signal, 2), &leftovers{}
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	signal.Notify(signals, ends...)
	keepPipes()
	left.unread = func(again func()) {
		left.remove()
		loosePipes()
		again()
		os.Exit(exitFailed)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		<-signals
		stop()
		again := <-signals
		signal.Reset(ends...) // a third one kills at once
		left.remove()
		if p, err := os.FindProcess(os.Getpid()); err == nil && p.Signal(again) == nil {
			time.Sleep(time.Second) // it comes before that
		}
		os.Exit(exitFailed)
	}()
	os.Exit(run(ctx, left, targets, os.Args[1:], os.Stdout, os.Stderr))
}

// leftovers removes what a run has made and would leave behind if the process were killed.
type leftovers struct {
	mu   sync.Mutex
	undo func() // nil: there is nothing

	// unread, if not nil, ends the process, for which there is nothing left to do: nobody reads what it writes to standard output or
	// standard error, as with | head. It ends as that ends any program, by the write that again makes.
	unread func(again func())
}

func (l *leftovers) set(undo func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.undo = undo
}

// end does so at the end of the run; whoever would kill the process meanwhile waits for that.
func (l *leftovers) end(undo func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	undo()
	l.undo = nil
}

// remove does it while the run goes on, which does not get to its end any more, whatever it fails with: that needs the lock.
func (l *leftovers) remove() {
	l.mu.Lock()
	if l.undo != nil {
		l.undo()
	}
}

// engines are the targets to choose from, the default first.
type engines []load.Target

func (e engines) names() []string {
	var names []string
	for _, t := range e {
		names = append(names, t.Name())
	}
	return names
}

func (e engines) named(name string) (load.Target, bool) {
	i := slices.IndexFunc(e, func(t load.Target) bool { return t.Name() == name })
	if i < 0 {
		return nil, false
	}
	return e[i], true
}

// withGroups returns the names of those that have consumer groups, and withFiles of those that can keep messages in files.
func (e engines) withGroups() []string { return namesOf[load.GroupTarget](e) }
func (e engines) withFiles() []string  { return namesOf[load.DurableTarget](e) }

// namesOf returns the names of those that are a T, too.
func namesOf[T load.Target](e engines) []string {
	var of engines
	for _, t := range e {
		if _, ok := t.(T); ok {
			of = append(of, t)
		}
	}
	return of.names()
}
