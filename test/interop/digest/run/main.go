// Command run runs scenarios and writes everything that comes out of them below a directory: a digest, all files of a
// report, the explanation, and captures of some ports.
//
//	run DIR
//
// Its own scenarios, in the folder scenarios, run to their ends. Of those of the library the first events are run,
// which is what two builds can be compared by in seconds.
package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/verbena-rdma/verbena/fabric"
	"github.com/verbena-rdma/verbena/fabric/explain"
	"github.com/verbena-rdma/verbena/fabric/lab"
	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/scenario"
)

//go:embed scenarios
var own embed.FS

// firstEvents is how much of a scenario of the library is run.
const firstEvents = 10_000

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: run DIR")
		os.Exit(2)
	}
	if err := all(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func all(dir string) error {
	entries, err := own.ReadDir("scenarios")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := own.ReadFile("scenarios/" + e.Name())
		if err != nil {
			return err
		}
		if err := one(filepath.Join(dir, strings.TrimSuffix(e.Name(), ".yaml")), e.Name(), text, 0); err != nil {
			return fmt.Errorf("%s: %w", e.Name(), err)
		}
	}
	for _, name := range lab.Names() {
		file, text, err := lab.Source(name)
		if err != nil {
			return err
		}
		if err := one(filepath.Join(dir, "lab-"+name), file, text, firstEvents); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// one runs a scenario, to its end or for a number of events.
func one(dir, file string, text []byte, events uint64) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	sc, err := scenario.Parse(file, text)
	if err != nil {
		return err
	}
	r, _, err := fabric.Load(sc, nil)
	if err != nil {
		return err
	}
	var files []*os.File
	capture, err := r.Capture(func(port string) (io.Writer, error) {
		f, err := os.Create(filepath.Join(dir, strings.ReplaceAll(port, "/", "-")+".pcapng"))
		files = append(files, f)
		return f, err
	}, fabric.CaptureOptions{})
	if err != nil {
		return err
	}
	if events == 0 {
		err = r.Finish()
	} else {
		_, err = r.Advance(events)
	}
	err = errors.Join(err, capture.Flush())
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return err
	}
	res := r.Result()
	digest := fmt.Sprintf("%016x after %d events, %d ps: %s\n", res.Digest, res.Events, int64(res.End), res.Why)
	if err := os.WriteFile(filepath.Join(dir, "digest.txt"), []byte(digest), 0o644); err != nil {
		return err
	}
	story := explain.Explain(res)
	if err := write(dir, "story.txt", func(w io.Writer) error { return story.Text(w, 100) }); err != nil {
		return err
	}
	for _, f := range report.Files(res, report.Page{}) {
		// Pixels are drawn with the processor's own floats; what they show is in the SVG.
		if strings.HasSuffix(f.Name, ".png") {
			continue
		}
		if err := write(dir, f.Name, f.Write); err != nil {
			return err
		}
	}
	return nil
}

func write(dir, name string, to func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	return errors.Join(to(f), f.Close())
}
