package token

import (
	"bufio"
	"fmt"
	"io"
)

// MaxField is how many bytes a field may have.
const MaxField = 256

// Field is a piece of text and its place.
type Field struct {
	Text string
	Line int  // from 1
	Col  int  // in bytes, from 1
	New  bool // it is the first of its line
}

// Error is a complaint about a place in a file: one line of text.
type Error struct {
	File string
	Line int // 0: the file as a whole
	Col  int // 0: the line as a whole
	Msg  string
}

// Error returns "file:line:col: message".
func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	case e.Col == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
}

// Reader cuts a text into fields. Fields are separated by spaces and tabs, or
// by Comma; "#" begins a comment that lasts to the end of the line.
type Reader struct {
	// Comma, if not 0, separates fields (which may then be empty) instead of
	// white space; white space around a field is not part of it.
	Comma byte

	in        *bufio.Reader
	name      string
	line, col int // of the byte that is read next
	fresh     bool
	after     bool // a comma came last: a field follows, even an empty one
	buf       [MaxField]byte
	peeked    bool
	next      Field
	err       error
}

// NewReader returns a reader of the text of a file of that name, which is for
// errors only.
func NewReader(r io.Reader, name string) *Reader {
	return &Reader{in: bufio.NewReader(r), name: name, line: 1, col: 1, fresh: true}
}

// Next returns the next field; false at the end and after an error.
func (r *Reader) Next() (Field, bool) {
	if r.peeked {
		r.peeked = false
		return r.next, r.next.Line > 0
	}
	return r.scan()
}

// Peek returns the field that Next will return.
func (r *Reader) Peek() (Field, bool) {
	if !r.peeked {
		r.next, _ = r.scan()
		r.peeked = true
	}
	return r.next, r.next.Line > 0
}

// More reports whether the next field is on the same line as the last one.
func (r *Reader) More() bool {
	f, ok := r.Peek()
	return ok && !f.New
}

// Err returns what went wrong, nil at a regular end.
func (r *Reader) Err() error { return r.err }

// Line returns the line at which reading stands.
func (r *Reader) Line() int { return r.line }

// Fail makes an error about a field. The first error of a reader stays, and
// ends it.
func (r *Reader) Fail(f Field, format string, args ...any) error {
	return r.fail(f.Line, f.Col, format, args...)
}

// FailEnd makes an error about what is missing where reading stands.
func (r *Reader) FailEnd(format string, args ...any) error {
	if r.peeked && r.next.Line > 0 {
		return r.Fail(r.next, format, args...)
	}
	return r.fail(r.line, 0, format, args...)
}

// FailFile makes an error about the whole file.
func (r *Reader) FailFile(format string, args ...any) error { return r.fail(0, 0, format, args...) }

func (r *Reader) fail(line, col int, format string, args ...any) error {
	if r.err == nil {
		r.err = &Error{r.name, line, col, fmt.Sprintf(format, args...)}
	}
	r.peeked, r.next = true, Field{}
	return r.err
}

func (r *Reader) scan() (Field, bool) {
	if r.err != nil {
		return Field{}, false
	}
	f := Field{}
	n, tail := 0, 0 // bytes taken; of them without trailing white space
	for {
		b, err := r.in.ReadByte()
		if err != nil {
			if err != io.EOF {
				r.err = fmt.Errorf("%s:%d: %w", r.name, r.line, err)
				return Field{}, false
			}
			return r.end(f, tail, r.col)
		}
		at := r.col
		r.col++
		switch {
		case b == '\n':
			if g, ok := r.end(f, tail, at); ok {
				// The newline is for the next call, which begins a line.
				r.newline()
				return g, true
			}
			r.newline()
			n, tail, f = 0, 0, Field{}
			continue
		case b == '#':
			r.comment()
			continue
		case b == ' ' || b == '\t' || b == '\r':
			if n == 0 {
				continue
			}
			if r.Comma == 0 {
				return r.take(f, tail), true
			}
		case r.Comma != 0 && b == r.Comma:
			if n == 0 {
				f.Line, f.Col = r.line, at
			}
			g := r.take(f, tail)
			r.after = true
			return g, true
		}
		if n == 0 {
			f.Line, f.Col = r.line, at
		}
		if n == len(r.buf) {
			return Field{}, r.fail(f.Line, f.Col, "field is longer than %d bytes", MaxField) == nil
		}
		r.buf[n] = b
		n++
		if b != ' ' && b != '\t' && b != '\r' {
			tail = n
		}
	}
}

// end is take at the end of a line or of the file, where a field is only due
// if there is text or a comma came before.
func (r *Reader) end(f Field, n, at int) (Field, bool) {
	if f.Line == 0 {
		if !r.after {
			return Field{}, false
		}
		f.Line, f.Col = r.line, at
	}
	return r.take(f, n), true
}

func (r *Reader) take(f Field, n int) Field {
	f.Text = string(r.buf[:n])
	f.New = r.fresh
	r.fresh, r.after = false, false
	return f
}

func (r *Reader) newline() {
	r.line++
	r.col = 1
	r.fresh, r.after = true, false
}

// comment skips to the end of the line and leaves the newline.
func (r *Reader) comment() {
	for {
		b, err := r.in.ReadByte()
		if err != nil {
			return // the next read tells
		}
		if b == '\n' {
			_ = r.in.UnreadByte() // a byte has just been read
			return
		}
		r.col++
	}
}
