// Package compare says whether one run of leatload was slower than another, and by how much, from the JSON of both:
//
//	a, err := compare.Read(fileA)
//	b, err := compare.Read(fileB)
//	c := compare.Compare(a, b, compare.Options{})
//	c.WriteText(os.Stdout)
//	os.Exit(c.Exit())
//
// Any two runs differ. What counts as a difference comes from the runs themselves: each is cut into windows, and a metric that
// goes up and down within a run by so much says nothing when it goes up and down between two runs by as much. For each metric
// with windows, the change is the median of all quotients of a window of B and a window of A (Hodges and Lehmann), so that a
// window in which the machine was busy with something else does not decide; its band is that of the rank test of Mann and Whitney
// at three standard deviations, made wider where neighbouring windows resemble each other. B differs if the whole band lies on
// one side of no change and the change is at least [Options.Threshold], since two runs of the same program on the same machine
// differ by a few percent that no window shows.
//
// Runs that were not asked for the same load, or whose cores were placed differently, are not compared at all: the reason says why.
package compare
