package report

import (
	"bytes"
	_ "embed" // the page's parts
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode"

	"github.com/verbena-rdma/verbena/fabric/report/plot"
	"github.com/verbena-rdma/verbena/fabric/result"
)

// The skeleton of the page, its looks and its behaviour.
var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
)

// Section is a piece of explanation: paragraphs, which the page breaks to its
// width, or if there are none plain text. Paragraphs of that are separated by
// empty lines; one with an indented line (a table) keeps its lines as they are.
type Section struct {
	Title, Text string
	Paras       []Para
}

// Para is a paragraph. Its lines stand below the text of the first, to the right
// of the mark.
type Para struct {
	Indent int    // columns in front of the mark, 0 to mostIndent
	Mark   string // "-", "└", "1."; empty: none
	Text   string
}

// mostIndent keeps room for the text of a deep tree on a narrow page.
const mostIndent = 12

// Page is what a page says beside the run itself.
type Page struct {
	Sections []Section // the verdict first
	Command  string    // that repeats the run
	Version  string    // of the program
}

// The bounds of a page in bytes: it stays below pageLimit, as long as the
// caller's sections do not fill it.
const (
	pageLimit   = 2 << 20
	sourceLimit = 100 << 10
	dataLimit   = 700 << 10 // of the embedded JSON
	dataLeast   = 64 << 10
)

func pageRows() rows { return rows{flows: 50, ports: 80, queues: 15, switches: 12} }

const (
	pageNICs     = 8
	pageWarnings = 200
)

// WriteHTML writes one page that needs nothing else: verdict and explanation,
// warnings, pictures, tables, counters, scenario, and the run's data as JSON
// (reduced until they fit: the page says what was left out). It has no outside
// reference, works without scripts, and follows the reader's light or dark
// preference.
func WriteHTML(w io.Writer, r *result.Run, p Page) error {
	v, err := viewOf(r, p)
	if err != nil {
		return err
	}
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil { // the rest, to know how much room the data have
		return err
	}
	data, reduced, err := embedded(r, max(dataLeast, min(dataLimit, pageLimit-b.Len()-1024)))
	if err != nil {
		return err
	}
	v.JSON, v.Reduced = template.JS(data), reduced //nolint:gosec // encoding/json escapes <, > and &
	b.Reset()
	if err := t.Execute(&b, v); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// view is what the skeleton shows.
type view struct {
	Title           string
	Style           template.CSS
	Head            []string
	Parts           []part
	Sections        []sectionView
	Warnings        []string
	Charts          []chartView
	Tables          []tableView
	NICs            []nicView
	Command         string
	Seed            uint64
	Digest, Version string
	Source          string
	SourceCut       string
	Reduced         []string
	JSON            template.JS
	Script          template.JS
}

type part struct{ ID, Title string }

type sectionView struct {
	Title  string
	Blocks []block
}

type block struct {
	Pre    bool
	Indent int
	Mark   string
	Text   string
}

type chartView struct {
	Name, Desc string
	SVG        template.HTML
}

type tableView struct {
	Title string
	Heads []cell
	Rows  [][]cell
	Notes []string
}

type cell struct {
	Left bool
	Text string
}

type nicView struct{ Name, Text string }

func viewOf(r *result.Run, p Page) (*view, error) {
	head := headLines(r)
	v := &view{
		Title: head[0], Head: head[1:], Command: printable(p.Command), Version: clean(p.Version),
		Style: template.CSS(plot.Style() + "\n" + pageCSS), Script: template.JS(pageJS), //nolint:gosec // ours
		Seed: r.Seed, Digest: fmt.Sprintf("%016x", r.Digest), JSON: "null",
		Source: printable(r.Source),
	}
	if v.Title == "" {
		v.Title = "A run"
	}
	if r.Teaches != "" {
		v.Head = append(v.Head, clean(strings.Join(strings.Fields(r.Teaches), " ")))
	}
	if len(v.Source) > sourceLimit {
		v.Source, v.SourceCut = strings.ToValidUTF8(v.Source[:sourceLimit], ""), bytesText(int64(sourceLimit))
	}
	for i, s := range p.Sections {
		bs := blocks(s.Text)
		if len(s.Paras) > 0 {
			bs = paragraphs(s.Paras)
		}
		v.Sections = append(v.Sections, sectionView{clean(s.Title), bs})
		v.Parts = append(v.Parts, part{fmt.Sprintf("s%d", i), clean(s.Title)})
	}
	for i, s := range r.Warnings {
		if i == pageWarnings {
			v.Warnings = append(v.Warnings, fmt.Sprintf("%d more warnings", len(r.Warnings)-i))
			break
		}
		v.Warnings = append(v.Warnings, clean(s))
	}
	for _, c := range Charts(r) {
		var b bytes.Buffer
		if err := c.Drawing.WriteInline(&b); err != nil {
			return nil, err
		}
		v.Charts = append(v.Charts, chartView{c.Name, clean(c.Drawing.Desc), template.HTML(b.String())}) //nolint:gosec // plot escapes
	}
	for _, t := range tables(r, pageRows()) {
		v.Tables = append(v.Tables, t.view())
	}
	for _, i := range tellingHosts(r, pageNICs) {
		lines := nicLines(r, i)
		v.NICs = append(v.NICs, nicView{names{r}.node(int32(i)), strings.Join(lines[1:], "\n")})
	}
	v.parts()
	return v, nil
}

// parts lists what follows the sections.
func (v *view) parts() {
	for _, x := range []struct {
		there bool
		part
	}{
		{len(v.Warnings) > 0, part{"warnings", "Warnings"}},
		{len(v.Charts) > 0, part{"charts", "Pictures"}},
		{true, part{"tables", "Tables"}},
		{len(v.NICs) > 0, part{"nics", "Counters of hosts"}},
		{true, part{"again", "How to repeat this"}},
	} {
		if x.there {
			v.Parts = append(v.Parts, x.part)
		}
	}
}

func (t *table) view() tableView {
	v := tableView{Title: t.title, Notes: t.notes}
	for _, c := range t.cols {
		v.Heads = append(v.Heads, cell{c.left, c.head})
	}
	for _, r := range t.rows {
		var cells []cell
		for i, s := range r {
			cells = append(cells, cell{t.cols[i].left, s})
		}
		v.Rows = append(v.Rows, cells)
	}
	return v
}

// paragraphs is what the page shows of them.
func paragraphs(ps []Para) []block {
	bs := make([]block, len(ps))
	for i, p := range ps {
		bs[i] = block{Indent: max(0, min(p.Indent, mostIndent)), Mark: clean(p.Mark), Text: clean(p.Text)}
	}
	return bs
}

// blocks cuts a text at empty lines.
func blocks(text string) []block {
	var bs []block
	var lines []string
	flush := func() {
		if len(lines) == 0 {
			return
		}
		b := block{Text: strings.Join(lines, "\n")}
		for _, l := range lines {
			b.Pre = b.Pre || strings.HasPrefix(l, " ")
		}
		bs = append(bs, b)
		lines = nil
	}
	for l := range strings.Lines(printable(text)) {
		if l = strings.TrimRight(l, " \n"); l == "" {
			flush()
			continue
		}
		lines = append(lines, l)
	}
	flush()
	return bs
}

// printable is clean for texts of several lines.
func printable(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\t", "    ")
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
