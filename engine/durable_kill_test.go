package engine_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/testkit"
)

var kills = flag.Int("kills", 15, "how often TestDurable_Kill kills its child")

// victim is the environment variable that makes the test program the child of TestDurable_Kill. It says which life it is.
const victim = "LEAT_ENGINE_VICTIM"

// killed are the topics of the child, by policy.
var killed = map[string]engine.Sync{"always": engine.Always, "interval": engine.Interval(time.Millisecond), "never": engine.Never}

// beKilled publishes to each topic from several goroutines, consumes in a group, and says what was acknowledged, until it is killed.
func beKilled() error {
	e, err := engine.Open(engine.Config{Dir: dir, PositionsEvery: time.Millisecond})
	if err != nil {
		return err
	}
	life := os.Getenv(victim)
	failed := make(chan error, 100)
	for name, s := range killed {
		top, err := e.Topic(name)
		if errors.Is(err, engine.ErrUnknownTopic) {
			top, err = e.CreateTopic(name, engine.TopicConfig{Partitions: 2, Retention: engine.Retention{MaxRecords: 1000}, OnFull: engine.DropOldest,
				Durable: &engine.Durable{Sync: s, FileBytes: 64 << 10}})
		}
		if err != nil {
			return err
		}
		for i := range 3 {
			go func() {
				for n := 0; ; n++ {
					v := fmt.Sprintf("%s-%d-%d", life, i, n)
					at, err := top.Publish(background, engine.Record{Key: []byte(v), Value: []byte(v)})
					if err != nil {
						failed <- err
						return
					}
					fmt.Println("acked", name, at.Partition, at.Offset, v) // one write
				}
			}()
		}
		g, err := e.Group(name)
		if errors.Is(err, engine.ErrUnknownGroup) {
			g, err = e.CreateGroup(name, engine.GroupConfig{Topics: []string{name}, Start: engine.Earliest()})
		}
		if err != nil {
			return err
		}
		c, err := g.Consumer(engine.MemberConfig{})
		if err != nil {
			return err
		}
		go func() {
			for {
				ms, err := c.Poll(background, 10)
				if err == nil {
					last := ms[len(ms)-1]
					if err = c.CommitSync(background); err == nil {
						fmt.Println("committed", name, last.Partition, last.Offset+1, "-")
					}
				}
				if err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

// TestDurable_Kill kills a process at moments that have nothing to do with what it is doing. What was acknowledged survives the end
// of the process, whatever the policy.
func TestDurable_Kill(t *testing.T) {
	step := testkit.Steps(t)
	self, err := os.Executable()
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	acked := map[string]map[engine.Published]string{"always": {}, "interval": {}, "never": {}}
	floors := map[string]*[2]engine.Offset{"always": {}, "interval": {}, "never": {}}
	total := 0
	for life := range rounds(*kills) {
		step()
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), fmt.Sprint(victim, "=", life))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		hear := func() bool {
			if !lines.Scan() {
				return false
			}
			var what, topic, value string
			var at engine.Published
			if _, err := fmt.Sscan(lines.Text(), &what, &topic, &at.Partition, &at.Offset, &value); err != nil {
				require.False(t, strings.HasPrefix(lines.Text(), "error"), lines.Text())
				return true // the last line may be torn
			}
			switch what {
			case "acked":
				acked[topic][at] = value
				total++
			case "committed":
				floors[topic][at.Partition] = max(floors[topic][at.Partition], at.Offset)
			}
			return true
		}
		require.True(t, hear(), "it does something")
		for range rand.IntN(100) {
			if !hear() {
				break
			}
		}
		require.NoError(t, cmd.Process.Kill())
		for hear() { // what it has still said counts
		}
		_ = cmd.Wait()
		// The next child opens it in any case. Now and then somebody else does so before, and closes it.
		requireSurvived(t, engine.Config{Dir: dir, ReadOnly: life%8 != 0}, acked, floors)
	}
	require.Positive(t, total)
	t.Log(total, "records acknowledged")
}

// requireSurvived opens what the child has left, as another process would.
func requireSurvived(t *testing.T, c engine.Config, acked map[string]map[engine.Published]string, floors map[string]*[2]engine.Offset) {
	t.Helper()
	e, err := engine.Open(c)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	for name := range killed {
		top, err := e.Topic(name)
		if len(acked[name]) == 0 && errors.Is(err, engine.ErrUnknownTopic) {
			continue
		}
		require.NoError(t, err)
		for i := range 2 {
			p := part(t, top, i)
			first := p.First()
			at := first
			for off, r := range p.Records(first) {
				require.Equal(t, at, off)
				at++
				if v, ok := acked[name][engine.Published{Partition: i, Offset: off}]; ok {
					require.Equal(t, v, string(r.Value))
				}
			}
			require.Equal(t, p.Next(), at)
			require.Equal(t, p.Next(), p.Durable())
			for want := range acked[name] {
				if want.Partition == i {
					require.Less(t, want.Offset, p.Next(), "acknowledged and lost")
					if want.Offset < first {
						delete(acked[name], want) // retention
					}
				}
			}
			if g, err := e.Group(name); err == nil || floors[name][i] > 0 {
				require.NoError(t, err)
				off := committed(t, g, name, i)
				require.GreaterOrEqual(t, off, floors[name][i])
				require.LessOrEqual(t, off, p.Next())
			}
		}
	}
	require.NoError(t, e.CloseContext(background))
}
