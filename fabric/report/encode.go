package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// encoder writes a document; the first error of the writer stays.
type encoder struct {
	w     io.Writer
	b     []byte
	err   error
	plans map[reflect.Type]*plan
}

func (e *encoder) flush() error {
	if e.err == nil && len(e.b) > 0 {
		_, e.err = e.w.Write(e.b)
	}
	e.b = e.b[:0]
	return e.err
}

func (e *encoder) s(s string) { e.b = append(e.b, s...) }

// spill hands a large piece on, so that the text is never in memory as a whole.
func (e *encoder) spill() {
	if len(e.b) > 1<<16 {
		_ = e.flush() // kept in err
	}
}

func (e *encoder) document(d *document) {
	e.s("{\n\"format\": ")
	e.text(d.Format)
	e.s(",\n\"version\": ")
	e.b = strconv.AppendInt(e.b, int64(d.Version), 10)
	if len(d.Reduced) > 0 {
		e.s(",\n\"reduced\": ")
		e.value(reflect.ValueOf(d.Reduced), nil)
	}
	e.s(",\n\"run\": {")
	run := reflect.ValueOf(&d.Run).Elem()
	first := true
	for _, f := range planOf(e.plans, run.Type()).fields {
		v := run.Field(f.index)
		if absent(v, false) {
			continue
		}
		if !first {
			e.s(",")
		}
		first = false
		e.s("\n\"" + f.name + "\": ")
		if v.Kind() == reflect.Slice {
			e.lines(v)
		} else {
			e.value(v, &f)
		}
		e.spill()
	}
	e.s("\n}\n}\n")
}

// lines writes a list with a line for each element.
func (e *encoder) lines(v reflect.Value) {
	e.s("[")
	for i := range v.Len() {
		if i > 0 {
			e.s(",")
		}
		e.s("\n")
		e.value(v.Index(i), nil)
		e.spill()
	}
	e.s("\n]")
}

// absent says whether a field is left out.
func absent(v reflect.Value, sparse bool) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Bool:
		return !v.Bool()
	case reflect.Struct, reflect.Array:
		return v.IsZero()
	default:
		return sparse && v.IsZero()
	}
}

func (e *encoder) value(v reflect.Value, f *field) {
	switch v.Kind() {
	case reflect.Struct:
		e.s("{")
		e.members(v, true)
		e.s("}")
	case reflect.Slice:
		e.s("[")
		for i := range v.Len() {
			if i > 0 {
				e.s(",")
			}
			e.value(v.Index(i), nil)
		}
		e.s("]")
	case reflect.Array:
		e.prios(v)
	case reflect.String:
		e.text(v.String())
	case reflect.Bool:
		e.b = strconv.AppendBool(e.b, v.Bool())
	case reflect.Float64:
		b, err := json.Marshal(v.Float())
		if err != nil && e.err == nil {
			e.err = fmt.Errorf("write JSON: %v is not a number", v.Float())
		}
		e.b = append(e.b, b...)
	default:
		e.integer(v, f)
	}
}

func (e *encoder) integer(v reflect.Value, f *field) {
	switch v.Kind() {
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := v.Uint()
		if ws := words(v.Type()); n < uint64(len(ws)) {
			e.text(ws[n])
			return
		}
		switch {
		case f != nil && f.hex:
			e.b = fmt.Appendf(e.b, `"0x%016x"`, n)
		case f != nil && f.text:
			e.b = append(strconv.AppendUint(append(e.b, '"'), n, 10), '"')
		default:
			e.b = strconv.AppendUint(e.b, n, 10)
		}
	default:
		if v.Type() == timeType && sim.Time(v.Int()) == sim.Never {
			e.s("null")
			return
		}
		e.b = strconv.AppendInt(e.b, v.Int(), 10)
	}
}

// members writes the fields of a struct; first says that none has been written.
func (e *encoder) members(v reflect.Value, first bool) {
	p := planOf(e.plans, v.Type())
	for i := range p.fields {
		f := &p.fields[i]
		m := v.Field(f.index)
		if absent(m, p.sparse) {
			continue
		}
		if !first {
			e.s(",")
		}
		first = false
		e.s("\"" + f.name + "\":")
		e.value(m, f)
	}
}

// prios writes the elements of an array that are not zero, with their number.
func (e *encoder) prios(v reflect.Value) {
	e.s("[")
	first := true
	for i := range v.Len() {
		if v.Index(i).IsZero() {
			continue
		}
		if !first {
			e.s(",")
		}
		first = false
		e.s(`{"prio":` + strconv.Itoa(i))
		e.members(v.Index(i), false)
		e.s("}")
	}
	e.s("]")
}

// text writes a string. Broken UTF-8 becomes U+FFFD; what a terminal or a page
// would not show as a character is escaped.
func (e *encoder) text(s string) {
	b, _ := json.Marshal(s) // a string always can
	if bytes.IndexFunc(b, hidden) < 0 {
		e.b = append(e.b, b...)
		return
	}
	for _, r := range string(b) {
		switch {
		case !hidden(r):
			e.b = utf8.AppendRune(e.b, r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			e.b = fmt.Appendf(e.b, `\u%04x\u%04x`, hi, lo)
		default:
			e.b = fmt.Appendf(e.b, `\u%04x`, r)
		}
	}
}

func hidden(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
