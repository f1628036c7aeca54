package read

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// Bounds of a snapshot.
const (
	maxQuestions = 1 << 20   // files, directories, links and queries
	maxBytes     = 512 << 20 // of answers in all
	maxProblems  = 1000
	maxDevices   = 1024
	maxPorts     = 256 // IBA allows 255
	maxGIDs      = 1 << 12
	maxCounters  = 1 << 12 // of one set
	maxNetdevs   = 1 << 14
	maxText      = 4096 // characters of a value
)

// reader fills one snapshot.
type reader struct {
	src       source.Source
	opt       Options
	snap      *snapshot.Snapshot
	questions int
	bytes     int
	dropped   int // problems beyond the limit
	spent     bool
	nets      *interfaces // once they are asked for
}

// errSpent is every answer after a bound of the snapshot was reached; it is a problem
// once.
var errSpent = errors.New("not read: the snapshot has reached its limit")

// spend counts a question.
func (r *reader) spend() error {
	r.questions++
	if r.questions <= maxQuestions && r.bytes <= maxBytes {
		return nil
	}
	if !r.spent {
		r.spent = true
		r.problem("snapshot", fmt.Sprintf("more than %d places or %d bytes: the rest is not read", maxQuestions, maxBytes))
	}
	return errSpent
}

func (r *reader) problem(place, why string) {
	if len(r.snap.Problems) >= maxProblems {
		r.dropped++
		return
	}
	r.snap.Problems = append(r.snap.Problems, snapshot.Problem{Place: clean(place), Why: clean(why)})
}

// why is the reason of an error for people.
func why(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	case errors.Is(err, errors.ErrUnsupported):
		return "not supported"
	}
	return clean(err.Error())
}

// file reads a file. ok is false without content: then the reason is empty if the
// host has no such file.
func (r *reader) file(name string) (b []byte, reason string, ok bool) {
	if err := r.spend(); err != nil {
		return nil, err.Error(), false
	}
	b, err := r.src.ReadFile(name)
	r.bytes += len(b)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", false
	}
	if err != nil {
		return nil, why(err), false
	}
	return b, "", true
}

// value reads a file of one line into a value.
func value[T any](r *reader, name string, parse func(string) (T, error)) snapshot.Value[T] {
	v := quiet(r, name, parse)
	if !v.IsKnown() && !v.IsZero() && v.Why() != errSpent.Error() {
		r.problem(name, v.Why())
	}
	return v
}

// quiet is value for files that may be refused in good health: it makes no problem.
func quiet[T any](r *reader, name string, parse func(string) (T, error)) snapshot.Value[T] {
	b, reason, ok := r.file(name)
	if !ok {
		if reason == "" {
			return snapshot.Value[T]{}
		}
		return snapshot.Unreadable[T](reason)
	}
	v, err := parse(clean(string(b)))
	if err != nil {
		return snapshot.Unreadable[T](clean(err.Error()))
	}
	return snapshot.Known(v)
}

// list returns the names in a directory that can be names here: no control
// characters, UTF-8, at most limit of them. A directory that is not there has none.
func (r *reader) list(name string, limit int) []string {
	names, reason := r.tryList(name, limit)
	if reason != "" {
		r.problem(name, reason)
	}
	return names
}

// tryList is list that leaves what to say about a failure to the caller.
func (r *reader) tryList(name string, limit int) (names []string, reason string) {
	if r.spend() != nil {
		return nil, ""
	}
	names, err := r.src.ReadDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ""
	}
	if err != nil {
		return nil, why(err)
	}
	kept := names[:0:0]
	for _, n := range names {
		r.bytes += len(n)
		if len(kept) == limit {
			r.problem(name, fmt.Sprintf("%d entries: only the first %d are read", len(names), limit))
			break
		}
		if n == "" || clean(n) != n || strings.ContainsRune(n, '/') || n == "." || n == ".." {
			r.problem(name, fmt.Sprintf("an entry has the odd name %.60q: not read", n))
			continue
		}
		kept = append(kept, n)
	}
	return kept, ""
}

// link returns the last part of a link's target, empty if it is no link.
func (r *reader) link(name string) string {
	if r.spend() != nil {
		return ""
	}
	target, err := r.src.ReadLink(name)
	if err != nil {
		return ""
	}
	target = clean(target)
	return target[strings.LastIndexByte(target, '/')+1:]
}

// clean makes text fit for a line: printable characters, valid UTF-8, bounded, no space
// around it.
func clean(s string) string {
	s = strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == 0 })
	s = snapshot.CleanText(s)
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "")
	}
	return s
}

// Parsers of one line.

func text(s string) (string, error) { return s, nil }

func number(s string) (int, error) {
	n, err := strconv.ParseInt(s, 0, strconv.IntSize)
	if err != nil {
		return 0, odd(s, "a number")
	}
	return int(n), nil
}

func number64(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, odd(s, "a number")
	}
	return n, nil
}

// seconds reads the first word of /proc/uptime.
func seconds(s string) (float64, error) {
	word, _, _ := strings.Cut(s, " ")
	v, err := strconv.ParseFloat(word, 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return 0, odd(s, "seconds")
	}
	return v, nil
}

func unsigned(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, odd(s, "a number")
	}
	return n, nil
}

func mask32(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		return 0, odd(s, "a number of 32 bits")
	}
	return uint32(n), nil
}

func flag(s string) (bool, error) {
	switch s {
	case "0", "N", "n":
		return false, nil
	case "1", "Y", "y":
		return true, nil
	}
	return false, odd(s, "0 or 1")
}

// code reads the number in front of a colon: "4: ACTIVE".
func code(s string) (int, error) {
	head, _, _ := strings.Cut(s, ":")
	n, err := strconv.Atoi(strings.TrimSpace(head))
	if err != nil {
		return 0, odd(s, `a number and a word, as "4: ACTIVE"`)
	}
	return n, nil
}

// odd says that text is not what it should be. What a driver writes instead of a
// number for people, "N/A (no PMA)", stands alone.
func odd(s, want string) error {
	if strings.HasPrefix(s, "N/A") {
		return fmt.Errorf("%.60s", s)
	}
	if s == "" {
		return fmt.Errorf("empty: not %s", want)
	}
	return fmt.Errorf("%.40q is not %s", s, want)
}
