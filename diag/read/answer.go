package read

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

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

// cleanJSON replaces escapes of control characters, and control characters of
// Unicode's second block, by a question mark: strings of answers reach terminals.
// Tabs become spaces, and so do ends of lines unless the answer is a text of lines.
func cleanJSON(b []byte, lines bool) []byte {
	if bytes.IndexByte(b, '\\') < 0 && bytes.IndexByte(b, 0xc2) < 0 {
		return b
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == 0xc2 && i+1 < len(b) && b[i+1] >= 0x80 && b[i+1] < 0xa0:
			out = append(out, '?')
			i++
		case b[i] != '\\' || i+1 == len(b):
			out = append(out, b[i])
		case b[i+1] == 'n' && lines:
			out = append(out, b[i], b[i+1])
			i++
		case bytes.IndexByte([]byte("nrt"), b[i+1]) >= 0:
			out = append(out, ' ')
			i++
		case b[i+1] == 'b' || b[i+1] == 'f':
			out = append(out, '?')
			i++
		case b[i+1] == 'u' && i+5 < len(b) && controlEscape(b[i+2:i+6]):
			out = append(out, '?')
			i += 5
		default:
			out = append(out, b[i], b[i+1])
			i++
		}
	}
	return out
}

// controlEscape reports whether four hexadecimal digits are a control character or
// one that turns the direction of text.
func controlEscape(hex []byte) bool {
	var n uint32
	if _, err := fmt.Sscanf(string(hex), "%04x", &n); err != nil {
		return false
	}
	return n < 0x20 || n >= 0x7f && n < 0xa0 || n >= 0x202a && n <= 0x202e || n >= 0x2066 && n <= 0x2069
}
