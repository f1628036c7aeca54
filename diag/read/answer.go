package read

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// Bounds of one answer: what it takes in memory follows from them whatever it says.
const (
	maxRows   = 1 << 17  // of a list of objects
	maxDoc    = 16 << 20 // bytes of another answer
	maxCommas = 1 << 19  // in it
)

// raw asks a query; the JSON has no control characters in its strings.
func (r *reader) raw(query string) (b []byte, reason string, ok bool) {
	if err := r.spend(); err != nil {
		return nil, err.Error(), false
	}
	if !fs.ValidPath(query) {
		return nil, "a name that is no name", false
	}
	b, err := r.src.Ask(query)
	r.bytes += len(b)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", false
	}
	if err != nil {
		return nil, why(err), false
	}
	return cleanJSON(b, query == source.QueryIPTables || query == source.QueryIP6Tables), "", true
}

// ask returns the answer to a query. What is refused for lack of privilege or support
// is no problem of the host; other failures are.
func ask[T any](r *reader, query string) snapshot.Value[T] {
	b, reason, ok := r.raw(query)
	if !ok {
		return refused[T](r, query, reason)
	}
	if len(b) > maxDoc || bytes.Count(b, []byte(",")) > maxCommas {
		return unread[T](r, query, fmt.Sprintf("the answer is longer than %d bytes or %d values", maxDoc, maxCommas))
	}
	if string(bytes.TrimSpace(b)) == "null" {
		return snapshot.Value[T]{}
	}
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return unread[T](r, query, jsonError(err))
	}
	return snapshot.Known(v)
}

// askRows is ask for long lists of objects.
func askRows[T any](r *reader, query string) snapshot.Value[[]T] {
	b, reason, ok := r.raw(query)
	if !ok {
		return refused[[]T](r, query, reason)
	}
	if string(bytes.TrimSpace(b)) == "null" {
		return snapshot.Value[[]T]{}
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return unread[[]T](r, query, "the answer is no JSON list")
	}
	rows := []T{}
	for d.More() {
		if len(rows) == maxRows {
			r.problem(query, fmt.Sprintf("more than %d objects: the rest is not read", maxRows))
			return snapshot.Known(rows)
		}
		var row T
		if err := d.Decode(&row); err != nil {
			return unread[[]T](r, query, jsonError(err))
		}
		rows = append(rows, row)
	}
	if _, err := d.Token(); err != nil {
		return unread[[]T](r, query, jsonError(err))
	}
	return snapshot.Known(rows)
}

func refused[T any](r *reader, query, reason string) snapshot.Value[T] {
	switch reason {
	case "":
		return snapshot.Value[T]{}
	case "permission denied", "not supported", errSpent.Error():
		return snapshot.Unreadable[T](reason)
	}
	return unread[T](r, query, reason)
}

func unread[T any](r *reader, query, reason string) snapshot.Value[T] {
	r.problem(query, reason)
	return snapshot.Unreadable[T](clean(reason))
}

func jsonError(err error) string {
	var s *json.SyntaxError
	if errors.As(err, &s) {
		return fmt.Sprintf("the answer is no JSON at byte %d: %s", s.Offset, strings.TrimPrefix(s.Error(), "json: "))
	}
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		return fmt.Sprintf("the answer has a JSON %.40s at byte %d where %s should be", t.Value, t.Offset, t.Type)
	}
	return "the answer is cut: " + err.Error()
}

// cleanJSON replaces what is not printable, escaped or not, by a question mark: strings
// of answers reach terminals. Tabs become spaces, and so do ends of lines unless the
// answer is a text of lines.
func cleanJSON(b []byte, lines bool) []byte {
	plain := true
	for _, c := range b {
		if c >= 0x7f || c == '\\' {
			plain = false
			break
		}
	}
	if plain {
		return b
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		n := 1
		switch {
		case b[i] == '\\' && i+1 < len(b):
			n = escaped(b[i:])
			out = append(out, escape(b[i:i+n], lines)...)
		case b[i] >= 0x7f:
			var r rune
			if r, n = utf8.DecodeRune(b[i:]); printable(r) {
				out = append(out, b[i:i+n]...)
			} else {
				out = append(out, '?')
			}
		default:
			out = append(out, b[i])
		}
		i += n
	}
	return out
}

// escaped is the length of the escape that a text begins with; that of a character of
// two halves has both.
func escaped(b []byte) int {
	if b[1] != 'u' || len(b) < 6 {
		return 2
	}
	if utf16.IsSurrogate(hexRune(b[2:6])) && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' && utf16.IsSurrogate(hexRune(b[8:12])) {
		return 12
	}
	return 6
}

// escape is what stands for an escape.
func escape(b []byte, lines bool) []byte {
	switch {
	case b[1] == 'n' && lines:
		return b
	case b[1] == 'n' || b[1] == 'r' || b[1] == 't':
		return []byte{' '}
	case b[1] == 'b' || b[1] == 'f':
		return []byte{'?'}
	case len(b) == 12:
		if printable(utf16.DecodeRune(hexRune(b[2:6]), hexRune(b[8:12]))) {
			return b
		}
		return []byte{'?'}
	case len(b) == 6:
		if r := hexRune(b[2:6]); r >= 0 && !printable(r) {
			return []byte{'?'}
		}
	}
	return b
}

// hexRune is the character of four hexadecimal digits; -1 if they are none.
func hexRune(b []byte) rune {
	n, err := strconv.ParseUint(string(b), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
