// Package report turns measurements into numbers and numbers into text: the
// statistics and the columns of perftest, the lines of the pingpong examples,
// ibv_devices and ibv_devinfo, JSON, and a plot of a latency distribution.
//
// Layouts are equal to the originals byte for byte where a script may parse
// them; the golden files in testdata are what Debian's programs printed.
// Everything here is a function of its arguments: no clock, no output.
//
//	stat.go    samples to results: bandwidth, peak, percentiles
//	perftest.go header, addresses, rows of perftest
//	json.go    the document that --json prints, and perftest's --out_json
//	plot.go    a histogram in text
//	device.go  ibv_devices and ibv_devinfo
package report
