package partition_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
)

// TestReserve_Model: with a gate that lets nothing go it is known of each call whether there is room for it. So what a reservation has taken
// and not used is room again, whatever became of it, nothing gets in above the limits, and what is in the log is what was committed.
func TestReserve_Model(t *testing.T) {
	workers := newWorkers(t, 1)
	rapid.Check(t, func(t *rapid.T) {
		limits := retention.Limits{
			MaxRecords: rapid.SampledFrom([]int64{0, 20, 300}).Draw(t, "MaxRecords"),
			MaxBytes:   rapid.SampledFrom([]int64{0, 2000, 9000}).Draw(t, "MaxBytes"),
		}
		p, stop := launch(setup{
			limits: limits, onFull: partition.Reject, maxRecord: 1000, workers: workers,
			segBytes: rapid.SampledFrom([]int{0, 500, 4096}).Draw(t, "segment bytes"), segments: rapid.SampledFrom([]int{0, 1, 5}).Draw(t, "segment records"),
		})
		defer stop()
		g := &partition.Gate{Name: "gate", Gating: true}
		_, err := p.AddGate(g, earliest)
		require.NoError(t, err)
		x, err := p.Appender(background)
		require.NoError(t, err)

		var (
			in            []string // all that there is, from offset first on
			first         int
			published     int // how many of in are visible
			room          segment.Reservation
			out           []string // in room
			places        [][]byte
			records, left int // of room
		)
		fits := func(n int, size int) bool {
			have, taken, _ := p.Log().Retained()
			return limits.RecordsLeft(have) >= int64(n) && limits.BytesLeft(taken) >= int64(size+16*n)
		}
		over := func() { out, places = nil, nil }
		n := 0
		next := func(size int) string {
			n++
			return fmt.Sprintf("%0*d", size, n)[:size]
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				have, taken, _ := p.Log().Retained()
				require.GreaterOrEqual(t, limits.RecordsLeft(have), int64(0))
				require.GreaterOrEqual(t, limits.BytesLeft(taken), int64(0))
				require.Equal(t, int64(len(in)), have)
				got, _ := p.Snapshot()
				require.EqualValues(t, first, got)
				r := p.Log().NewReader()
				r.Seek(uint64(first))
				defer r.Close()
				var rec segment.Record
				i := 0
				for r.Refill() == segment.Ready {
					for r.Next(&rec) {
						require.Equal(t, in[i], string(rec.Value))
						i++
					}
				}
				require.Equal(t, published, i)
			},
			"append": func(t *rapid.T) {
				for range rapid.IntRange(1, 4).Draw(t, "times") {
					v := next(rapid.IntRange(0, 300).Draw(t, "size"))
					may := fits(1, len(v))
					_, err := x.Append(background, value(v))
					switch {
					case !room.Over():
						require.ErrorIs(t, err, partition.ErrReserved)
					case !may:
						require.ErrorIs(t, err, partition.ErrFull)
						published = len(in)
					default:
						require.NoError(t, err)
						in = append(in, v)
						if len(in)-published >= partition.FlushAfter {
							published = len(in)
						}
					}
				}
			},
			"reserve": func(t *rapid.T) {
				want, size := rapid.IntRange(1, 25).Draw(t, "records"), rapid.IntRange(0, 3000).Draw(t, "bytes")
				may, never := fits(want, size), limits.RecordsLeft(0) < int64(want) || limits.BytesLeft(0) < int64(size+16*want)
				reserved := !room.Over()
				var other segment.Reservation
				r := &room
				if reserved {
					r = &other
				}
				err := x.Reserve(background, r, want, size)
				switch {
				case never:
					require.ErrorIs(t, err, partition.ErrTooLarge)
				case reserved:
					require.ErrorIs(t, err, partition.ErrReserved)
				case !may:
					require.ErrorIs(t, err, partition.ErrFull)
					published = len(in)
				default:
					require.NoError(t, err)
					records, left = want, size
				}
			},
			"make": func(t *rapid.T) {
				if room.Over() {
					require.Nil(t, room.Next(0))
					return
				}
				v := next(rapid.IntRange(0, min(left, 1000)).Draw(t, "size"))
				if len(out) == records {
					return
				}
				place := room.Next(len(v))
				require.Len(t, place, len(v))
				copy(place, v)
				left -= len(v)
				if rapid.Bool().Draw(t, "shrink") {
					by := rapid.IntRange(0, len(v)).Draw(t, "by")
					room.Shrink(len(v) - by)
					left += by
					v, place = v[:len(v)-by], place[:len(v)-by]
				}
				out, places = append(out, v), append(places, place)
			},
			"too much": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "really") > 0 || room.Over() {
					return
				}
				if rapid.Bool().Draw(t, "a run of none") {
					require.Nil(t, room.NextRun(0, left+1))
					_, err := x.Commit(background, &room)
					require.ErrorIs(t, err, partition.ErrReservation, "whatever the size")
					require.NotErrorIs(t, err, partition.ErrTooLarge)
					over()
					return
				}
				require.Nil(t, room.Next(left+1))
				_, err := x.Commit(background, &room)
				require.True(t, left+1 > 1000 == errors.Is(err, partition.ErrTooLarge) && left+1 <= 1000 == errors.Is(err, partition.ErrReservation), "%v", err)
				over()
			},
			"commit": func(t *rapid.T) {
				for i := range out { // nobody else has written there
					require.True(t, bytes.Equal(places[i], []byte(out[i])))
				}
				was := room.Over()
				at, err := x.Commit(background, &room)
				if was {
					require.ErrorIs(t, err, partition.ErrReservation)
					return
				}
				require.NoError(t, err)
				require.EqualValues(t, first+len(in), at)
				in = append(in, out...)
				published = len(in)
				over()
			},
			"discard": func(t *rapid.T) {
				x.Discard(&room)
				over()
			},
			"flush": func(t *rapid.T) {
				require.NoError(t, x.Flush())
				published = len(in)
			},
			"truncate": func(t *rapid.T) {
				if rapid.IntRange(0, 2).Draw(t, "really") > 0 {
					return
				}
				to := rapid.IntRange(0, published).Draw(t, "records")
				require.NoError(t, p.TruncateBefore(background, int64(first+to)))
				first += to
				in, published = in[to:], published-to
			},
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 2).Draw(t, "really") > 0 {
					return
				}
				require.NoError(t, x.Close())
				published = len(in)
				if fits(1, 1) {
					_, err := p.Publish(background, value("p"))
					require.NoError(t, err)
					in = append(in, "p")
					published++
				}
				for i := range places { // as somebody who does not know yet
					for j := range places[i] {
						places[i][j] = 0xee
					}
				}
				if !room.Over() {
					_, err := x.Commit(background, &room)
					require.ErrorIs(t, err, partition.ErrClosed)
				}
				over()
				x, err = p.Appender(background)
				require.NoError(t, err)
			},
		})
	})
}
