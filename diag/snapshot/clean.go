package snapshot

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// printable reports whether a character may stand in a value: it is valid, and neither
// steers a terminal, ends a line, turns the direction of text nor is unseen.
func printable(r rune) bool { return r != utf8.RuneError && unicode.IsPrint(r) }

// CleanText replaces what is not printable in a text of one line by a question mark.
func CleanText(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return strings.Map(func(r rune) rune {
				if !printable(r) {
					return '?'
				}
				return r
			}, s)
		}
	}
	return s
}

// CleanJSON replaces what is not printable, escaped or not, by a question mark: strings
// of answers reach terminals. Tabs become spaces, and so do ends of lines unless the
// answer is a text of lines.
func CleanJSON(b []byte, lines bool) []byte {
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
