package engine_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/check"
)

var (
	chaosSeed = flag.Uint64("chaos.seed", 0, "run the chaos of one seed only")
	chaosRuns = flag.Int("chaos.runs", 0, "how many seeds; 0 means a few")
	chaosSize = flag.Int("chaos.size", 0, "how many records each producer publishes; 0 means a few hundred")
	chaosWait = flag.Duration("chaos.wait", 2*time.Minute, "how long everything may take to be processed in the end")
	chaosDump = flag.String("chaos.dump", "", "a file for the history of a run in which something was found")
)

// TestChaos lets everything happen at once, at random: topics of all policies, consumers of all kinds, handlers that fail,
// panic, hang and publish, acknowledgements that come late, twice or not at all, members that come and go, seeks, resets,
// trims, growth, a topic that is deleted. All of it is written down and given to package check. Half of the runs end in a
// Drain, after which nothing may be missing; the others in a Close at some moment. A run is chosen by its seed:
//
//	go test ./engine -run TestChaos -chaos.seed 7
//	go test ./engine -run TestChaos -chaos.runs 1000 -chaos.size 5000 -timeout 2h
//
// The seed decides what is attempted; what comes of it depends on how goroutines are scheduled, too.
func TestChaos(t *testing.T) {
	if *chaosSeed != 0 {
		t.Log("struck:", runChaos(t, *chaosSeed))
		return
	}
	runs := *chaosRuns
	if runs == 0 {
		runs = max(rounds(40), 4)
	}
	var struck strikes
	more := func(seed int) bool { // on a machine that is busy otherwise little may happen in a run
		return seed < runs || runs >= 20 && seed < 4*runs && !t.Failed() && struck.missing()
	}
	for seed := 0; more(seed); seed++ {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) { struck.add(runChaos(t, uint64(seed+1))) })
	}
	t.Log("struck:", &struck)
	if runs >= 20 && !t.Failed() {
		for f := range numFaults {
			require.Positive(t, struck.n[f].Load(), "never struck: %v", f)
		}
	}
}

// chaosRun is one run.
type chaosRun struct {
	t    testing.TB
	seed uint64
	rec  *check.Recorder
	e    *engine.Engine
	size int

	handlers *check.Log // of all handlers
	notices  *check.Log // of callbacks and hooks
	control  *check.Log // of whoever makes trouble
	struck   strikes

	// What there is. Lists are complete before the first record is published.
	topics []*chaosTopic
	out    *chaosTopic // what handlers publish to
	dead   *engine.Topic
	graves *engine.Subscription
	subs   []*chaosSub
	groups []*chaosGroup
	names  sync.Map // of consumers, to *chaosConsumer

	quiet   atomic.Bool    // from now on everything succeeds, and nothing happens by itself
	unclear atomic.Bool    // it is not known under which of two ownerships something was delivered
	pending sync.WaitGroup // what is going to be written down by nobody that the run would wait for otherwise

	mu      sync.Mutex
	temps   []*chaosSub       // come and go
	given   map[deadKey]bool  // up: their last delivery has failed, and they should be in the dead-letter topic
	excused map[deadKey]bool  // by partition, with offset 0: somebody has set the position there
	buried  map[deadKey]int64 // what is in the dead-letter topic
}

// deadKey is a record that has been given up.
type deadKey struct {
	consumer, topic string
	partition       int
	offset          engine.Offset
}

// chaosTopic is a topic of a run.
type chaosTopic struct {
	*engine.Topic
	full    engine.OnFull
	trims   bool        // somebody truncates it, read or not
	deleted atomic.Bool // or about to be

	mu    sync.Mutex
	parts []check.Partition
}

// chaosPartitions is how many partitions a topic gets at the most.
const chaosPartitions = 6

// part returns the checker's name of a partition, which need not exist.
func (ct *chaosTopic) part(x *chaosRun, i int) check.Partition {
	ct.mu.Lock()
	defer ct.mu.Unlock()
	for len(ct.parts) <= i {
		ct.parts = append(ct.parts, x.rec.Partition(fmt.Sprintf("%s/%d", ct.Name(), len(ct.parts))))
	}
	return ct.parts[i]
}

func (x *chaosRun) topic(name string) *chaosTopic {
	for _, ct := range x.topics {
		if ct.Name() == name {
			return ct
		}
	}
	if x.out.Name() == name {
		return x.out
	}
	panic("no topic " + name)
}

// runChaos is one run, and returns what struck how often.
func runChaos(t testing.TB, seed uint64) *strikes {
	watchdog(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	x := &chaosRun{t: t, seed: seed, rec: check.NewRecorder(seed), given: map[deadKey]bool{}, excused: map[deadKey]bool{},
		buried: map[deadKey]int64{}}
	if x.size = *chaosSize; x.size == 0 {
		x.size = 300
	}
	x.handlers, x.notices, x.control = x.rec.SharedLog("handlers"), x.rec.SharedLog("notices"), x.rec.SharedLog("control")
	x.e = open(t, engine.Config{Workers: 4 + rng.IntN(4), Hooks: engine.Hooks{Dropped: x.dropped, MemberPutOut: x.putOut, MemberEnded: x.ended}})
	x.create(rng)

	var producers, others sync.WaitGroup
	for i := range 3 {
		producers.Go(func() { x.produce(rand.New(rand.NewPCG(seed, uint64(1+i)))) })
	}
	stop := make(chan struct{})
	for i := range 2 {
		others.Go(func() { x.trouble(rand.New(rand.NewPCG(seed, uint64(100+i))), stop) })
	}
	for i := range 2 {
		others.Go(func() { x.read(rand.New(rand.NewPCG(seed, uint64(200+i))), stop) })
	}
	drain := seed%2 == 1
	if drain {
		if rng.IntN(2) == 0 { // those that publish are refused from then on
			x.doze(rng, 40)
			x.strike(faultDrain)
			ctx, cancel := context.WithTimeout(background, time.Duration(rng.IntN(20))*time.Millisecond)
			_ = x.e.Drain(ctx)
			cancel()
		}
		producers.Wait()
		close(stop)
		others.Wait()
		x.settle()
	} else { // somewhere in the middle
		x.doze(rng, 50*x.size/300)
	}
	closing := x.control.Close()
	require.NoError(t, x.e.Close(), "seed %d", seed)
	closing.Ok()
	x.ends()
	if !drain {
		close(stop)
	}
	producers.Wait()
	others.Wait()
	x.pending.Wait()
	if !t.Failed() {
		x.check()
	}
	return &x.struck
}

// ends writes down what is left of each partition, so that what was dropped before somebody got to it, and could be told of it,
// is known to be.
func (x *chaosRun) ends() {
	for _, ct := range slices.Concat(x.topics, []*chaosTopic{x.out}) {
		for i := range ct.Partitions() {
			if p, err := ct.Partition(i); err == nil {
				x.low(ct, ct.part(x, i), p)
			}
		}
	}
}

// check looks for contradictions in what was written down.
func (x *chaosRun) check() {
	if x.unclear.Load() {
		x.t.Log("somebody has lost a partition twice before a handler began; there is no saying which time that was")
		return
	}
	h := x.rec.History()
	report := h.Check(check.Options{})
	if !report.Ok() && *chaosDump != "" {
		f, err := os.Create(fmt.Sprint(*chaosDump, x.seed))
		require.NoError(x.t, err)
		defer f.Close()
		require.NoError(x.t, h.Write(f))
	}
	report.Require(x.t)
}

// doze lets the others do something for a while of random length.
func (x *chaosRun) doze(rng *rand.Rand, most int) {
	for range rng.IntN(most + 1) {
		runtime.Gosched()
		time.Sleep(time.Duration(rng.IntN(200)) * time.Microsecond)
	}
}

// create makes topics, subscriptions and groups.
func (x *chaosRun) create(rng *rand.Rand) {
	x.bury(rng)
	x.out = &chaosTopic{Topic: create(x.t, x.e, "out", engine.TopicConfig{Partitions: 2,
		Retention: engine.Retention{MaxRecords: 50 + rng.Int64N(200)}, SegmentRecords: 1 + rng.IntN(8)})}
	n := 2
	if x.seed%4 < 2 {
		n = 3 // of which one is going to be deleted
	}
	for i := range n {
		c := engine.TopicConfig{Partitions: 1 + rng.IntN(3), OnFull: engine.OnFull(rng.IntN(3)), HandoverSlots: 4 << rng.IntN(6)}
		switch c.OnFull {
		case engine.DropOldest:
			c.Retention.MaxRecords = 20 + rng.Int64N(200)
			c.SegmentRecords = 1 + rng.IntN(8)
		case engine.Block:
			c.Retention.MaxRecords = 100 + rng.Int64N(200)
			c.SegmentRecords = 1 + rng.IntN(16)
		default:
			if c.SegmentBytes = 1 << (9 + rng.IntN(4)); rng.IntN(2) == 0 {
				c.Retention.MaxRecords = 100 + rng.Int64N(100)
			}
		}
		x.topics = append(x.topics, &chaosTopic{Topic: create(x.t, x.e, fmt.Sprint("t", i), c), full: c.OnFull,
			trims: c.OnFull == engine.DropOldest || rng.IntN(4) == 0})
	}
	for _, ct := range x.topics {
		x.subscribeAll(rng, ct)
	}
	x.subscribe(rng, x.out, "out", engine.AtLeastOnce, engine.SubscribeConfig{})
	x.groupAll(rng)
}

// settle ends a run in peace: everything is processed, and nothing is missing.
func (x *chaosRun) settle() {
	x.quiet.Store(true)
	log := x.rec.Log("settle")
	_ = x.graves.Resume()
	for _, s := range slices.Concat(x.subs, x.temps) {
		if !s.over() {
			require.NoError(x.t, s.sub.Resume())
		}
	}
	for _, g := range x.groups {
		g.ensure()
	}
	ctx, cancel := context.WithTimeout(background, *chaosWait)
	defer cancel()
	require.NoError(x.t, x.e.Drain(ctx), "seed %d", x.seed)
	for _, g := range x.groups { // of those that poll
		await(func() bool { s := g.Stats(); return s.Lag() == 0 || ctx.Err() != nil || x.t.Failed() })
	}
	for _, ct := range slices.Concat(x.topics, []*chaosTopic{x.out}) {
		if ct.deleted.Load() {
			continue
		}
		for i := range ct.Partitions() {
			p, cp := part(x.t, ct.Topic, i), ct.part(x, i)
			reading := log.Low(cp)
			first := p.First()
			reading.Is(first)
			poll := log.FinalPoll(cp, first)
			for off, r := range p.Records(first) {
				poll.Record(off, r.Value)
			}
			poll.Ok()
			log.Counter(check.Appended, check.AnyConsumer, cp).Is(p.Next())
			for _, s := range slices.Concat(x.subs, x.temps) {
				if s.topic == ct && !s.over() {
					s.settled(log, i, cp, p.Next())
				}
			}
			for _, g := range x.groups {
				if g.reads(ct) {
					g.settled(log, ct.Name(), i, cp, p.Next())
				}
			}
		}
	}
	x.exhume()
}
