package dispatch

// Limiter lets at most Max of the tasks that share it run at a time. A task that is over the limit waits in it, first come
// first served, and holds no worker. A task keeps its permit from the moment it is put on the run queue to the end of that
// run; then the permit goes to the task that has waited longest, and the one that ran, if it wants more, goes behind all
// that wait.
//
// So a limiter never has more than Max tasks on the run queue, however many are ready: a subscription with a thousand
// ready lanes and Max 2 takes two turns in each round of the queue, not a thousand.
type Limiter struct {
	// Immutable.
	pool *Pool
	max  int

	// Under pool.mu.
	held    int  // permits given out; below max only while nobody waits
	waiting list // tasks that wait for one, oldest first
}

// NewLimiter returns a limiter for tasks of this pool. It panics if max is below 1.
func (p *Pool) NewLimiter(max int) *Limiter {
	if max < 1 {
		panic("dispatch: a limiter must let at least one task run")
	}
	return &Limiter{pool: p, max: max}
}

// Max returns how many tasks may run at a time.
func (l *Limiter) Max() int { return l.max }

// Held returns how many permits are given out: tasks that run or are on the run queue. It is for statistics.
func (l *Limiter) Held() int {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.held
}

// Waiting returns how many tasks wait for a permit. It is for statistics.
func (l *Limiter) Waiting() int {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return l.waiting.n
}

// admit returns true if t now holds a permit; if not, t waits. The caller holds pool.mu. A nil limiter admits everybody.
func (l *Limiter) admit(t *Task) bool {
	switch {
	case l == nil:
		return true
	case l.held < l.max:
		l.held++
		return true
	default:
		l.waiting.push(t)
		return false
	}
}

// pass takes t's permit for another turn: if nobody waits t keeps it, else t goes behind those who wait and the first of
// them gets it. It returns whoever holds the permit now. The caller holds pool.mu.
func (l *Limiter) pass(t *Task) *Task {
	if l == nil || l.waiting.n == 0 {
		return t
	}
	l.waiting.push(t)
	return l.waiting.pop()
}

// release takes a permit back and returns the task that it went to, or nil if nobody waits. The caller holds pool.mu.
func (l *Limiter) release() *Task {
	if l == nil {
		return nil
	}
	if t := l.waiting.pop(); t != nil {
		return t
	}
	l.held--
	return nil
}
