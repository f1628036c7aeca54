package play

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/topo"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// Page returns what the HTML page says beside the run: the explanation, then
// other sections, the command that repeats it, and the program's version.
func (o *Outcome) Page(more []report.Section, command, version string) report.Page {
	p := report.Page{Command: command, Version: version}
	for _, s := range o.Story().Sections(width) {
		sec := report.Section{Title: s.Title, Text: s.Text}
		for _, x := range s.Paras {
			sec.Paras = append(sec.Paras, report.Para{Indent: x.Indent, Mark: x.Mark, Text: x.Text})
		}
		p.Sections = append(p.Sections, sec)
	}
	if len(o.Checks) > 0 {
		p.Sections = append(p.Sections, expected(o.Checks))
	}
	p.Sections = append(p.Sections, more...)
	return p
}

// WriteDir writes all outputs of the run into a directory, which it makes, and
// returns the names of the files.
func (o *Outcome) WriteDir(dir string, p report.Page) ([]string, error) {
	files := append([]report.File{
		{Name: "scenario.yaml", Write: o.writeScenario},
		{Name: "explain.txt", Write: func(w io.Writer) error { return o.Story().Text(w, width) }},
	}, report.Files(o.Result, p)...)
	return writeFiles(dir, files)
}

func (o *Outcome) writeScenario(w io.Writer) error {
	_, err := io.WriteString(w, o.Result.Source)
	return err
}

// WriteHPCC writes the files that scripts around HPCC's simulator read:
// topology.txt and flow.txt, with which it runs the same, and its results
// fct.txt, pfc.txt, qlen.txt and the slowdown table.
func (o *Outcome) WriteHPCC(dir string) ([]string, error) {
	r := o.Result
	return writeFiles(dir, []report.File{
		{Name: "topology.txt", Write: func(w io.Writer) error { return topo.WriteHPCC(w, o.Graph) }},
		{Name: "flow.txt", Write: o.writeFlows},
		{Name: "fct.txt", Write: func(w io.Writer) error { return report.WriteFCT(w, r) }},
		{Name: "pfc.txt", Write: func(w io.Writer) error { return report.WritePFC(w, r) }},
		{Name: "qlen.txt", Write: func(w io.Writer) error { return report.WriteQlen(w, r, 0) }},
		{Name: "slowdown.txt", Write: func(w io.Writer) error { return report.WriteSlowdown(w, report.Slowdowns(r)) }},
	})
}

// writeFlows writes the flows that have started as a flow.txt. Endless ones
// have the bytes that they have moved.
func (o *Outcome) writeFlows(w io.Writer) error {
	var flows []work.Flow
	for i := range o.Result.Flows {
		f := &o.Result.Flows[i]
		n := f.Bytes
		if n == 0 {
			n = f.Delivered
		}
		if n > 0 {
			flows = append(flows, work.Flow{Src: f.Src, Dst: f.Dst, Bytes: n, Start: f.Start, Prio: int8(f.Prio), Group: f.Group})
		}
	}
	return work.WriteHPCC(w, flows, func(endpoint int32) int32 { return o.Graph.Endpoints[endpoint].Node }, int8(o.Reading.Host.RDMA.Priority))
}

// writeFiles writes files into a directory.
func writeFiles(dir string, files []report.File) ([]string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		name := filepath.Join(dir, f.Name)
		if err := WriteFile(name, f.Write); err != nil {
			return names, err
		}
		names = append(names, name)
	}
	return names, nil
}

// WriteFile writes one file. Its name is in the error.
func WriteFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 1<<16)
	err = write(b)
	if err == nil {
		err = b.Flush()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		return nil
	}
	var named *fs.PathError
	if errors.As(err, &named) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// CanWrite says what keeps a file from being written, before anybody has waited
// for what is to be in it. It leaves everything as it was.
func CanWrite(name string) error {
	if st, err := os.Stat(name); err == nil {
		if st.IsDir() {
			return fmt.Errorf("%s is a directory", name)
		}
		if !st.Mode().IsRegular() {
			return nil
		}
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return f.Close()
	}
	st, err := os.Stat(filepath.Dir(name))
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("%s is not a directory", filepath.Dir(name))
	}
	return nil
}

// WriteSides writes the results of a comparison, and its text, into a
// directory; it returns the names without the directory.
func WriteSides(dir string, sides []Side, text []byte) ([]string, error) {
	var files []report.File
	for i := range sides {
		r := sides[i].Run
		files = append(files, report.File{
			Name:  string(rune('a'+i)) + ".json",
			Write: func(w io.Writer) error { return report.WriteJSON(w, r) },
		})
	}
	files = append(files, report.File{Name: "compare.txt", Write: func(w io.Writer) error { _, err := w.Write(text); return err }})
	names, err := writeFiles(dir, files)
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	return names, err
}
