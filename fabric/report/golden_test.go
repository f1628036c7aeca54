package report_test

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/report"
)

func page() report.Page {
	return report.Page{
		Sections: []report.Section{
			{Title: "Verdict", Text: "NOT lossless: 2 packets were lost at leaf0:Ethernet12.\n\nThe victim took 2.7 times its time."},
			{Title: "Who stopped whom", Text: "The root is leaf0:Ethernet0.\n\nleaf0:Ethernet0\n  spine0:Ethernet0 stopped for 150 us\n    leaf1:Ethernet12 stopped for 60 us\n"},
			{Title: "Counters", Text: "- one\n- two", Paras: []report.Para{{Text: "These show it:"}, {Mark: "-", Text: "one"}, {Indent: 2, Mark: "└", Text: "two"}, {Indent: 1000, Text: "three"}}},
		},
		Command: "verbena sim run victim --seed 9223372036854775815",
		Version: "v0.0.0-test",
	}
}

// What people read stays as it was looked at.
func TestGolden(t *testing.T) {
	r := sample()
	for _, f := range report.Files(r, page()) {
		switch f.Name {
		case "report.html":
			// The data have tests of their own, and grow with the results.
			b := written(t, f.Write)
			from, to := bytes.Index(b, []byte(`id="run">`)), bytes.LastIndex(b, []byte("</script>\n<script>"))
			golden(t, f.Name, slices.Delete(b, from+len(`id="run">`), to))
		case "report.txt", "ports.csv", "queues.svg", "pauses.svg", "topology.svg", "ecmp.svg", "fct.svg":
			golden(t, f.Name, written(t, f.Write))
		}
	}
}

// The same run gives the same bytes, each time.
func TestSameBytes(t *testing.T) {
	a, b := report.Files(sample(), page()), report.Files(sample(), page())
	if len(a) != len(b) {
		t.Fatalf("%d and %d files", len(a), len(b))
	}
	for i := range a {
		if strings.HasSuffix(a[i].Name, ".png") && a[i].Name != "topology.png" {
			continue // one is enough
		}
		if x, y := written(t, a[i].Write), written(t, b[i].Write); !bytes.Equal(x, y) {
			t.Errorf("%s differs from itself", a[i].Name)
		}
	}
}

// An error of the writer comes back from all of them.
func TestWriterFails(t *testing.T) {
	for _, f := range report.Files(sample(), page()) {
		if f.Name == "slowdown.txt" {
			continue
		}
		if err := f.Write(full{}); err == nil {
			t.Errorf("%s: no error", f.Name)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// What a scenario teaches is written in lines, and flows on the page. A section
// of paragraphs is laid out by the page, not as text that was broken already.
func TestPageFlows(t *testing.T) {
	r := sample()
	r.Teaches = "One line\nand another.\n"
	var b bytes.Buffer
	if err := report.WriteHTML(&b, r, page()); err != nil {
		t.Fatal(err)
	}
	s, _, _ := strings.Cut(b.String(), `id="run">`)
	if !strings.Contains(s, "<p>One line and another.</p>") || strings.Contains(s, "\uFFFD") {
		t.Error("lines of what the scenario teaches do not flow")
	}
	if !strings.Contains(s, ">one</span>") || strings.Contains(s, "- one") {
		t.Error("a list is not laid out as one")
	}
}
