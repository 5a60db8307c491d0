package tool

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/slo"
	"github.com/leatlog/leat/bench/load/stream"
)

// field is a flag that changes a field of the scenario.
type field struct {
	kind fieldKind
	copy func(to, from *load.Scenario)
}

type fieldKind int

const (
	always     fieldKind = iota
	plainOnly            // for scenarios without a group
	groupsOnly           // for those with one
)

var fields = map[string]field{
	"producers":  {always, func(to, from *load.Scenario) { to.Producers = from.Producers }},
	"partitions": {always, func(to, from *load.Scenario) { to.Partitions = from.Partitions }},
	"size":       {always, func(to, from *load.Scenario) { to.Size, to.Sizes = from.Size, stream.Sizes{} }},
	"rate":       {always, func(to, from *load.Scenario) { to.Rate = from.Rate }},
	"publish":    {always, func(to, from *load.Scenario) { to.Publish = from.Publish }},
	"duration":   {always, func(to, from *load.Scenario) { to.Duration = from.Duration }},
	"warmup":     {always, func(to, from *load.Scenario) { to.Warmup = from.Warmup }},
	"seed":       {always, func(to, from *load.Scenario) { to.Seed = from.Seed }},
	"messages":   {always, func(to, from *load.Scenario) { to.Messages = from.Messages }},
	"arrival":    {always, func(to, from *load.Scenario) { to.Arrival = from.Arrival }},
	"sizes":      {always, func(to, from *load.Scenario) { to.Sizes, to.Size = from.Sizes, from.Sizes.Most() }},
	"keys":       {always, func(to, from *load.Scenario) { to.Keys = from.Keys }},

	"readers":     {plainOnly, func(to, from *load.Scenario) { to.Readers = from.Readers }},
	"subscribers": {plainOnly, func(to, from *load.Scenario) { to.Subscribers = from.Subscribers }},
	"sync":        {plainOnly, func(to, from *load.Scenario) { to.Sync = from.Sync }},
	"dir":         {plainOnly, func(to, from *load.Scenario) { to.Dir = from.Dir }},
	"wait":        {plainOnly, func(to, from *load.Scenario) { to.Wait = from.Wait }},

	"stages":  {plainOnly, func(to, from *load.Scenario) { to.Stages = from.Stages }},
	"replays": {plainOnly, func(to, from *load.Scenario) { to.Replays = from.Replays }},
	"stop":    {plainOnly, func(to, from *load.Scenario) { to.Stop = from.Stop }},

	"kind":        {groupsOnly, func(to, from *load.Scenario) { to.Group.Kind = from.Group.Kind }},
	"members":     {groupsOnly, func(to, from *load.Scenario) { to.Group.Members = from.Group.Members }},
	"mode":        {groupsOnly, func(to, from *load.Scenario) { to.Group.Mode = from.Group.Mode }},
	"ack":         {groupsOnly, func(to, from *load.Scenario) { to.Group.Ack = from.Group.Ack }},
	"poll":        {groupsOnly, func(to, from *load.Scenario) { to.Group.Poll = from.Group.Poll }},
	"concurrency": {groupsOnly, func(to, from *load.Scenario) { to.Group.Concurrency = from.Group.Concurrency }},
	"handler":     {groupsOnly, func(to, from *load.Scenario) { to.Group.Handler = from.Group.Handler }},
	"fail":        {groupsOnly, func(to, from *load.Scenario) { to.Group.Fail = from.Group.Fail }},
	"deliveries":  {groupsOnly, func(to, from *load.Scenario) { to.Group.Deliveries = from.Group.Deliveries }},
	"backoff":     {groupsOnly, func(to, from *load.Scenario) { to.Group.Backoff = from.Group.Backoff }},
	"timeout":     {groupsOnly, func(to, from *load.Scenario) { to.Group.Timeout = from.Group.Timeout }},
	"churn":       {groupsOnly, func(to, from *load.Scenario) { to.Group.Churn = from.Group.Churn }},
	"evict":       {groupsOnly, func(to, from *load.Scenario) { to.Group.Evict = from.Group.Evict }},
	"slow": {groupsOnly, func(to, from *load.Scenario) {
		to.Group.Slow, to.Group.Hang = from.Group.Slow, from.Group.Hang
	}},
}

// slowValue is a time, or hang.
type slowValue struct{ of *load.Group }

func (v slowValue) String() string {
	switch {
	case v.of == nil:
		return ""
	case v.of.Hang:
		return "hang"
	}
	return v.of.Slow.String()
}

// Set implements flag.Value.
func (v slowValue) Set(s string) error {
	if v.of.Hang = s == "hang"; v.of.Hang {
		v.of.Slow = 0
		return nil
	}
	d, err := time.ParseDuration(s)
	v.of.Slow = d
	return err
}

// rateValue is messages a second.
type rateValue struct{ to *float64 }

func (v rateValue) String() string {
	if v.to == nil {
		return ""
	}
	return strconv.FormatFloat(*v.to, 'g', -1, 64)
}

// Set implements flag.Value.
func (v rateValue) Set(text string) (err error) {
	*v.to, err = slo.Number(text)
	return err
}

// parsed is a value of a flag that a parser reads.
type parsed[T fmt.Stringer] struct {
	to    *T
	parse func(string) (T, error)
}

func (p parsed[T]) String() string {
	if p.to == nil {
		return ""
	}
	return (*p.to).String()
}

// Set implements flag.Value.
func (p parsed[T]) Set(text string) (err error) {
	v, err := p.parse(text)
	if err == nil {
		*p.to = v
	}
	return err
}

// newFlags returns an empty set of flags that leaves it to the caller to tell of errors.
func newFlags(name string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // an error that comes with all of the help is not found there
	return fs
}

// flagSet defines the flags.
func (o *options) flagSet(flags *load.Scenario, name, engine *string) *flag.FlagSet {
	fs := newFlags("leatload")
	fs.StringVar(name, "scenario", load.Scenarios()[0].Name, "`name` of the scenario to start from; the flags below change it")
	fs.StringVar(&o.file, "file", "", "read scenario and flags from this `file` of JSON: {\"scenario\": \"churn\", \"rate\": 20000}, or what -json has written")
	fs.StringVar(engine, "engine", o.engines[0].Name(), "what to load: "+strings.Join(o.engines.names(), ", "))
	fs.IntVar(&flags.Producers, "producers", 0, "how many goroutines publish")
	fs.IntVar(&flags.Partitions, "partitions", 0, "how many partitions they publish to, in turn")
	fs.IntVar(&flags.Readers, "readers", 0, "how many pull readers see every message")
	fs.IntVar(&flags.Subscribers, "subscribers", 0, "how many push subscribers see every message")
	fs.IntVar(&flags.Size, "size", 0, "`bytes` in a message")
	fs.Var(parsed[stream.Sizes]{&flags.Sizes, func(text string) (stream.Sizes, error) { return stream.ParseSizes(text, load.MinSize) }},
		"sizes", "the `form` of their sizes, if not all are alike: "+stream.SizeForms)
	fs.Var(rateValue{&flags.Rate}, "rate", "`messages` a second, all producers together")
	fs.Var(parsed[stream.Arrival]{&flags.Arrival, stream.ParseArrival}, "arrival",
		"the `form` in which messages come, with -rate: "+stream.ArrivalForms)
	fs.Var(parsed[stream.Keys]{&flags.Keys, stream.ParseKeys}, "keys",
		"the `form` of their keys, which choose the partition: "+stream.KeyForms)
	fs.StringVar(&flags.Publish, "publish", "", "`mode` in which leat publishes: async (default), sync, batch, appender, reserve")
	fs.StringVar(&flags.Wait, "wait", "", "`policy` by which leat's pull readers wait: park (default), yield, spin")
	fs.StringVar(&flags.Sync, "sync", "", "keep messages in files, `how` safe: always, never, or a time such as 10ms that may pass until a sync (leat only)")
	fs.StringVar(&flags.Dir, "dir", "", "`directory` for a directory with these files, which is removed at the end")
	fs.IntVar(&flags.Stages, "stages", 0, "how many topics messages go through, one after the other")
	fs.IntVar(&flags.Replays, "replays", 0, "how many more readers read all that is kept, again and again (leat only)")
	fs.DurationVar(&flags.Stop, "stop", 0, "for how long readers and subscribers stand still when measuring begins")
	fs.DurationVar(&flags.Duration, "duration", 0, "how long to measure")
	fs.DurationVar(&flags.Warmup, "warmup", 0, "how long to run before that")
	fs.Var(countValue{&flags.Messages}, "messages", "end after so many `messages`, warm-up included, if -duration is not over before")
	fs.Uint64Var(&flags.Seed, "seed", 0, "decides bytes, times, sizes, keys and what fails; same seed, same stream")
	fs.Var(parsed[slo.SLO]{&o.slo, slo.Parse}, "slo", "what the run is to meet, or else exit with 99, `objectives` as these: "+slo.Forms())
	fs.BoolVar(&o.floor, "floor", true, "measure what the generator does by itself, before the run")
	fs.BoolVar(&o.quiet, "q", false, "no view while it runs, only the result")
	o.out.flags(fs)
	o.process.flags(fs)

	g := &flags.Group
	fs.StringVar((*string)(&g.Kind), "kind", "", "how members share: assigned (partitions), shared (messages), broadcast (each sees all)")
	fs.IntVar(&g.Members, "members", 0, "how many members there are")
	fs.StringVar((*string)(&g.Mode), "mode", "", "when a message counts as processed: at-least-once (default), at-most-once, manual")
	fs.StringVar(&g.Ack, "ack", "", "`how` to acknowledge with -mode manual: each (default), batch (all of a batch or poll at once)")
	fs.BoolVar(&g.Poll, "poll", false, "members poll instead of being called")
	fs.IntVar(&g.Concurrency, "concurrency", 0, "how many handlers of one member may run at a time; 0: the engine's choice")
	fs.DurationVar(&g.Handler, "handler", 0, "`time` that a handler takes for each message: it sleeps, and below 200us computes")
	fs.Float64Var(&g.Fail, "fail", 0, "`share` of all deliveries that fail")
	fs.IntVar(&g.Deliveries, "deliveries", 0, "how often a message is delivered before it becomes a dead letter")
	fs.DurationVar(&g.Backoff, "backoff", 0, "how long after a failure a message is delivered again")
	fs.Var(slowValue{g}, "slow", "`time` that the first member takes in the second half of the measured time")
	fs.DurationVar(&g.Timeout, "timeout", 0, "after how long without progress a member loses what it has; 0: the engine's choice, 1s with -slow hang")
	fs.DurationVar(&g.Churn, "churn", 0, "after how long, again and again, one member joins and one leaves")
	fs.Float64Var(&g.Evict, "evict", 0, "`share` of those that leave by force")
	return fs
}

// parse reads the flags of a sub-command that makes runs. More adds its own, and help tells about all. What it returns an error for it
// has already told on stderr.
func (o *options) parse(args []string, stderr io.Writer, command string, more func(*flag.FlagSet),
	help func(io.Writer, *flag.FlagSet, engines)) error {
	var flags load.Scenario
	var name, engine string
	fs := o.flagSet(&flags, &name, &engine)
	if more != nil {
		more(fs)
	}
	withForms(fs)
	fail := func(format string, a ...any) error {
		return complain(stderr, command, fmt.Errorf(format, a...))
	}
	switch rest, err := setFlags(fs, args); {
	case errors.Is(err, flag.ErrHelp):
		help(stderr, fs, o.engines)
		return err
	case err != nil:
		return fail("%w", err)
	case len(rest) > 0:
		return fail("unexpected argument %q: flags come as -name value", rest[0])
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var file *filed
	if o.file != "" {
		var err error
		if file, err = o.applyFile(fs, given); err != nil {
			return fail("%w", err)
		}
	}
	err := o.settle(fs, &flags, name, engine, given)
	if err == nil && file != nil {
		err = o.checkOverridden(file)
	}
	if err != nil {
		return fail("%w", file.about(err))
	}
	return nil
}

// settle makes of the flags what they say all together, and checks it.
func (o *options) settle(fs *flag.FlagSet, flags *load.Scenario, name, engine string, given map[string]bool) (err error) {
	if o.target, o.scenario, err = o.choose(name, engine); err == nil {
		err = o.process.check()
	}
	if err == nil {
		err = o.out.check()
	}
	stops := false
	fs.Visit(func(f *flag.Flag) {
		stops = stops || f.Name == "stop"
		if err == nil {
			err = o.override(flags, f.Name)
		}
	})
	if err != nil {
		return err
	}
	if s := &o.scenario; !stops && s.Stop >= s.Duration {
		s.Stop = max(s.Duration/3, 0) // the scenario's own stop, in a shorter run
	}
	if o.prepare != nil {
		if err := o.prepare(given); err != nil {
			return err
		}
	}
	if o.scenario.Dir != "" && o.scenario.Sync == "" {
		return o.noFiles()
	}
	if err := o.check(); err != nil {
		return err
	}
	in := []fileOf{{"file", o.file}}
	for flag, form := range map[string]string{"keys": o.scenario.Keys.String(), "sizes": o.scenario.Sizes.String()} {
		if name, ok := strings.CutPrefix(form, "file:"); ok {
			in = append(in, fileOf{flag, name})
		}
	}
	return cmp.Or(o.askable(), distinct(in, slices.Concat(o.out.files(), o.process.files())))
}

// choose returns the target and the scenario of these names.
func (o *options) choose(scenario, engine string) (load.Target, load.Scenario, error) {
	t, ok := o.engines.named(engine)
	if !ok {
		return nil, load.Scenario{}, fmt.Errorf("-engine %q: must be one of %s", engine, strings.Join(o.engines.names(), ", "))
	}
	s, ok := load.ScenarioNamed(scenario)
	if !ok {
		return nil, load.Scenario{}, fmt.Errorf("-scenario %q: must be one of %s", scenario, strings.Join(scenarioNames(), ", "))
	}
	return t, s, nil
}

// check says what is wrong with the scenario, or why the target does not take it.
func (o *options) check() error {
	err := load.Check(o.target, o.scenario)
	if err == nil {
		return nil
	}
	err = plain(err, *o)
	if rest, ok := strings.CutPrefix(err.Error(), "-rate "); ok && o.prepare != nil {
		err = errors.New("-from " + rest) // the first rate of a search
	}
	return err
}

// noFiles says what must be added to -dir, so that there are files to put there.
func (o *options) noFiles() error {
	add := "-sync always, -sync never or a time such as -sync 10ms"
	if _, ok := o.target.(load.DurableTarget); !ok {
		names := o.engines.withFiles()
		if names == nil {
			return fmt.Errorf("-dir %q: must be left out: no engine here keeps messages in files", o.scenario.Dir)
		}
		add += ", and -engine " + strings.Join(names, ", ") + ", since " + o.target.Name() + " keeps nothing in files"
	}
	return fmt.Errorf("-dir %q: without -sync scenario %s keeps nothing in files: must be left out, or go with %s", o.scenario.Dir, o.scenario.Name, add)
}

// askable says which objective is about something that the run does not measure.
func (o *options) askable() error {
	has := o.scenario.Figures()
	for _, x := range o.slo {
		if !slices.Contains(has, x.Metric.Name) {
			return fmt.Errorf("-slo %q: this run has no %s%s; it must be about %s", x, x.Metric.Name, without(x.Metric.Name), strings.Join(has, ", "))
		}
	}
	return nil
}

// without says what a run lacks that has no such figure.
func without(name string) string {
	switch name {
	case "delay", "late", "unsent":
		return ", which needs -rate"
	case "done", "overlapped", "miscounted", "uncommitted":
		return ", which is of scenarios with a group"
	}
	return ", since nobody reads"
}

// complain tells of an error in a line, and in another one where to look.
func complain(stderr io.Writer, command string, err error) error {
	where := "leatload -h lists the flags and scenarios"
	if command != "run" {
		where = "leatload " + command + " -h says how it is used"
	}
	fmt.Fprintf(stderr, "leatload: %v\n%s\n", err, where)
	return err
}

// override takes over the field of a flag that was given.
func (o *options) override(from *load.Scenario, name string) error {
	x, ok := fields[name]
	if !ok {
		return nil
	}
	group := o.scenario.Group.Kind != ""
	switch {
	case x.kind == plainOnly && group:
		return fmt.Errorf("-%s is not for scenarios with a group, such as %s: they have -members, and -poll", name, o.scenario.Name)
	case x.kind == groupsOnly && !group:
		return fmt.Errorf("-%s is for scenarios with a group: -scenario %s", name, strings.Join(groupNames(), ", "))
	case name == "deliveries" && from.Group.Deliveries == 0, name == "backoff" && from.Group.Backoff == 0,
		name == "size" && from.Size == 0, name == "stages" && from.Stages == 0: // where 0 means the default
		return fmt.Errorf("-%s is 0: must be %s", name, forms[name])
	}
	x.copy(&o.scenario, from)
	return nil
}

// plain returns an error about the scenario in the words of the flags.
func plain(err error, o options) error {
	if errors.Is(err, load.ErrNoGroups) {
		who := "no engine here has any"
		if names := o.engines.withGroups(); names != nil {
			who = "-engine " + strings.Join(names, ", ") + " has"
		}
		return fmt.Errorf("-engine %s has no consumer groups, and -scenario %s needs them: %s", o.target.Name(), o.scenario.Name, who)
	}
	if errors.Is(err, load.ErrNoFiles) {
		who := "no engine here does"
		if names := o.engines.withFiles(); names != nil {
			who = "-engine " + strings.Join(names, ", ") + " does"
		}
		return fmt.Errorf("-engine %s keeps nothing in files, and -sync asks for that: %s", o.target.Name(), who)
	}
	text := err.Error()
	for _, prefix := range []error{load.ErrScenario, load.ErrTarget, load.ErrUnsupported} {
		text = strings.TrimPrefix(text, prefix.Error()+": ")
	}
	return errors.New("-" + text)
}

func scenarioNames() []string {
	var names []string
	for _, s := range append(load.Scenarios(), load.DurableScenarios()...) {
		names = append(names, s.Name)
	}
	return append(names, groupNames()...)
}

func groupNames() []string {
	var names []string
	for _, s := range load.GroupScenarios() {
		names = append(names, s.Name)
	}
	return names
}

// groupFlags are the flags that only scenarios with a group have, in the order of their names.
func groupFlags() []string {
	var names []string
	for n, f := range fields {
		if f.kind == groupsOnly {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}
