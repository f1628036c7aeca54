package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/result"
)

const evil = "a,\"<script>alert(\"1\")</script>'&]]>\n\r\t\x00\x1b[31m\u202e漢字\xff"

// spoil gives everything that has a name a bad one.
func spoil(r *result.Run) {
	r.Name, r.Title, r.Teaches, r.Why = evil, evil, evil, evil
	r.Source = evil
	r.Warnings = []string{evil}
	for i := range r.Nodes {
		r.Nodes[i].Name += evil
		for j := range r.Nodes[i].Ports {
			r.Nodes[i].Ports[j].Name += evil
		}
		for j := range r.Nodes[i].NIC {
			r.Nodes[i].NIC[j].Name += evil
		}
	}
	for i := range r.Flows {
		f := &r.Flows[i]
		f.Group, f.Op, f.Service, f.Status, f.Silent = evil+f.Group, evil, evil, evil, evil
	}
	for i := range r.Breaches {
		r.Breaches[i].Rule, r.Breaches[i].Detail = evil, evil
	}
}

// Terminals get no control characters, pages and pictures no elements from
// names.
func TestHostileNames(t *testing.T) {
	r := sample()
	spoil(r)
	p := report.Page{Sections: []report.Section{{Title: evil, Text: evil + "\n\n  " + evil}, {Title: "x", Paras: []report.Para{{Indent: -1, Mark: evil, Text: evil}}}}, Command: evil, Version: evil}
	for _, f := range report.Files(r, p) {
		if strings.HasSuffix(f.Name, ".png") {
			continue
		}
		b := written(t, f.Write)
		for _, c := range string(b) {
			if c != '\n' && c != '\t' && !unicode.IsPrint(c) {
				t.Errorf("%s holds %q", f.Name, c)
				break
			}
		}
		switch {
		case strings.HasSuffix(f.Name, ".svg"):
			noElement(t, f.Name, b)
		case f.Name == "report.html":
			if n := bytes.Count(b, []byte("<script")); n != 2 {
				t.Errorf("the page has %d scripts, want 2", n)
			}
			if n := bytes.Count(b, []byte("</script>")); n != 2 {
				t.Errorf("the page ends %d scripts, want 2", n)
			}
		}
	}
}

func noElement(t *testing.T, name string, b []byte) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(b))
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Errorf("%s is not well-formed: %v", name, err)
			return
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "script" {
			t.Errorf("%s has a script", name)
		}
	}
}

// A page needs nothing from elsewhere.
func TestPageIsSelfContained(t *testing.T) {
	b := string(written(t, func(w io.Writer) error { return report.WriteHTML(w, sample(), page()) }))
	for _, bad := range []string{`(?i)https?:`, `(?i)\bsrc\s*=`, `(?i)<link`, `(?i)@import`, `(?i)url\((?:[^#])`, `(?i)<iframe`, `href="[^#]`, `//[a-z]+\.[a-z]`} {
		if m := regexp.MustCompile(bad).FindString(b); m != "" {
			t.Errorf("the page refers to something: %q", m)
		}
	}
	for _, want := range []string{
		`<html lang="en">`, "Content-Security-Policy", "verbena sim run victim --seed 9223372036854775815", "feedface01020304",
		"name: victim", "NOT lossless", `id="run"`, "prefers-color-scheme", "@media print", `role="img"`, "aria-label=",
	} {
		if !strings.Contains(b, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
}

// Headings, regions and links inside the page fit together.
func TestPageLinksLead(t *testing.T) {
	b := string(written(t, func(w io.Writer) error { return report.WriteHTML(w, sample(), page()) }))
	ids := map[string]int{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(b, -1) {
		ids[m[1]]++
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("id %s is there %d times", id, n)
		}
	}
	for _, m := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(b, -1) {
		if ids[m[1]] == 0 {
			t.Errorf("a link leads to #%s, which is not there", m[1])
		}
	}
	if n := strings.Count(b, "<h1"); n != 1 {
		t.Errorf("%d headings of the first level", n)
	}
	for _, tag := range []string{"section", "figure", "table", "details", "main", "svg", "g", "div", "tr"} {
		open := len(regexp.MustCompile(`<`+tag+`[ >]`).FindAllString(b, -1))
		if shut := strings.Count(b, "</"+tag+">"); open != shut {
			t.Errorf("%d <%s>, %d </%s>", open, tag, shut, tag)
		}
	}
}
