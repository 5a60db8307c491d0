package engine_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/testkit"
)

// TestMain runs the child of TestDurable_Kill, or the tests.
func TestMain(m *testing.M) {
	if os.Getenv(victim) != "" {
		if err := beKilled(); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testkit.Main(m)
}

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

// What tests of several packages share; functions, not variables, so that a closure passed to one is not allocated.

func rounds(n int) int { return testkit.Rounds(n) }

func watchdog(t testing.TB) { testkit.Watchdog(t) }

func await(cond func() bool) { testkit.Await(cond) }

func bubble(t *testing.T, f func(t *testing.T)) { testkit.Bubble(t, f) }

func pass(d time.Duration) { testkit.Pass(d) }
