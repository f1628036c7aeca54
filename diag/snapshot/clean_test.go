package snapshot

import (
	"encoding/json"
	"fmt"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Whatever character a process puts into a string, as it stands or as an escape, what is
// read is that character if it may reach a terminal, and else another one.
func TestCleanJSONOfEveryCharacter(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r == 0x3000 {
			r = 0xd700 // nothing happens in between
		}
		if r == 0xe100 {
			r = unicode.MaxRune - 10
		}
		bad := r == utf8.RuneError || !unicode.IsPrint(r)
		for _, text := range []string{string(r), fmt.Sprintf(`\u%04x`, r), fmt.Sprintf(`\u%04X`, r)} {
			raw := utf8.RuneCountInString(text) == 1
			if raw && (r < ' ' || r == '"' || r == '\\' || !utf8.ValidRune(r)) || !raw && (r > 0xffff || !utf8.ValidRune(r)) {
				continue // no JSON
			}
			for _, around := range []string{"%s", "a%sb", "ü%sx", `\\\\%s`} {
				in := []byte(`"` + fmt.Sprintf(around, text) + `"`)
				var before, after string
				if err := json.Unmarshal(in, &before); err != nil {
					t.Fatalf("%q: %v", in, err)
				}
				if err := json.Unmarshal(CleanJSON(in, false), &after); err != nil {
					t.Fatalf("%q: %v", in, err)
				}
				if !bad && after != before {
					t.Fatalf("%q has become %q", before, after)
				}
				if bad && (after == before || len([]rune(after)) != len([]rune(before))) {
					t.Fatalf("%q has become %q", before, after)
				}
				if clean := CleanText(after); clean != after {
					t.Fatalf("%q has become %q, which is not clean", before, after)
				}
			}
		}
	}
}

func TestCleanTextOfBytes(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "python3": "python3", "a\x1b[31mb": "a?[31mb", "a\xffb": "a?b", "ü": "ü", "\u202ea": "?a", "a\x7f": "a?", "\t\n": "??",
	} {
		if got := CleanText(in); got != want {
			t.Errorf("%q has become %q, want %q", in, got, want)
		}
	}
}
