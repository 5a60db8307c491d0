package partition

// Everything in this file is called by the holder of the role.

// The state of age retention.
type ageState uint8

const (
	ageUnset ageState = iota // no timer runs: there is nothing to expire
	ageTimed                 // the timer runs
	ageHeld                  // what has expired is held by a gate: late is registered
)

// expire drops what is older than MaxAge and sees to it that it is called for the next.
func (p *Partition) expire() {
	p.a.age = ageUnset
	dropped := false
	for p.expireOne() {
		dropped = true
	}
	if p.a.age == ageUnset {
		p.armAge()
	}
	if dropped {
		p.room.Broadcast()
	}
}

// expireOne drops the oldest segment if it is older than MaxAge and no gate holds it.
func (p *Partition) expireOne() bool {
	p.gateMu.Lock()
	defer p.gateMu.Unlock()
	s, ok := p.log.Oldest()
	if !ok || !p.cfg.Limits.Expired(s.NewestAppend, p.cfg.Clock.Now()) {
		return false
	}
	if p.held(s) {
		// It goes when the gate lets it: whoever moves a gate or takes it out does so first and then broadcasts room.
		p.room.Prepare(p.late)
		if p.held(s) {
			p.a.age = ageHeld
			return false
		}
		p.room.Cancel(p.late)
	}
	return p.drop(s)
}

// armAge sets the timer to when the oldest segment expires.
func (p *Partition) armAge() {
	s, ok := p.log.Oldest()
	if !ok {
		return
	}
	if d, ok := p.cfg.Limits.NextExpiry(s.NewestAppend, p.cfg.Clock.Now()); ok {
		p.a.age = ageTimed
		p.timer.Reset(d)
	}
}
