package doctor_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/verbena-rdma/verbena/diag/doctor"
)

// Every finding of every rule, for narrow and wide terminals: nothing is lost, nothing is
// wider than the terminal but commands and words, and each says where, by which values,
// why, what to do and how sure.
func TestTextOfEveryRule(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	said := map[string]bool{}
	for i := range rows {
		row := &rows[i]
		r := row.find(rules)
		if r == nil {
			continue
		}
		w := newWorld()
		row.set(w, row.at)
		rep := doctor.Examine(w.input(), []*doctor.Rule{r})
		if !slices.ContainsFunc(rep.Findings, func(f doctor.Finding) bool { return f.Rule == r.ID }) {
			continue
		}
		said[r.ID+string(r.Each)] = true
		var b strings.Builder
		if err := rep.Text(&b, false); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		for _, want := range []string{" " + r.ID + "  " + where[r.Each], "(confidence ", "   cause: ", "   why it matters: ", "   fix: ", "   verify: ", " = "} {
			if !strings.Contains(text, want) {
				t.Errorf("row %d, %s: no %q in\n%s", i, row.rule, want, text)
			}
		}
		if strings.Contains(text, "limit.") && !strings.Contains(text, "   threshold: ") || strings.Contains(text, "= \n") || strings.Contains(text, "=    [") {
			t.Errorf("row %d, %s: a threshold or value is missing in\n%s", i, row.rule, text)
		}
		for _, width := range []int{40, 80, 120, 300} {
			wrapped := doctor.Wrap(text, width)
			if !slices.Equal(strings.Fields(wrapped), strings.Fields(text)) {
				t.Errorf("row %d, %s at %d columns: other words", i, row.rule, width)
			}
			for line := range strings.Lines(wrapped) {
				line = strings.TrimSuffix(line, "\n")
				command := strings.HasPrefix(strings.TrimSpace(line), "fix: ") || strings.HasPrefix(strings.TrimSpace(line), "verify: ")
				if utf8.RuneCountInString(line) > width && !command && len(strings.Fields(line)) > 1 {
					t.Errorf("row %d, %s at %d columns: %q", i, row.rule, width, line)
				}
			}
		}
	}
	for _, r := range rules {
		if !said[r.ID+string(r.Each)] {
			t.Errorf("no row prints %s for each %s", r.ID, r.Each)
		}
	}
	if text := "a line\nthat stays\n"; doctor.Wrap(text, 10) != text {
		t.Error("a terminal of ten columns is not wrapped for")
	}
}
