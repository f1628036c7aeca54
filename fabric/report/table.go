package report

import (
	"strings"
	"unicode"
)

// TextWidth is how many columns of a terminal the tables take at most.
const TextWidth = 100

// table is cells that are the same for a terminal and for a page.
type table struct {
	title string
	cols  []column
	rows  [][]string
	notes []string
}

type column struct {
	head string
	left bool // numbers stand to the right
	cut  bool // may be shortened: names, not numbers
}

func left(head string) column  { return column{head, true, true} }
func right(head string) column { return column{head: head} }
func name(head string) column  { return column{head: head, cut: true} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// gap is the blanks between columns; where a table would be too wide, one.
const gap = 2

// write lays the table out. Where it is too wide, a last column of text goes on in
// further lines, and other text columns are cut.
func (t *table) write(o out) {
	if t.title != "" {
		_, _ = o.WriteString(shorten(t.title, TextWidth) + "\n")
	}
	if len(t.cols) > 0 && len(t.rows) > 0 {
		t.grid(o)
	}
	for _, n := range t.notes {
		_, _ = o.WriteString(wrap("  "+n, TextWidth))
	}
	_, _ = o.WriteString("\n")
}

func (t *table) grid(o out) {
	widths := make([]int, len(t.cols))
	for i, c := range t.cols {
		widths[i] = width(c.head)
		for _, r := range t.rows {
			widths[i] = max(widths[i], width(r[i]))
		}
	}
	space := gap
	if total(widths, gap) > TextWidth {
		space = 1
	}
	last := len(t.cols) - 1
	if over := total(widths, space) - TextWidth; over > 0 && t.cols[last].left {
		widths[last] = max(min(widths[last], leastWrap), widths[last]-over)
	}
	for total(widths, space) > TextWidth {
		widest := -1
		for i, c := range t.cols {
			if c.cut && (i < last || !c.left) && widths[i] > 6 && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	var b strings.Builder
	line := func(cells []string) {
		b.Reset()
		for i, c := range cells {
			c = shorten(c, widths[i])
			pad := strings.Repeat(" ", max(0, widths[i]-width(c)))
			if i > 0 {
				b.WriteString(strings.Repeat(" ", space))
			}
			if t.cols[i].left {
				b.WriteString(c + pad)
			} else {
				b.WriteString(pad + c)
			}
		}
		_, _ = o.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	}
	heads, rules := make([]string, len(t.cols)), make([]string, len(t.cols))
	for i, c := range t.cols {
		heads[i], rules[i] = c.head, strings.Repeat("-", widths[i])
	}
	line(heads)
	line(rules)
	for _, r := range t.rows {
		if !t.cols[last].left || width(r[last]) <= widths[last] {
			line(r)
			continue
		}
		cells := append([]string(nil), r...)
		for part := range strings.Lines(wrap(r[last], widths[last])) {
			cells[last] = strings.TrimRight(part, "\n")
			line(cells)
			cells = make([]string, len(r))
		}
	}
}

// leastWrap is how narrow a column that wraps may become.
const leastWrap = 12

func total(widths []int, space int) int {
	n := space * (len(widths) - 1)
	for _, w := range widths {
		n += w
	}
	return n
}

// width counts the columns that a terminal gives to a text: two for
// ideographs, none for marks that sit on another letter.
func width(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Mn, r):
		case r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 ||
			r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 ||
			r >= 0xffe0 && r <= 0xffe6 || r >= 0x1f300 && r <= 0x1faff || r >= 0x20000 && r <= 0x3fffd):
			n += 2
		default:
			n++
		}
	}
	return n
}

// shorten cuts a text in its middle: names differ at both ends.
func shorten(s string, w int) string {
	if width(s) <= w {
		return s
	}
	r := []rune(s)
	for n := len(r) - 1; n > 1; n-- {
		if cut := string(r[:(n+1)/2]) + "~" + string(r[len(r)-n/2:]); width(cut) <= w {
			return cut
		}
	}
	return "~"
}

// wrap breaks a text at blanks; lines after the first are indented as the first
// is.
func wrap(s string, w int) string {
	indent := s[:len(s)-len(strings.TrimLeft(s, " "))]
	var b strings.Builder
	n := 0
	for _, word := range strings.Fields(s) {
		switch {
		case n == 0:
			b.WriteString(indent)
			n = len(indent)
		case n+1+width(word) > w:
			b.WriteString("\n" + indent)
			n = len(indent)
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += width(word)
	}
	b.WriteByte('\n')
	return b.String()
}
