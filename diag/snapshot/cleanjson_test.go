package snapshot

import (
	"encoding/json"
	"testing"
)

// FuzzCleanJSON: what was JSON stays JSON, and its strings are printable.
func FuzzCleanJSON(f *testing.F) {
	f.Add([]byte(`{"a":"\u001b[31m\n\\","b\ud83d\ude00":["\u202e"]}`))
	f.Add([]byte("\"\x7f\xff\u0085\u202e\\ud800\\\""))
	f.Fuzz(func(t *testing.T, b []byte) {
		out := CleanJSON(b, false)
		if json.Valid(b) && !json.Valid(out) {
			t.Fatalf("%q is JSON, %q is not", b, out)
		}
		var v any
		if json.Unmarshal(out, &v) == nil {
			walk(t, v)
		}
	})
}

func walk(t *testing.T, v any) {
	t.Helper()
	text := func(s string) {
		for _, r := range s {
			if !printable(r) {
				t.Fatalf("%q has %q", s, r)
			}
		}
	}
	switch v := v.(type) {
	case string:
		text(v)
	case []any:
		for _, x := range v {
			walk(t, x)
		}
	case map[string]any:
		for k, x := range v {
			text(k)
			walk(t, x)
		}
	}
}
