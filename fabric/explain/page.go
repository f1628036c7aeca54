package explain

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Section is a part of the story in words.
type Section struct {
	Title string
	Text  string // lines without a trailing newline
	Paras []Para // the same, not broken into lines
}

// Para is a paragraph as a page lays it out by itself.
type Para struct {
	Indent int    // columns in front of the mark
	Mark   string // "-", "└", "1."; empty: none
	Text   string
}

// para is a paragraph: its first line begins with the mark at the indent, the
// others stand below the text of the first.
type para struct {
	indent int
	mark   string
	text   string
}

// section gathers the paragraphs of one title.
type section struct {
	title string
	paras []para
}

func (s *section) say(format string, args ...any) {
	s.paras = append(s.paras, para{text: fmt.Sprintf(format, args...)})
}

func (s *section) item(format string, args ...any) {
	s.paras = append(s.paras, para{mark: "- ", text: fmt.Sprintf(format, args...)})
}

func (s *section) branch(level int, format string, args ...any) {
	s.paras = append(s.paras, para{indent: 2 * (level - 1), mark: "└ ", text: fmt.Sprintf(format, args...)})
}

// least is the narrowest text that is still broken into lines.
const least = 40

// lines breaks a paragraph at blanks. A word that is too long stands alone.
func (p para) lines(width int) []string {
	first := strings.Repeat(" ", p.indent) + p.mark
	rest := strings.Repeat(" ", p.indent+utf8.RuneCountInString(p.mark))
	width = max(width-len(rest), least)
	var out []string
	line, used := "", 0
	for _, w := range strings.Fields(p.text) {
		n := utf8.RuneCountInString(w)
		if used > 0 && used+1+n > width {
			out = append(out, line)
			line, used = "", 0
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+w, used+n
	}
	out = append(out, line)
	for i := range out {
		if i == 0 {
			out[i] = first + out[i]
		} else {
			out[i] = rest + out[i]
		}
	}
	return out
}

func (s *section) text(width int) string {
	var lines []string
	for _, p := range s.paras {
		lines = append(lines, p.lines(width)...)
	}
	return strings.Join(lines, "\n")
}

func (s *section) paragraphs() []Para {
	out := make([]Para, len(s.paras))
	for i, p := range s.paras {
		out[i] = Para{p.indent, strings.TrimSpace(p.mark), p.text}
	}
	return out
}

// Sections returns the story in words, its most important part first; lines
// are broken at width columns (0: 100). Parts with nothing to say are left out.
func (s *Story) Sections(width int) []Section {
	if width <= 0 {
		width = 100
	}
	return render(s.sections(), width)
}

// Text writes the sections for a terminal of so many columns (0: 100). The
// error is the writer's.
func (s *Story) Text(w io.Writer, width int) error {
	if width <= 0 {
		width = 100
	}
	return print(w, s.Sections(width-2)) // print indents by two
}

func render(parts []section, width int) []Section {
	var out []Section
	for _, p := range parts {
		if len(p.paras) > 0 {
			out = append(out, Section{p.title, p.text(width), p.paragraphs()})
		}
	}
	return out
}

func print(w io.Writer, parts []Section) error {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(p.Title + "\n")
		for line := range strings.SplitSeq(p.Text, "\n") {
			b.WriteString("  " + line + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
