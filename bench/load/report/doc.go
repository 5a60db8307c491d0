// Package report makes one HTML page of one or several results of leatload, from their JSON:
//
//	a, err := report.Read("before", fileA)
//	b, err := report.Read("after", fileB)
//	err = report.Write(out, []report.Run{a, b}, report.Options{})
//
// The page is a single file that loads nothing and runs nothing: charts are drawn here, as SVG, and it says so to the browser by a
// content policy. It has the percentile curves of all runs in one chart, over a logarithmic axis of 1/(1-p); rate, lag and
// percentiles over time; and the conditions of each run, with what differs between runs marked. Each chart has its figures as a
// table, too. Light or dark is the reader's choice; it is made for a phone as well as for a desk, for the keyboard, and for those
// who have it read to them.
//
// What a result does not have is left out: results of older versions give fewer charts.
package report
