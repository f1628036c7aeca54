package scenario

import (
	"strconv"
	"strings"
)

// Span reads a range of names, host8..host23 or host8..23: the first and last
// number and what stands before them. ok is false for every other text.
func Span(s string) (lo, hi int64, prefix string, ok bool) {
	a, b, found := strings.Cut(s, "..")
	if !found {
		return 0, 0, "", false
	}
	prefix = strings.TrimRight(a, "0123456789")
	lo, ok = numbered(a, prefix)
	if !ok {
		return 0, 0, "", false
	}
	if hi, ok = numbered(b, prefix); !ok {
		hi, ok = numbered(b, "")
	}
	return lo, hi, prefix, ok && hi >= lo
}

// numbered reads the number behind a prefix.
func numbered(s, prefix string) (int64, bool) {
	digits, ok := strings.CutPrefix(s, prefix)
	if !ok || digits == "" || len(digits) > 9 || strings.Trim(digits, "0123456789") != "" || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}
