package scenario

import (
	"fmt"
	"strings"
	"unicode"
)

// position is a place in a file. Line 0: a command-line override.
type position struct {
	file      string
	line, col int
}

func (p position) String() string {
	if p.line == 0 {
		return p.file
	}
	return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.col)
}

// Error is what is wrong with a file: one line with the place, the key, the
// value and the limit.
type Error struct {
	File string // as given to Parse, or "--set"
	Line int    // from 1; 0 of overrides
	Col  int    // from 1, in characters
	Path string // key: topology.rate, workload[2].bytes; "" for the whole file
	Msg  string
}

// Error returns "file:line:col: key: what".
func (e *Error) Error() string {
	s := position{e.File, e.Line, e.Col}.String()
	if e.Path != "" {
		s += ": " + e.Path
	}
	return s + ": " + e.Msg
}

func errorAt(p position, path, format string, args ...any) *Error {
	return &Error{File: p.file, Line: p.line, Col: p.col, Path: clipPath(path), Msg: oneLine(fmt.Sprintf(format, args...))}
}

// oneLine puts a space in place of every run of control characters.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, unicode.IsControl), " ")
}

// clipPath bounds what a hostile file can put into a message.
func clipPath(s string) string {
	const limit = 200
	if s = oneLine(s); len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "..."
	}
	return s
}

// join appends a key to a path.
func join(path, key string) string {
	if path == "" || key == "" {
		return path + key
	}
	return path + "." + key
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// nearest returns the candidate that is most like the key, or "".
func nearest(key string, candidates []string) string {
	candidates = candidates[:min(len(candidates), 10_000)] // a hint is not worth more
	best, dist := "", 1+max(1, len(key)/3)
	for _, c := range candidates {
		if d := distance(key, c, dist); d < dist && d < len(key) {
			best, dist = c, d
		}
	}
	if best != "" {
		return best
	}
	plain := strings.NewReplacer("_", "", "-", "", " ", "")
	for _, c := range candidates {
		if strings.EqualFold(plain.Replace(key), plain.Replace(c)) {
			return c
		}
	}
	return ""
}

// distance is the number of edits between two short texts, or limit.
func distance(a, b string, limit int) int {
	if len(a) > 64 || len(b) > 64 || len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	cur := make([]int, len(b)+1)
	var before []int // two rows up, for swapped neighbours
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if before != nil && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before = append([]int(nil), prev...)
		prev, cur = cur, prev
	}
	return prev[len(b)]
}
