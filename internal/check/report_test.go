package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leatlog/leat/internal/check"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stopped is a test that may be failed.
type stopped struct {
	helped bool
	text   string
}

func (s *stopped) Helper()                           { s.helped = true }
func (s *stopped) Fatalf(format string, args ...any) { s.text = fmt.Sprintf(format, args...) }

// TestReport: it says what is wrong, shows what happened around it, and names the seed.
func TestReport(t *testing.T) {
	s := newScene()
	for off := range int64(40) {
		s.send(off)
		s.log.Low(s.q).Is(0) // of another partition: not shown
	}
	var offs []int64
	for off := range int64(40) {
		if off != 17 {
			offs = append(offs, off)
		}
	}
	for _, off := range offs {
		s.handle(s.subscriber(s.sub), off)
	}
	r := s.check()
	require.Equal(t, []check.Anomaly{check.LostWrite, check.PollSkip}, r.Anomalies())
	require.Len(t, r.Findings, 2)
	for _, f := range r.Findings {
		assert.Equal(t, []int{96, 97}, f.Ops[len(f.Ops)-2:])
	}
	text := r.String()
	assert.Contains(t, text, "seed 7: 119 operations\n1 x A-6 lost-write\n1 x A-13 poll-skip\n")
	assert.Contains(t, text, "A-13 poll-skip: record 18 came, at position [17]\n")
	assert.Contains(t, text, "\n > #97 [195ns, 196ns] test: handle ok sub orders/0 18=p1:18\n")
	assert.Contains(t, text, "\n   #87 [")
	assert.Contains(t, text, "\n   #107 [")
	assert.NotContains(t, text, "#108 ")
	assert.NotContains(t, text, "orders/1")
	assert.True(t, strings.HasSuffix(text, "\nseed 7\n"))

	var tb stopped
	r.Require(&tb)
	assert.True(t, tb.helped)
	assert.Contains(t, tb.text, "lost-write")
	tb = stopped{}
	newScene().check().Require(&tb)
	assert.Empty(t, tb.text)
}

// TestReport_Limit: of what happens often only the first is told, and all is counted.
func TestReport_Limit(t *testing.T) {
	s := newScene()
	s.send(0)
	for range 30 {
		p := s.log.FinalPoll(s.p, 0)
		p.Record(0, check.Payload(99<<40, 0, 30))
		p.Ok()
	}
	r := s.rec.History().Check(check.Options{Limit: 3})
	assert.Equal(t, 30, r.Counts[check.Invented])
	n := 0
	for _, f := range r.Findings {
		if f.Anomaly == check.Invented {
			n++
		}
	}
	assert.Equal(t, 3, n)
}
