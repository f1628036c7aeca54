package listing

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// row is an object of the rdma tool in both of its forms.
type row struct {
	text []byte
	json []byte // members with commas between
}

func (r *row) key(name string) {
	if len(r.json) > 0 {
		r.json = append(r.json, ',')
	}
	r.json = append(r.json, quote(name)...)
	r.json = append(r.json, ':')
}

// lead starts the text; it has no JSON.
func (r *row) lead(s string) { r.text = append(r.text, s...) }

func (r *row) word(name, s string) {
	r.text = append(append(append(append(r.text, name...), ' '), s...), ' ')
}

func (r *row) jsonString(name, s string) {
	r.key(name)
	r.json = append(r.json, quote(s)...)
}

func (r *row) jsonNumber(name string, v uint64) {
	r.key(name)
	r.json = strconv.AppendUint(r.json, v, 10)
}

func (r *row) str(name, s string) {
	r.word(name, s)
	r.jsonString(name, s)
}

func (r *row) num(name string, v uint64) {
	r.word(name, strconv.FormatUint(v, 10))
	r.jsonNumber(name, v)
}

// hex has 0x in the text and is a string without it in JSON.
func (r *row) hex(name string, v uint64) {
	s := strconv.FormatUint(v, 16)
	r.word(name, "0x"+s)
	r.jsonString(name, s)
}

func (r *row) onOff(name string, on bool) {
	s := "off"
	if on {
		s = "on"
	}
	r.word(name, s)
	r.key(name)
	r.json = strconv.AppendBool(r.json, on)
}

func known[T any](v snapshot.Value[T], put func(T)) {
	if x, ok := v.Get(); ok {
		put(x)
	}
}

func (r *row) maybeNum(name string, v snapshot.Value[uint32]) {
	known(v, func(x uint32) { r.num(name, uint64(x)) })
}

func (r *row) maybeHex(name string, v snapshot.Value[uint32]) {
	known(v, func(x uint32) { r.hex(name, uint64(x)) })
}

func (r *row) maybeStr(name string, v snapshot.Value[string]) {
	known(v, func(x string) { r.str(name, x) })
}

// owner is the process, or in brackets the part of the kernel.
func (r *row) owner(pid snapshot.Value[int], comm string, kernel bool) {
	known(pid, func(p int) { r.num("pid", uint64(p)) })
	if comm == "" {
		return
	}
	if kernel {
		r.word("comm", "["+comm+"]")
	} else {
		r.word("comm", comm)
	}
	r.jsonString("comm", comm)
}

// list is a list of words, in the text on the same line or, as capabilities are, on
// the next.
func (r *row) list(name string, words []string) {
	r.key(name)
	r.json = append(r.json, '[')
	for i, w := range words {
		if i > 0 {
			r.json = append(r.json, ',')
		}
		r.json = append(r.json, quote(w)...)
	}
	r.json = append(r.json, ']')
}

// caps is the line of capabilities, empty where there are none.
func (r *row) caps(names []string) {
	r.text = append(r.text, "\n    caps: <"+strings.Join(names, ", ")+">"...)
	r.list("caps", names)
}

func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string has no errors
	return strings.TrimSuffix(b.String(), "\n")
}

// Form is how the rdma tool prints.
type form struct {
	json, pretty, details bool
}

// indent is what pretty text has before a counter: a new line.
func (f form) indent() string {
	if f.pretty && !f.json {
		return "\n    "
	}
	return ""
}

// print prints rows in a form.
func (f form) print(rows []row) []byte {
	var b []byte
	if !f.json {
		for _, r := range rows {
			b = append(append(b, r.text...), '\n')
		}
		return b
	}
	if !f.pretty {
		b = append(b, '[')
		for i, r := range rows {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(append(b, '{'), r.json...), '}')
		}
		return append(b, "]\n"...)
	}
	b = append(b, "[ "...)
	for i, r := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, "{\n        "...), prettyMembers(r.json)...)
		b = append(b, "\n    }"...)
	}
	if len(rows) > 0 {
		b = append(b, ' ')
	}
	return append(b, "]\n"...)
}

// prettyMembers puts each member on a line of its own, lists on one.
func prettyMembers(members []byte) []byte {
	var b []byte
	inString, depth := false, 0
	for i := 0; i < len(members); i++ {
		c := members[i]
		switch {
		case inString:
			b = append(b, c)
			if c == '\\' && i+1 < len(members) {
				i++
				b = append(b, members[i])
			}
			inString = c != '"'
		case c == '"':
			inString = true
			b = append(b, c)
		case c == ':' && depth == 0:
			b = append(b, ": "...)
		case c == ',' && depth == 0:
			b = append(b, ",\n        "...)
		case c == '[' && i+1 < len(members) && members[i+1] == ']':
			b = append(b, "[ ]"...)
			i++
		case c == '[':
			depth++
			b = append(b, "[ "...)
		case c == ']':
			depth--
			b = append(b, " ]"...)
		default:
			b = append(b, c)
		}
	}
	return b
}
