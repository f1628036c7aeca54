// Package plot owns pictures: lines over time, distributions, bars, time lines
// of intervals, and free drawings, as SVG and as PNG. It knows nothing of what
// the numbers mean beyond their quantity (time, bytes, rate, …), from which it
// takes the units of the labels.
//
//	Chart, Gantt, Bars ──Draw──▶ Drawing (shapes in pixels) ──▶ SVG, PNG
//
// A picture is legible on white and on black: colours are named by role (Ink)
// and an SVG carries both palettes; the reader's preference picks one. Lines
// differ in dashes as well as in colour. Every picture has a title and a
// description for readers who do not see it.
//
// It must never do I/O, look at a clock, or let anything but its input decide a
// byte of an SVG: same figures, same bytes. (A PNG is the same for the same
// binary; the rasteriser of another architecture may round differently.)
// Text that comes from outside may hold anything: it is escaped here.
//
// Package report calls it, and whoever draws a sweep.
//
// Read drawing.go, ink.go, axis.go, chart.go, gantt.go, bars.go, envelope.go,
// then svg.go and png.go.
package plot
