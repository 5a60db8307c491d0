package due_test

import (
	"testing"

	"github.com/leatlog/leat/engine/internal/due"
	"github.com/leatlog/leat/internal/atomicx"
)

// BenchmarkAlarm measures setting one of a thousand alarms: to where it is, to and fro behind the others, and in front of
// all others, where the timer is set too.
func BenchmarkAlarm(b *testing.B) {
	run := func(name string, call func(x *due.Alarm, far int64, i int)) {
		b.Run("set="+name, func(b *testing.B) {
			b.ReportAllocs()
			clock := atomicx.NewClock()
			s := due.NewAlarms(&clock)
			defer s.Close()
			far := clock.Now() + int64(1e15)
			alarms := make([]due.Alarm, 1000)
			for i := range alarms {
				alarms[i].Init(s, func(int64) {})
				alarms[i].Set(far)
			}
			for i := 0; b.Loop(); i++ {
				call(&alarms[i%1000], far, i)
			}
		})
	}
	run("same", func(x *due.Alarm, far int64, _ int) { x.SetEarlier(far) })
	run("later", func(x *due.Alarm, far int64, i int) { x.Set(far + int64(i) + 1) })
	run("first", func(x *due.Alarm, far int64, i int) { x.Set(far - int64(i) - 1) })
}
