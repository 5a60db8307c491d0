package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"time"

	"github.com/leatlog/leat/bench/load/export"
)

// Schema is the version of the JSON form of a Result. Fields may be added without a new version.
const Schema = 1

var (
	// ErrFaults is wrapped by [Result.Err] if messages were lost, duplicated, reordered or damaged.
	ErrFaults = errors.New("load: wrong deliveries")
	// ErrRateMissed is wrapped by [Result.Err] if the rate that was asked for was not reached.
	ErrRateMissed = errors.New("load: rate missed")
	// ErrUnfinished is wrapped by [Result.Err] if handlers did not get through what was sent, and the run was not interrupted.
	ErrUnfinished = errors.New("load: handlers did not finish")
)

// Result is what a run showed. Its JSON form is stable: see [Schema].
type Result struct {
	SchemaVersion int    `json:"schema"`
	Engine        string `json:"engine"`
	Scenario      string `json:"scenario"`
	Seed          uint64 `json:"seed"`

	// The scenario, as it was run.
	Producers   int `json:"producers"`
	Partitions  int `json:"partitions"`
	Readers     int `json:"readers"`
	Subscribers int `json:"subscribers"`
	// Size is the size of a message in bytes, or of the largest one; Sizes is what -sizes says. Arrival and Keys likewise.
	Size  int    `json:"size"`
	Sizes string `json:"sizes"`
	// SizeMean is the mean size.
	SizeMean float64 `json:"size_mean"`
	Rate     float64 `json:"rate"`
	Arrival  string  `json:"arrival"`
	Keys     string  `json:"keys"`
	Stages   int     `json:"stages"`
	Replays  int     `json:"replays"`
	StopS    float64 `json:"stop_s"`
	Publish  string  `json:"publish,omitempty"`
	Wait     string  `json:"wait,omitempty"`
	Sync     string  `json:"sync,omitempty"`
	WarmupS  float64 `json:"warmup_s"`
	// Config is the whole scenario, as Settings gives it: what is needed to run it again.
	Config map[string]string `json:"config"`

	// DurationS is how many seconds were measured: from the end of the warm-up until the last message had arrived.
	DurationS float64 `json:"duration_s"`
	// Interrupted says that the run was ended before its time.
	Interrupted bool `json:"interrupted"`

	// Sent counts the messages published in the whole run, Received their deliveries: right is Sent times the number of
	// readers and subscribers, and with a group at least Sent.
	Sent     uint64 `json:"sent"`
	Received uint64 `json:"received"`
	// Unfinished is how many deliveries, or with a group, messages were still to come or to be processed when the run waited no longer: it
	// was interrupted, or handlers would have taken too long. They are not lost.
	Unfinished uint64 `json:"unfinished"`
	Faults

	// RateMsgsPerS is how many messages a second went all the way: what the slowest reader or subscriber got, or, without
	// any, what was published.
	RateMsgsPerS float64 `json:"rate_msgs_per_s"`
	// PublishMsgsPerS is how many were published, up to the end of publishing.
	PublishMsgsPerS float64 `json:"publish_msgs_per_s"`
	// Scheduled is how many messages the schedule asked for in the whole run; Unsent of them were never sent, and Late only
	// after the run should have ended. All are 0 without a rate.
	Scheduled uint64 `json:"scheduled"`
	Unsent    uint64 `json:"unsent"`
	Late      uint64 `json:"late"`
	// RateHeld says that at least 99 % of what was scheduled was sent in time. True without a rate.
	RateHeld bool `json:"rate_held"`

	// Per message published, in the measured time, for the whole process, harness included. 0 if not known.
	CPUNsPerMsg  float64 `json:"cpu_ns_per_msg"`
	AllocsPerMsg float64 `json:"allocs_per_msg"`
	BytesPerMsg  float64 `json:"alloc_bytes_per_msg"`
	// Cores is how many processors were busy with the process, harness included, in the measured time.
	Cores float64 `json:"cores"`
	// GCs is how many collections ended in the measured time, and GCPauseNs how long they stopped the world. BlockedNs is how long
	// producers were not let in, all added up: Publish calls of 10 us and more.
	GCs       uint64 `json:"gcs"`
	GCPauseNs int64  `json:"gc_pause_ns"`
	BlockedNs int64  `json:"blocked_ns"`
	// HeapStart and HeapEnd are the size of all objects on the heap, dead ones included that were not swept yet.
	HeapStart uint64 `json:"heap_start_bytes"`
	HeapEnd   uint64 `json:"heap_end_bytes"`

	Latency struct {
		Publish Latency `json:"publish"`
		Delay   Latency `json:"delay"`
		E2E     Latency `json:"e2e"`
	} `json:"latency_ns"`
	// Disk is how long a bare loop took, before the run, for each write of a message and sync of the file; nil without Sync.
	Disk *Latency `json:"disk_sync_ns,omitempty"`
	// SampleEvery says that one message in so many was measured.
	SampleEvery int `json:"sample_every"`
	// Clamped is how many measured times were out of the histograms' range (or negative) and stand at its end.
	Clamped uint64 `json:"clamped"`

	// PlacementRTT is the mean of the two probes of Placement.
	PlacementRTT int64     `json:"placement_rtt_ns"`
	Placement    Placement `json:"placement"`

	Go         string `json:"go"`
	Platform   string `json:"platform"`
	CPU        string `json:"cpu,omitempty"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	CPUs       int    `json:"cpus"`
	Clock      string `json:"clock"`
	// GCPercent is what GOGC says, -1 for off, and MemLimit the soft memory limit in bytes, 0 for none. Pinned is which processors
	// the process may use, if it was told so, and Commit which version of the program it was, where that is known.
	GCPercent int64  `json:"gc_percent"`
	MemLimit  int64  `json:"mem_limit"`
	Pinned    string `json:"pinned,omitempty"`
	Commit    string `json:"commit,omitempty"`

	// Floor is what the generator does by itself; nil if that was not measured.
	Floor *Floor `json:"floor,omitempty"`
	// Backlog is how readers caught up that had stood still, and Replay what those did that read all again and again; nil without.
	Backlog *BacklogResult `json:"backlog,omitempty"`
	Replay  *ReplayResult  `json:"replay,omitempty"`

	// Group is what there is more to tell of a scenario with a group; nil without.
	Group *GroupResult `json:"group,omitempty"`

	// Steps are the parts of the run between which the rate of the schedule changes; none if it does not.
	Steps []Step `json:"steps,omitempty"`
	// Windows cuts the run into short times, warm-up included.
	Windows []export.Window `json:"windows"`
	// Lanes tells what each reader and subscriber got from each partition.
	Lanes []Lane `json:"lanes"`
	// Notes are warnings for whoever reads the figures.
	Notes []string `json:"notes,omitempty"`
}

// Step is a part of a run, from a time since its start on, in which the schedule has one rate.
type Step struct {
	FromS    float64 `json:"from_s"`
	MsgsPerS float64 `json:"msgs_per_s"`
}

// header returns what is known of a result before the run.
func (r *run) header(engine string, interrupted bool) Result {
	s := &r.s
	res := Result{
		SchemaVersion: Schema, Engine: engine, Scenario: s.Name, Seed: s.Seed,
		Producers: s.Producers, Partitions: s.Partitions, Readers: s.Readers, Subscribers: s.Subscribers,
		Size: s.Size, Sizes: s.Sizes.String(), SizeMean: s.Sizes.Mean(), Rate: s.Rate, Arrival: s.Arrival.String(), Keys: s.Keys.String(), Stages: s.Stages,
		Replays: s.Replays, StopS: s.Stop.Seconds(), Config: s.config(), Publish: s.Publish, Wait: s.Wait, Sync: s.Sync, WarmupS: s.Warmup.Seconds(),
		Interrupted: interrupted, SampleEvery: s.SampleEvery, RateHeld: true,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		GOMAXPROCS: runtime.GOMAXPROCS(0), CPUs: runtime.NumCPU(), Clock: r.clock.source(),
	}
	res.conditions()
	if s.Rate > 0 {
		res.SampleEvery = 1
		for _, x := range s.Arrival.Steps(s.Warmup + s.Duration) {
			res.Steps = append(res.Steps, Step{FromS: x.From.Seconds(), MsgsPerS: s.Rate * x.Share})
		}
	}
	if s.Group.Kind != "" {
		res.Group = s.Group.header()
	}
	return res
}

// result puts the figures together. Everybody has stopped.
func (r *run) result(engine string, ended int64, last mark, interrupted bool) Result {
	s := &r.s
	res := r.header(engine, interrupted)
	for _, p := range r.producers {
		res.Sent += p.total
		p.publish.finish(r.win.publish)
		p.delay.finish(r.win.delay)
	}
	for _, l := range r.lanes {
		l.rec.finish(r.win.e2e)
		lane, unfinished := l.close(func(producer int) uint64 { return r.producers[producer].seqs[l.partition] }, r.isCut)
		res.Unfinished += unfinished
		res.Received += lane.Received
		res.Faults.add(lane.Faults)
		res.Lanes = append(res.Lanes, lane)
	}
	r.survived(&res)
	if r.g != nil {
		r.g.result(&res, last)
	}
	if r.gate != nil {
		res.Backlog = r.gate.result()
	}
	r.replayResult(&res, ended-r.phases.start)
	r.closeWindow(last)
	if r.win.length > 0 {
		res.Windows = r.win.list
	}
	res.Latency.Publish, res.Latency.Delay, res.Latency.E2E = r.publish.full(), r.delay.full(), r.e2e.full()
	res.Clamped = r.publish.Clamped() + r.delay.Clamped() + r.e2e.Clamped()

	if s.Rate > 0 {
		for _, p := range r.producers {
			res.Scheduled += uint64(p.due)
			res.Late += uint64(p.late)
		}
		res.Unsent = res.Scheduled - min(res.Sent, res.Scheduled)
		res.RateHeld = float64(res.Unsent+res.Late) <= 0.01*float64(res.Scheduled)
	}
	res.Notes = r.notes
	if s.Consumers() == 0 && s.Replays == 0 {
		res.Notes = append(res.Notes, "nobody reads: only publishing was measured")
	}
	if s.Rate > 0 && res.Scheduled == 0 && !interrupted {
		res.Notes = append(res.Notes, "no message was due: nothing was measured, and no rate was held")
	}
	if note := s.tooSoon(); note != "" {
		res.Notes = append(res.Notes, note)
	}
	r.cutNote(&res)
	if !r.isWarm {
		res.Notes = append(res.Notes, "ended during the warm-up: nothing was measured")
		return res
	}
	r.rates(&res, ended, last)
	if d := r.clock.drift(); !r.clock.exact && last.at-r.warm.at > int64(time.Second) && math.Abs(d) > 1e-3 {
		res.Notes = append(res.Notes, fmt.Sprintf(
			"the time stamp counter moved %+.2f %% against the system's clock: times are off by as much", d*100))
	}
	if res.Clamped > 0 {
		res.Notes = append(res.Notes, fmt.Sprintf("%d times were negative or above %v and were counted at the end of the range",
			res.Clamped, time.Duration(highest).Round(time.Second)))
	}
	return res
}

// rates fills in what is counted per second and per message, over the measured time.
func (r *run) rates(res *Result, ended int64, last mark) {
	took := float64(last.at-r.warm.at) / 1e9
	if took <= 0 {
		return
	}
	res.DurationS = took
	if publishing := float64(ended-r.warm.at) / 1e9; publishing > 0 {
		res.PublishMsgsPerS = float64(last.sent-r.warm.sent) / publishing
	}
	res.RateMsgsPerS = float64(last.sent-r.warm.sent) / took
	for c, n := range last.accepted {
		rate := float64(n-r.warm.accepted[c]) / took
		if c == 0 || rate < res.RateMsgsPerS {
			res.RateMsgsPerS = rate
		}
	}
	res.Cores = float64(last.cpu-r.warm.cpu) / 1e9 / took
	res.GCs, res.GCPauseNs = uint64(last.gcs-r.warm.gcs), last.pauses-r.warm.pauses
	res.HeapStart, res.HeapEnd = r.warm.heap, last.heap
	res.BlockedNs = int64(last.blocked - r.warm.blocked)
	if n := float64(last.sent - r.warm.sent); n > 0 {
		res.CPUNsPerMsg = float64(last.cpu-r.warm.cpu) / n
		res.AllocsPerMsg = float64(last.allocs-r.warm.allocs) / n
		res.BytesPerMsg = float64(last.bytes-r.warm.bytes) / n
	}
}

func placementNotes(s Scenario, p Placement) []string {
	switch {
	case s.NoPlacement:
		return nil
	case p.Label == "unknown":
		return []string{"one processor only: producers and readers took turns"}
	case strings.Contains(p.Label, "busy"):
		return []string{"the machine was busy with something else: compare these figures with nothing"}
	case strings.Contains(p.Label, "->"):
		return []string{"the cores moved during the run (" + p.Label + "): compare these figures with nothing"}
	default:
		return nil
	}
}

// Err returns what is wrong with the run, wrapping ErrFaults, ErrRateMissed or ErrUnfinished, or nil.
func (r Result) Err() error {
	var errs []error
	if r.Faults.Any() {
		text := r.Faults.String()
		for _, l := range r.Lanes {
			if l.FirstFault != "" {
				text += fmt.Sprintf("; first at %s, partition %d: %s", l.Consumer, l.Partition, l.FirstFault)
				break
			}
		}
		errs = append(errs, fmt.Errorf("%w: %s", ErrFaults, text))
	}
	if !r.RateHeld {
		errs = append(errs, fmt.Errorf("%w: of %d scheduled messages %d were sent late and %d not at all",
			ErrRateMissed, r.Scheduled, r.Late, r.Unsent))
	}
	if r.Unfinished > 0 && !r.Interrupted {
		errs = append(errs, fmt.Errorf("%w: %s", ErrUnfinished, r.unfinished()))
	}
	return errors.Join(errs...)
}

// WriteJSON writes the result as indented JSON.
func (r Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
