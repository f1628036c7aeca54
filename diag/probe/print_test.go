package probe

import (
	"strings"
	"testing"
)

// Whatever the width: the same words in the same places of the text, no line
// longer unless a word is, nothing broken without a width.
func TestPrintFits(t *testing.T) {
	p := measured(t)
	lose(p)
	p.rev.mtus = []pathMTU{{lo: 1000, hi: 1004}}
	p.r.Notes = append(p.r.Notes, "a note of a few words that do not fit a line that is as narrow as this")
	p.judge()
	at := func(width int) string {
		var b strings.Builder
		if err := p.r.Print(&b, width); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	wide := at(0)
	for _, f := range p.r.Findings {
		if !strings.Contains(wide, "\n  queue pair:  "+f.Effect.What+"\n") {
			t.Errorf("%s is broken without a width:\n%s", f.ID, wide)
		}
	}
	for _, width := range []int{1, 20, 40, 60, 80, 100, 200} {
		text := at(width)
		for line := range strings.SplitSeq(text, "\n") {
			if columns(line) > width && len(strings.Fields(line)) > 1 && width >= 40 {
				t.Errorf("width %d: %d columns: %q", width, columns(line), line)
			}
			if line != strings.TrimRight(line, " ") {
				t.Errorf("width %d: blanks at the end of %q", width, line)
			}
		}
		for _, f := range p.r.Findings {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(f.Effect.What), " ")) {
				t.Errorf("width %d: %s is not whole", width, f.ID)
			}
		}
	}
	if n := strings.Count(at(60), "\n"); n <= strings.Count(wide, "\n") {
		t.Errorf("%d lines at 60 columns", n)
	}
}
