package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load/report"
)

// stepped is a result of a ramp with two windows in each step, of which the second has the worse figures.
func stepped() object {
	windows := []object{}
	for i := range 6 {
		k := float64(i/2 + 1)
		e2e := object{"count": 9, "p50": 1000 * k, "p90": 2000 * k, "p99": 3000*k + float64(i%2)*300, "p999": 9000 * k, "max": 9000*k + float64(i%2)*900}
		windows = append(windows, object{
			"from_s": float64(i)/2 + 0.002, "to_s": float64(i+1)/2 + 0.002, "warmup": i == 0, "rate_msgs_per_s": 100*k + float64(i%2)*50, "lag": 10*k + float64(i%2), "e2e_ns": e2e,
		})
	}
	return object{
		"schema": 1, "rate": 300, "arrival": "ramp:0.33-1:3:1s", "rate_msgs_per_s": 200, "latency_ns": object{"e2e": object{"count": 54, "p50": 2000, "max": 27000}},
		"steps": []object{{"from_s": 0, "msgs_per_s": 100}, {"from_s": 1, "msgs_per_s": 200}, {"from_s": 2, "msgs_per_s": 300}}, "windows": windows,
	}
}

// TestWrite_Steps: where the rate of the schedule changes there is a line in each chart over time, and a table says what came of it.
func TestWrite_Steps(t *testing.T) {
	page := write(t, read(t, "ramp", stepped()))
	wellFormed(t, page)
	charts := strings.Count(page, `<figure id="time-`)
	assert.Positive(t, charts)
	assert.Equal(t, charts*2*2, strings.Count(page, `class="edge"`), "two edges in the wide and in the narrow picture of each")
	assert.Contains(t, page, "dotted: the rate asked for changes")
	assert.Contains(t, page, "The steps of ramp")
	text := strings.Join(strings.Fields(strings.NewReplacer("<td>", " ", "</td>", " ", "\u00a0", " ").Replace(page)), " ")
	assert.Contains(t, text, `from 1 s</th> 200 /s 225 /s 2 us 6.3 us 18.9 us 21`)

	assert.NotContains(t, write(t, read(t, "even", result(1, 10, 1, true))), `class="edge"`)
	many := stepped()
	var steps []object
	for i := range 60 {
		steps = append(steps, object{"from_s": float64(i) / 20, "msgs_per_s": i + 1})
	}
	many["steps"] = steps
	page = write(t, read(t, "many", many))
	assert.NotContains(t, page, `class="edge"`, "so many would cover what there is to see")
	assert.Contains(t, page, "The steps of many")
}

// TestWrite_TimesInOrder: the table of a chart over time is in order of time, also if the windows of runs do not end together.
func TestWrite_TimesInOrder(t *testing.T) {
	run := func(name string, ends ...float64) report.Run {
		var windows []object
		from := 0.0
		for _, to := range ends {
			windows = append(windows, object{"from_s": from, "to_s": to, "rate_msgs_per_s": 5})
			from = to
		}
		data, err := json.Marshal(object{"schema": 1, "rate_msgs_per_s": 1, "windows": windows})
		require.NoError(t, err)
		r, err := report.Read(name, bytes.NewReader(data))
		require.NoError(t, err)
		return r
	}
	page := write(t, run("a", 1, 2.5, 4), run("b", 1.5, 2.5, 3.5))
	_, rows, ok := strings.Cut(page, "<caption>Messages a second over time</caption>")
	require.True(t, ok)
	rows, _, _ = strings.Cut(rows, "</table>")
	at := -1
	for _, time := range []string{"1 s", "1.5 s", "2.5 s", "3.5 s", "4 s"} {
		i := strings.Index(rows, `<th scope="row">`+time+"</th>")
		assert.Greater(t, i, at, time)
		at = i
	}
}
