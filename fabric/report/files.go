package report

import (
	"io"

	"github.com/verbena-rdma/verbena/fabric/result"
)

// File is one output of a run.
type File struct {
	Name  string // without directory
	Write func(io.Writer) error
}

// pngZoom makes PNG files sharp in print.
const pngZoom = 2

// Files returns every output of a run under its usual name. Charts are laid out
// at once; the rest is made when Write is called.
func Files(r *result.Run, p Page) []File {
	file := func(name string, write func(io.Writer, *result.Run) error) File {
		return File{name, func(w io.Writer) error { return write(w, r) }}
	}
	fs := []File{
		{"report.html", func(w io.Writer) error { return WriteHTML(w, r, p) }},
		file("report.txt", WriteText),
		file("run.json", WriteJSON),
		file("flows.csv", WriteFlowsCSV),
		file("ports.csv", WritePortsCSV),
		file("pauses.csv", WritePausesCSV),
		file("drops.csv", WriteDropsCSV),
		file("series.csv", WriteSeriesCSV),
		file("fct.txt", WriteFCT),
		file("pfc.txt", WritePFC),
		{"qlen.txt", func(w io.Writer) error { return WriteQlen(w, r, 0) }},
		{"slowdown.txt", func(w io.Writer) error { return WriteSlowdown(w, Slowdowns(r)) }},
	}
	for _, c := range Charts(r) {
		fs = append(fs,
			File{c.Name + ".svg", c.Drawing.WriteSVG},
			File{c.Name + ".png", func(w io.Writer) error { return c.Drawing.WritePNG(w, pngZoom) }})
	}
	return fs
}
