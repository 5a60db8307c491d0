// Package export writes what a run measured in forms that other tools read:
//
//   - [HGRM]: the percentile distribution as text (.hgrm), which the public HdrHistogram plotter draws and several scripts read;
//   - [Log]: a histogram for each interval (.hlog), the log format of HdrHistogram in every language;
//   - [CSV]: a line for each [Window], for spreadsheets and data frames;
//   - [Encode]: a histogram as a string, the payload of such logs, for JSON.
//
// All histograms are of nanoseconds. Nothing here knows how they came about.
package export
