package load

import (
	"runtime/debug"
	"runtime/metrics"
)

// usage is what the process has used up to a moment.
type usage struct {
	at     int64 // on the run's clock
	cpu    int64 // ns
	allocs uint64
	bytes  uint64
	gcs    int64
	pauses int64  // ns, of all collections
	heap   uint64 // bytes of objects, dead ones included that were not swept yet
}

// usageNow takes the figures without stopping the world.
func usageNow(c *Clock) usage {
	s := []metrics.Sample{
		{Name: "/gc/heap/allocs:objects"},
		{Name: "/gc/heap/tiny/allocs:objects"},
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
	}
	metrics.Read(s)
	value := func(i int) uint64 {
		if s[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return s[i].Value.Uint64()
	}
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	return usage{
		at: c.Now(), cpu: CPUTime(), allocs: value(0) + value(1), bytes: value(2), gcs: gc.NumGC, pauses: int64(gc.PauseTotal), heap: value(3),
	}
}
