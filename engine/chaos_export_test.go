package engine

import "reflect"

// GenerationOf returns under which generation the consumer of an assigned group has the record that it polled, or 0 if it has
// lost it by now, and what tells this ownership from others.
func (c *Consumer) GenerationOf(m *Message) (generation uint64, runner any) {
	seat := reflect.ValueOf(m.Token()).Field(0).Pointer()
	c.g.mu.Lock()
	defer c.g.mu.Unlock()
	for x := range c.claims.all() {
		if x.seat != nil && reflect.ValueOf(x.seat).Pointer() == seat {
			return x.generation, seat
		}
	}
	return 0, seat
}
