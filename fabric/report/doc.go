// Package report owns everything that leaves a run: tables for a terminal, JSON
// and CSV, the files of HPCC's simulator, charts, and one HTML page.
//
//	result.Run ──┬─ WriteText                 terminal, 100 columns
//	             ├─ WriteJSON ⇄ ReadJSON      everything, for programs and later comparison
//	             ├─ Write…CSV                 flows, ports, pauses, drops, series
//	             ├─ WriteFCT, WritePFC,       HPCC's fct.txt, pfc.txt, qlen.txt and the
//	             │  WriteQlen, WriteSlowdown  table of its fct_analysis.py
//	             ├─ Charts ─▶ SVG, PNG        package plot draws
//	             └─ WriteHTML                 one file without outside references
//
// Files lists them all under their usual names.
//
// Units: a kilobyte is 1000 bytes, a Gb/s is 10^9 bit/s; times keep their
// picoseconds in JSON and three decimals of a nanosecond in CSV. Percentiles
// are by nearest rank ([Percentile]). An FCT is the sender's: from the start of
// a flow to its last acknowledgement.
//
// It must never do I/O of its own (all goes to an io.Writer), ask a clock, or
// change a run. The same run gives the same bytes. Names in a run come from
// files that others wrote: they are text everywhere, never markup, never
// control characters of a terminal. A run that was interrupted, or in which
// nothing happened, is reported like any other, and says so.
//
// It draws no conclusions: package explain does, and hands them to WriteHTML as
// Sections.
//
// Read stat.go (groups, percentiles, slowdown), stop.go (who was stopped when)
// and tree.go (by whose fault); then one file an output: text.go and what it
// calls, json.go with schema.go, csv.go, fct.go, qlen.go, charts.go, html.go.
package report
