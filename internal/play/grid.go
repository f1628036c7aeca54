package play

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// width is how many columns of a terminal are used.
const width = 100

// Grid is a table for a terminal.
type Grid struct {
	heads []string
	left  []bool
	rows  [][]string
}

// NewGrid makes a table. A head with < in front is of text, which stands to the
// left; numbers stand to the right.
func NewGrid(heads ...string) *Grid {
	g := &Grid{}
	for _, h := range heads {
		text, left := strings.CutPrefix(h, "<")
		g.heads, g.left = append(g.heads, text), append(g.left, left)
	}
	return g
}

// Row adds a row: a cell for each head.
func (g *Grid) Row(cells ...string) {
	for i := range cells {
		cells[i] = clean(cells[i])
	}
	g.rows = append(g.rows, cells)
}

// longest is the widest cell of text; longer ones are cut.
const longest = 60

// Lines lays the table out: the heads, then a line for each row.
func (g *Grid) Lines() []string {
	wide := make([]int, len(g.heads))
	all := append([][]string{g.heads}, g.rows...)
	for _, r := range all {
		for i := range r {
			if n := utf8.RuneCountInString(r[i]); n > longest {
				r[i] = string([]rune(r[i])[:longest-1]) + "…"
			}
			wide[i] = max(wide[i], utf8.RuneCountInString(r[i]))
		}
	}
	out := make([]string, len(all))
	for k, r := range all {
		var b strings.Builder
		for i, c := range r {
			pad := strings.Repeat(" ", wide[i]-utf8.RuneCountInString(c))
			if i > 0 {
				b.WriteString("  ")
			}
			if g.left[i] {
				b.WriteString(c + pad)
			} else {
				b.WriteString(pad + c)
			}
		}
		out[k] = strings.TrimRight(b.String(), " ")
	}
	return out
}

// write writes the table below its title, and an empty line; nothing if it has
// no rows.
func (g *Grid) write(w io.Writer, title string) {
	if len(g.rows) == 0 {
		return
	}
	fmt.Fprintln(w, title)
	for _, l := range g.Lines() {
		fmt.Fprintln(w, "  "+l)
	}
	fmt.Fprintln(w)
}

// Paragraph writes a text broken at blanks, all of its lines indented.
func Paragraph(w io.Writer, indent, text string) {
	line := ""
	for _, word := range strings.Fields(clean(text)) {
		if line != "" && utf8.RuneCountInString(indent+line+" "+word) > width {
			fmt.Fprintln(w, indent+line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		fmt.Fprintln(w, indent+line)
	}
}

// clean makes a text from outside harmless to a terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		if unicode.IsSpace(r) {
			return ' '
		}
		return unicode.ReplacementChar
	}, s)
}

// plural writes a number of things.
func plural[N int | uint64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	for _, end := range []string{"s", "ch"} {
		if strings.HasSuffix(one, end) {
			return countText(uint64(n)) + " " + one + "es"
		}
	}
	return countText(uint64(n)) + " " + one + "s"
}

// Len is the number of rows.
func (g *Grid) Len() int { return len(g.rows) }
