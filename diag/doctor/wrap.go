package doctor

import (
	"strings"
	"unicode/utf8"
)

// minWidth is the narrowest terminal that text is broken for.
const minWidth = 40

// Wrap breaks the lines of a report for a terminal of so many columns, between words
// and with what follows indented. Commands stay whole, to be copied; so do words.
func Wrap(report string, width int) string {
	if width < minWidth {
		return report
	}
	var b strings.Builder
	for line := range strings.Lines(report) {
		text := strings.TrimSuffix(line, "\n")
		indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
		word := text[len(indent):]
		if utf8.RuneCountInString(text) <= width || strings.HasPrefix(word, "fix: ") || strings.HasPrefix(word, "verify: ") {
			b.WriteString(line)
			continue
		}
		wrapLine(&b, indent, word, width)
	}
	return b.String()
}

func wrapLine(b *strings.Builder, indent, text string, width int) {
	column := 0
	for i, w := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(w)
		switch {
		case i == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+n > width:
			b.WriteString("\n" + indent + "     ")
			column = len(indent) + 5
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(w)
		column += n
	}
	b.WriteByte('\n')
}
