package check_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/leatlog/leat/internal/check"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLog_Shared: what several goroutines write at once is all there, with each one's in order.
func TestLog_Shared(t *testing.T) {
	rec := check.NewRecorder(1)
	c, log := rec.Consumer("c", check.ConsumerConfig{}), rec.SharedLog("handlers")
	value := check.Payload(1, 2, 30)
	const goroutines, each = 16, 500
	var wg sync.WaitGroup
	for g := range goroutines {
		o := check.Owner{Consumer: c, Member: rec.Member("m"), Partition: check.Partition(g)}
		wg.Go(func() {
			for i := range int64(each) {
				if i%2 == 0 {
					log.Handle(o, i, 1, value).Ok()
				} else {
					log.HandleBatch(o, i, 1, value, value).Fail()
				}
			}
		})
	}
	wg.Wait()
	h := rec.History()
	require.Len(t, h.Ops, goroutines*each)
	next := make(map[check.Partition]int64)
	for i := range h.Ops {
		o := &h.Ops[i]
		require.Equal(t, check.OpHandle, o.Kind)
		require.Equal(t, next[o.Part], o.Recs[0].Off)
		next[o.Part]++
		require.LessOrEqual(t, o.Call, o.Ret)
		if o.Recs[0].Off%2 == 0 {
			require.Equal(t, check.Ok, o.Res)
			require.Len(t, o.Recs, 1)
		} else {
			require.Equal(t, check.Fail, o.Res)
			require.Equal(t, o.Recs[0].Off+1, o.Recs[1].Off)
		}
		require.EqualValues(t, 1, o.Recs[0].Val)
		require.EqualValues(t, 2, o.Recs[0].Key)
	}
}

// TestLog_EndedElsewhere: an operation may be ended by another goroutine, also while History is made.
func TestLog_EndedElsewhere(t *testing.T) {
	rec := check.NewRecorderWithClock(1, check.Ticks())
	p, log := rec.Partition("p"), rec.Log("l")
	hangs := log.SendTo(p, check.Payload(1, 0, 24))
	later := log.Ack(check.Owner{Consumer: 1, Partition: p}, 3, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		later.Ok()
	}()
	h := rec.History()
	<-done
	require.Len(t, h.Ops, 2)
	assert.Equal(t, check.Unknown, h.Ops[0].Res)
	assert.Equal(t, int64(check.Never), h.Ops[0].Ret)
	assert.Equal(t, p, h.Ops[0].Part)
	hangs.Ok(p, 5)
	h = rec.History()
	assert.Equal(t, check.Ok, h.Ops[0].Res)
	assert.EqualValues(t, 5, h.Ops[0].Off)
	assert.Equal(t, check.Ok, h.Ops[1].Res)
	assert.PanicsWithValue(t, "check: send ended twice", hangs.Fail)
}

func TestLog_Done(t *testing.T) {
	s := newScene()
	s.send(0, 1, 2)
	wrong := errors.New("wrong")
	assert.Equal(t, wrong, s.begin(s.subscriber(s.sub), 0).Done(wrong))
	assert.NoError(t, s.begin(s.subscriber(s.sub), 0).Done(nil))
	assert.Equal(t, wrong, s.log.Commit(s.subscriber(s.sub), 1).Done(wrong))
	assert.Panics(t, func() {
		h := s.begin(s.subscriber(s.sub), 1)
		defer h.FailIfOpen()
		panic(wrong)
	})
	h := s.begin(s.subscriber(s.sub), 1)
	h.Ok()
	h.FailIfOpen()
	p := s.log.Poll(s.subscriber(s.pull), 0)
	p.Record(0, s.values[0])
	p.Fail()
	var got []string
	for i, o := range s.rec.History().Ops {
		if o.Kind != check.OpSend {
			got = append(got, s.rec.History().Text(i)[len("#3 "):])
		}
	}
	assert.Equal(t, []string{
		"[7ns, 8ns] test: handle fail sub orders/0 0=p1:0",
		"[9ns, 10ns] test: handle ok sub orders/0 0=p1:0",
		"[11ns, 12ns] test: commit fail sub orders/0 1",
		"[13ns, 14ns] test: handle fail sub orders/0 1=p1:1",
		"[15ns, 16ns] test: handle ok sub orders/0 1=p1:1",
		"[17ns, 18ns] test: poll fail pull orders/0 0 0=p1:0",
	}, got)
	r := s.check()
	assert.True(t, r.Ok(), "%s", r)
	assert.Equal(t, 1, r.Figures.Polled)
	assert.Equal(t, 4, r.Figures.Delivered)
	assert.Equal(t, [8]int{0, 2}, r.Figures.Redeliveries)
	assert.Equal(t, map[check.Kind]int{check.OpSend: 3, check.OpHandle: 4, check.OpCommit: 1, check.OpPoll: 1}, r.Figures.Kinds)
}
