package load

import (
	"fmt"
	"math"
)

// Warnings says what whoever starts the run should know: that handlers hold producers up, or will not be through in time.
func (s Scenario) Warnings() (list []string) {
	s, err := s.withDefaults()
	if err != nil || s.Group.Kind == "" {
		return nil
	}
	c := &s.Group
	can := c.capacity(&s)
	switch {
	case math.IsInf(can, 1):
	case can*s.Duration.Seconds() < 1:
		list = append(list, fmt.Sprintf("handlers that take %v, and wait %v after a failure, can do %.3g messages a second: not one in the %v that are measured",
			c.Handler, c.Backoff, can, s.Duration))
	case s.Rate == 0 && c.Fail > 0:
		list = append(list, fmt.Sprintf("handlers that take %v, fail %v of the time and wait %v then can do %s messages a second: producers wait for them",
			c.Handler, c.Fail, c.Backoff, FormatRate(can)))
	case s.Rate == 0:
		list = append(list, fmt.Sprintf("handlers that take %v can do %s messages a second: producers wait for them", c.Handler, FormatRate(can)))
	}
	if most := s.drainMost(); c.Handler > most || c.Fail > 0 && c.Backoff > most {
		list = append(list, fmt.Sprintf("the run waits for at most %v for handlers to get through at the end: what is left then is unfinished", most))
	}
	if can, due := c.slowCan(&s); can < due {
		list = append(list, fmt.Sprintf("the slow member can do %s of its %s messages a second in the last %v: what is left waits until that is over",
			FormatRate(can), FormatRate(due), s.Duration/2))
	}
	return list
}

// slowCan returns how many messages a second the slow member can do while it is slow, and how many come for it.
func (c *Group) slowCan(s *Scenario) (can, due float64) {
	lanes := float64(s.Partitions)
	switch {
	case c.Slow == 0 || c.Kind == Shared: // there, the others take more
		return 0, 0
	case c.Kind == Assigned:
		lanes = math.Ceil(lanes / float64(c.Members))
	}
	due = s.Rate * lanes / float64(s.Partitions)
	if c.Poll {
		lanes = 1
	}
	return lanes / c.Slow.Seconds(), due
}
