//go:build !explore

package atomicx

// A package that uses these types through the aliases, and does not import sync/atomic itself, gets the bodies of their
// methods from what the compiler wrote for this package, and that holds only the bodies that are called here. Without this
// function Bool.Load and others are calls, at three times the price (TestNormalBuild_CostsNothing).
var _ = func(u *Uint64, i *Int64, h *Uint32, b *Bool, m *Mutex) {
	u.Store(u.Load() + u.Add(1) + u.Swap(1) + u.And(1) + u.Or(1))
	u.CompareAndSwap(0, 1)
	i.Store(i.Load() + i.Add(1) + i.Swap(1) + i.And(1) + i.Or(1))
	i.CompareAndSwap(0, 1)
	h.Store(h.Load() + h.Add(1) + h.Swap(1) + h.And(1) + h.Or(1))
	h.CompareAndSwap(0, 1)
	b.Store(b.Load() && b.Swap(true) && b.CompareAndSwap(false, true))
	if m.TryLock() {
		m.Unlock()
	}
	m.Lock()
}
