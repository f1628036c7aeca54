package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxMemory bounds what a file may become: some bytes of text can be many of
// memory.
const maxMemory = 4 << 30

// decoder reads a document token by token, so that every complaint has a place.
type decoder struct {
	lines lineReader
	dec   *json.Decoder
	plans map[reflect.Type]*plan
	used  int64
	// places are where the elements of the run's lists begin.
	places map[string][]int64
}

func newDecoder(r io.Reader) *decoder {
	d := &decoder{plans: map[reflect.Type]*plan{}, places: map[string][]int64{}}
	d.lines.r = r
	d.dec = json.NewDecoder(&d.lines)
	d.dec.UseNumber()
	return d
}

// lineReader notes where lines begin, and refuses what is too long.
type lineReader struct {
	r      io.Reader
	n      int64
	starts []int64
}

var errTooLong = errors.New("file of a run: too long")

func (l *lineReader) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	for i, c := range b[:n] {
		if c == '\n' {
			l.starts = append(l.starts, l.n+int64(i)+1)
		}
	}
	if l.n += int64(n); l.n > MaxJSON {
		return 0, errTooLong
	}
	return n, err
}

// place returns line and column of an offset, counted from 1.
func (l *lineReader) place(off int64) string {
	i := sort.Search(len(l.starts), func(i int) bool { return l.starts[i] > off })
	start := int64(0)
	if i > 0 {
		start = l.starts[i-1]
	}
	return strconv.Itoa(i+1) + ":" + strconv.FormatInt(off-start+1, 10)
}

// fault makes the one line that says what is wrong where.
func (d *decoder) fault(off int64, path, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if path != "" {
		what = path + ": " + what
	}
	return errors.New(d.lines.place(max(off, 0)) + ": " + oneLine(what))
}

// oneLine escapes what a file's own names would do to a terminal.
func oneLine(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) < 0 && utf8.ValidString(s) {
		return s
	}
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// next returns the next token and where it ends.
func (d *decoder) next(path string) (json.Token, error) {
	t, err := d.dec.Token()
	if err != nil {
		return nil, d.broken(err, path)
	}
	return t, nil
}

// broken says why the next token or value could not be read.
func (d *decoder) broken(err error, path string) error {
	var bad *json.SyntaxError
	switch {
	case errors.As(err, &bad):
		return d.fault(bad.Offset-1, path, "not JSON: %s", strings.TrimPrefix(bad.Error(), "json: "))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return d.fault(d.lines.n, path, "the file ends early")
	case errors.Is(err, errTooLong):
		return fmt.Errorf("file of a run: larger than %d bytes", MaxJSON)
	}
	return err // of the reader
}

// document reads the head first: what is no file of a run should say so, and
// not complain of its first odd field.
func (d *decoder) document(doc *document) error {
	if err := d.open('{', ""); err != nil {
		return err
	}
	for d.dec.More() {
		key, err := d.key("")
		if err != nil {
			return err
		}
		switch key {
		case "format":
			err = d.value(reflect.ValueOf(&doc.Format).Elem(), key, nil)
			if err == nil && doc.Format != jsonFormat {
				err = d.fault(d.dec.InputOffset()-1, key, "%q: must be %q", doc.Format, jsonFormat)
			}
		case "version":
			err = d.value(reflect.ValueOf(&doc.Version).Elem(), key, nil)
			if err == nil && (doc.Version < 1 || doc.Version > JSONVersion) {
				err = d.fault(d.dec.InputOffset()-1, key, "%d: this program reads 1 to %d", doc.Version, JSONVersion)
			}
		case "reduced":
			err = d.value(reflect.ValueOf(&doc.Reduced).Elem(), key, nil)
		case "run":
			if doc.Format == "" || doc.Version == 0 {
				return d.fault(d.dec.InputOffset()-1, key, "format and version must be before it")
			}
			err = d.value(reflect.ValueOf(&doc.Run).Elem(), "", nil)
		default:
			err = d.skip(key)
		}
		if err != nil {
			return err
		}
	}
	if _, err := d.next(""); err != nil { // the brace
		return err
	}
	if doc.Version == 0 || doc.Format == "" {
		return d.fault(0, "", "no file of a run: format and version are missing")
	}
	if _, err := d.dec.Token(); !errors.Is(err, io.EOF) {
		return d.fault(d.dec.InputOffset(), "", "something follows the end of the run")
	}
	return nil
}

func (d *decoder) open(want json.Delim, path string) error {
	t, err := d.next(path)
	if err != nil {
		return err
	}
	if t != want {
		return d.fault(d.dec.InputOffset()-1, path, "%s where %s is needed", nameOf(t), nameOf(want))
	}
	return nil
}

func (d *decoder) key(path string) (string, error) {
	t, err := d.next(path)
	if err != nil {
		return "", err
	}
	s, _ := t.(string) // the reader of tokens lets nothing else through
	return s, nil
}

func nameOf(t json.Token) string {
	switch v := t.(type) {
	case json.Delim:
		if v == '{' || v == '}' {
			return "an object"
		}
		return "a list"
	case string:
		return "a text"
	case json.Number:
		return "the number " + v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return "null"
}

// skip leaves out a value, however deep.
func (d *decoder) skip(path string) error {
	for depth := 0; ; {
		t, err := d.next(path)
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

func (d *decoder) value(v reflect.Value, path string, f *field) error {
	switch v.Kind() {
	case reflect.Struct:
		if err := d.open('{', path); err != nil {
			return err
		}
		return d.members(v, path)
	case reflect.Slice:
		return d.list(v, path)
	case reflect.Array:
		return d.prios(v, path)
	default:
	}
	t, err := d.next(path)
	if err != nil {
		return err
	}
	if what := d.scalar(v, t, f); what != "" {
		return d.fault(d.dec.InputOffset()-1, path, "%s", what)
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// members reads the fields of a struct up to its closing brace.
func (d *decoder) members(v reflect.Value, path string) error {
	p := planOf(d.plans, v.Type())
	for d.dec.More() {
		key, err := d.key(path)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(p.fields, func(f field) bool { return f.name == key })
		if i < 0 {
			err = d.skip(join(path, key))
		} else {
			err = d.value(v.Field(p.fields[i].index), join(path, key), &p.fields[i])
		}
		if err != nil {
			return err
		}
	}
	_, err := d.next(path) // the brace
	return err
}

func (d *decoder) list(v reflect.Value, path string) error {
	if values, ok := v.Addr().Interface().(*[]int64); ok {
		return d.values(values, path)
	}
	if err := d.open('[', path); err != nil {
		return err
	}
	v.SetLen(0)
	top := !strings.ContainsAny(path, ".[")
	if top {
		d.places[path] = nil
	}
	for i := 0; d.dec.More(); i++ {
		if d.used += int64(v.Type().Elem().Size()); d.used > maxMemory {
			return d.fault(d.dec.InputOffset(), path, "more than %d bytes of memory are needed", int64(maxMemory))
		}
		v.Grow(1)
		v.SetLen(i + 1)
		v.Index(i).SetZero()
		if err := d.value(v.Index(i), path+"["+strconv.Itoa(i)+"]", nil); err != nil {
			return err
		}
		if top {
			d.places[path] = append(d.places[path], d.dec.InputOffset()-1)
		}
	}
	_, err := d.next(path)
	return err
}

// values reads the samples of a series in one go: there are millions.
func (d *decoder) values(v *[]int64, path string) error {
	*v = nil
	start := d.dec.InputOffset()
	err := d.dec.Decode(v)
	var bad *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &bad):
		return d.fault(d.dec.InputOffset()-1, path, "a list in which %s is not a whole number of 64 bits", bad.Value)
	case errors.As(err, &syntax): // its offset is not of the file
		return d.fault(start, path, "not JSON: %s", syntax.Error())
	case err != nil:
		return d.broken(err, path)
	}
	if d.used += 8 * int64(cap(*v)); d.used > maxMemory {
		return d.fault(d.dec.InputOffset(), path, "more than %d bytes of memory are needed", int64(maxMemory))
	}
	return nil
}

// prios reads elements of an array that say their own number.
func (d *decoder) prios(v reflect.Value, path string) error {
	if err := d.open('[', path); err != nil {
		return err
	}
	for d.dec.More() {
		if err := d.open('{', path); err != nil {
			return err
		}
		key, err := d.key(path)
		if err != nil {
			return err
		}
		if key != "prio" {
			return d.fault(d.dec.InputOffset()-1, path, "%q where \"prio\" must be first", key)
		}
		var n int
		if err := d.value(reflect.ValueOf(&n).Elem(), path+".prio", nil); err != nil {
			return err
		}
		if n < 0 || n >= v.Len() {
			return d.fault(d.dec.InputOffset()-1, path+".prio", "%d: must be 0 to %d", n, v.Len()-1)
		}
		if err := d.members(v.Index(n), path+"["+strconv.Itoa(n)+"]"); err != nil {
			return err
		}
	}
	_, err := d.next(path)
	return err
}
