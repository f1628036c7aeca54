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
	return snapshot.CleanJSON(b, query == source.QueryIPTables || query == source.QueryIP6Tables), "", true
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

// tell is ask for what a source may have as values already, with clean texts: then
// nothing is written and read as JSON in between.
func tell[T any](r *reader, query string) snapshot.Value[T] {
	t, ok := r.src.(source.Teller)
	if !ok {
		return ask[T](r, query)
	}
	if err := r.spend(); err != nil {
		return refused[T](r, query, err.Error())
	}
	answer, err := t.Tell(query)
	v, ok := answer.(T)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return snapshot.Value[T]{}
	case err != nil:
		return refused[T](r, query, why(err))
	case !ok: // not as a value
		return ask[T](r, query)
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
