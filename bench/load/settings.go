package load

import (
	"strconv"
	"strings"
	"time"
)

// Setting is one field of a scenario as text, by the name that it has in files and as a flag.
type Setting struct{ Name, Value string }

// Settings returns all fields of a scenario that apply to it: what is needed to run it again.
func (s Scenario) Settings() (list []Setting) {
	add := func(name, value string) { list = append(list, Setting{name, value}) }
	number := func(name string, v int) { add(name, strconv.Itoa(v)) }
	float := func(name string, v float64) { add(name, strconv.FormatFloat(v, 'g', -1, 64)) }
	span := func(name string, v time.Duration) { add(name, strings.Replace(v.String(), "\u00b5", "u", 1)) }
	text := func(name, v string) {
		if v != "" {
			add(name, v)
		}
	}
	text("scenario", s.Name)
	number("producers", s.Producers)
	number("partitions", s.Partitions)
	if s.Group.Kind == "" {
		number("readers", s.Readers)
		number("subscribers", s.Subscribers)
		number("stages", max(s.Stages, 1))
		number("replays", s.Replays)
		span("stop", s.Stop)
		text("wait", s.Wait)
		text("sync", s.Sync)
	}
	if s.Sizes.Most() > 0 {
		add("sizes", s.Sizes.String())
	} else {
		number("sizes", s.Size)
	}
	float("rate", s.Rate)
	add("arrival", s.Arrival.String())
	add("keys", s.Keys.String())
	text("publish", s.Publish)
	span("warmup", s.Warmup)
	span("duration", s.Duration)
	add("messages", strconv.FormatInt(s.Messages, 10))
	add("seed", strconv.FormatUint(s.Seed, 10))
	c := &s.Group
	if c.Kind == "" {
		return list
	}
	add("kind", string(c.Kind))
	number("members", c.Members)
	text("mode", string(c.Mode))
	text("ack", c.Ack)
	add("poll", strconv.FormatBool(c.Poll))
	number("concurrency", c.Concurrency)
	span("handler", c.Handler)
	float("fail", c.Fail)
	if c.Deliveries > 0 {
		number("deliveries", c.Deliveries)
	}
	if c.Backoff > 0 {
		span("backoff", c.Backoff)
	}
	if c.Hang {
		add("slow", "hang")
	} else {
		span("slow", c.Slow)
	}
	span("timeout", c.Timeout)
	span("churn", c.Churn)
	float("evict", c.Evict)
	return list
}

func (s Scenario) config() map[string]string {
	m := map[string]string{}
	for _, x := range s.Settings() {
		m[x.Name] = x.Value
	}
	return m
}
