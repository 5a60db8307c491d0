package delivery_test

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/internal/atomicx"
)

// keyedLane is a Keyed under test with what it has told.
type keyedLane struct {
	*delivery.Keyed
	told
	part *part
}

// newKeyed returns a Keyed that has not been started; it is stopped, and checked to have ended, when the test ends. Unless c says
// otherwise four handlers run at a time. start says where it begins; nil means at 0.
func newKeyed(t testing.TB, p *part, c delivery.Config, start delivery.Start) *keyedLane {
	t.Helper()
	return newKeyedOpt(t, p, c, start, dispatch.Options{}, &partition.Gate{Name: "keyed", Gating: true})
}

func newKeyedOpt(t testing.TB, p *part, c delivery.Config, start delivery.Start, opt dispatch.Options, gate *partition.Gate) *keyedLane {
	t.Helper()
	k := &keyedLane{part: p}
	k.prepare(p, &c)
	if c.Parallel == 0 {
		c.Parallel = 4
	}
	if start == nil {
		start = at(0)
	}
	var err error
	k.Keyed, err = delivery.NewKeyed(k.ctx, &c, p.Partition, gate, p.workers, opt, start)
	require.NoError(t, err)
	t.Cleanup(func() {
		k.Stop(errOver)
		k.Start()
		<-k.ended
		k.cancel()
		k.once(t)
		await(p.idle)
		k.once(t)
	})
	return k
}

// runKeyed is newKeyed with a handler, started.
func runKeyed(t testing.TB, p *part, h Handler) *keyedLane {
	t.Helper()
	k := newKeyed(t, p, each(h), nil)
	k.Start()
	return k
}

// publishKeys publishes a record for each key, whose value is its offset. An empty key makes a record without one.
func (p *part) publishKeys(t testing.TB, keys ...string) {
	t.Helper()
	for _, key := range keys {
		r := value(p.next())
		if key != "" {
			r.Key = []byte(key)
		}
		_, err := p.Publish(background, r)
		require.NoError(t, err)
	}
}

// keys returns n keys: k0, k1, ... of m.
func keys(n, m int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("k%d", i%m))
	}
	return all
}

// keyBook is what handlers have been given, by key. It complains if two handlers have the same key at a time, or a record is
// not what was published.
type keyBook struct {
	t  testing.TB
	mu sync.Mutex
	in map[string]int64 // offsets that are in handlers
	of map[string][]entry
}

func newKeyBook(t testing.TB) *keyBook {
	return &keyBook{t: t, in: map[string]int64{}, of: map[string][]entry{}}
}

// enter is to be called at the beginning of a handler, and what it returns at its end.
func (b *keyBook) enter(m *Message) (leave func()) {
	key := string(m.Key)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(m.Value) != 8 || binary.LittleEndian.Uint64(m.Value) != uint64(m.Offset) {
		b.t.Errorf("offset %d has value %v", m.Offset, m.Value)
	}
	if m.Key != nil {
		if at, ok := b.in[key]; ok {
			b.t.Errorf("key %q: %d is delivered while %d is", key, m.Offset, at)
		}
		b.in[key] = m.Offset
	}
	b.of[key] = append(b.of[key], entry{m.Offset, m.Attempt})
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.in, key)
	}
}

func (b *keyBook) entries(key string) []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]entry(nil), b.of[key]...)
}

func (b *keyBook) len() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.of {
		n += len(e)
	}
	return n
}

// restWaiter waits until a lane rests, as Drain does.
type restWaiter struct {
	k *keyedLane
	w *atomicx.Waiter
}

func newRestWaiter(k *keyedLane) *restWaiter { return &restWaiter{k, atomicx.NewWaiter()} }

// wait returns when the lane is drained. If nobody tells it that it is, it hangs.
func (r *restWaiter) wait() {
	for {
		r.k.rested.Prepare(r.w)
		if r.k.Drained() {
			r.k.rested.Cancel(r.w)
			return
		}
		r.k.rested.Wait(r.w, nil)
	}
}
