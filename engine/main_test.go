package engine_test

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/leatlog/leat/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var background = context.Background()

// open returns an engine that is closed when the test ends.
func open(t testing.TB, c engine.Config) *engine.Engine {
	t.Helper()
	e, err := engine.Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// newTopic returns a topic of an engine of its own.
func newTopic(t testing.TB, c engine.TopicConfig) *engine.Topic {
	t.Helper()
	topic, err := open(t, engine.Config{}).CreateTopic("topic", c)
	require.NoError(t, err)
	return topic
}

// part returns a partition of a topic.
func part(t testing.TB, topic *engine.Topic, i int) *engine.Partition {
	t.Helper()
	p, err := topic.Partition(i)
	require.NoError(t, err)
	return p
}

// newPartition returns the only partition of a topic of an engine of its own.
func newPartition(t testing.TB, c engine.TopicConfig) *engine.Partition {
	t.Helper()
	return part(t, newTopic(t, c), 0)
}

// value returns a record with that value.
func value(v string) engine.Record { return engine.Record{Value: []byte(v)} }

// rounds returns n, or a twentieth of it in a short run.
func rounds(n int) int {
	if testing.Short() {
		return max(n/20, 1)
	}
	return n
}

// watchdog ends the program with the stacks of all goroutines if the test takes much longer than it should: what hangs has
// failed.
func watchdog(t testing.TB) {
	t.Helper()
	timer := time.AfterFunc(30*time.Second, func() {
		debug.SetTraceback("all")
		panic(t.Name() + ": the watchdog barked")
	})
	t.Cleanup(func() { timer.Stop() })
}

// await lets others run until cond holds. A watchdog ends it if that never comes.
func await(cond func() bool) {
	for turn := 0; !cond(); turn++ {
		if turn < 100 {
			runtime.Gosched()
		} else {
			time.Sleep(50 * time.Microsecond) // to leave the processor to what we wait for; nothing depends on it
		}
	}
}
