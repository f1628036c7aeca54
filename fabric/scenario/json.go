package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// readJSON parses JSON into a tree, with places. Numbers keep their text.
func readJSON(name string, data []byte) (*node, error) {
	if len(data) > MaxFile {
		return nil, errorAt(position{name, 1, 1}, "", "the file has %d bytes, the limit is %d", len(data), MaxFile)
	}
	r := jsonReader{file: name, data: data, d: json.NewDecoder(bytes.NewReader(data))}
	r.d.UseNumber()
	n, err := r.value(0)
	if err != nil {
		return nil, r.place(err)
	}
	if _, err := r.d.Token(); !errors.Is(err, io.EOF) {
		return nil, r.place(fmt.Errorf("something follows the value"))
	}
	return n, nil
}

type jsonReader struct {
	file  string
	data  []byte
	d     *json.Decoder
	nodes int
	// Where the last count of lines and characters ended: places come in order.
	offset, line, col int
}

// here returns the place of the next token.
func (r *jsonReader) here() position {
	at := int(r.d.InputOffset())
	for at < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[at]) >= 0 {
		at++
	}
	return r.at(at)
}

func (r *jsonReader) at(offset int) position {
	if offset < r.offset {
		r.offset, r.line, r.col = 0, 0, 0
	}
	for ; r.offset < min(offset, len(r.data)); r.offset++ {
		switch b := r.data[r.offset]; {
		case b == '\n':
			r.line, r.col = r.line+1, 0
		case b&0xc0 != 0x80:
			r.col++ // characters, not bytes
		}
	}
	return position{r.file, r.line + 1, r.col + 1}
}

// place makes an error of the decoder one of ours.
func (r *jsonReader) place(err error) error {
	var mine *Error
	if errors.As(err, &mine) {
		return err
	}
	var syn *json.SyntaxError
	if errors.As(err, &syn) {
		// The offset is that of the character, or the one behind it.
		at := int(syn.Offset)
		if c := syn.Error(); at >= len(r.data) || !strings.HasPrefix(c, "invalid character '"+string(r.data[at])) {
			at = max(0, at-1)
		}
		return errorAt(r.at(at), "", "%s", syn.Error())
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errorAt(r.at(len(r.data)), "", "the file ends inside a value")
	}
	return errorAt(r.here(), "", "%s", err)
}

func (r *jsonReader) value(depth int) (*node, error) {
	pos := r.here()
	if depth > maxDepth {
		return nil, errorAt(pos, "", "nested more than %d deep", maxDepth)
	}
	if r.nodes++; r.nodes > maxNodes {
		return nil, errorAt(pos, "", "more than %d values", maxNodes)
	}
	t, err := r.d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			return r.list(pos, depth)
		}
		return r.object(pos, depth)
	case string:
		return &node{kind: scalarKind, pos: pos, text: t}, nil
	case json.Number:
		return &node{kind: scalarKind, pos: pos, text: t.String(), bare: true}, nil
	case bool:
		return &node{kind: scalarKind, pos: pos, text: fmt.Sprint(t), bare: true}, nil
	}
	return &node{kind: nullKind, pos: pos}, nil
}

func (r *jsonReader) list(pos position, depth int) (*node, error) {
	n := &node{kind: listKind, pos: pos}
	for r.d.More() {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, v)
	}
	_, err := r.d.Token()
	return n, err
}

func (r *jsonReader) object(pos position, depth int) (*node, error) {
	n := &node{kind: mapKind, pos: pos}
	seen := map[string]int{}
	for r.d.More() {
		at := r.here()
		t, err := r.d.Token()
		if err != nil {
			return nil, err
		}
		key, ok := t.(string)
		if !ok {
			return nil, errorAt(at, "", "a key must be a text")
		}
		if line, ok := seen[key]; ok {
			return nil, errorAt(at, clip(key), "given twice; first in line %d", line)
		}
		seen[key] = at.line
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.entries = append(n.entries, entry{key, at, v})
	}
	_, err := r.d.Token()
	return n, err
}

// appendJSON writes a tree with four spaces for each level, as SONiC does.
func (n *node) appendJSON(b []byte, depth int) []byte {
	switch n.kind {
	case scalarKind:
		if n.bare {
			return append(b, n.text...)
		}
		return appendText(b, n.text)
	case mapKind:
		if len(n.entries) == 0 {
			return append(b, "{}"...)
		}
		b = append(b, '{')
		for i, e := range n.entries {
			b = newline(b, i, depth+1)
			b = append(appendText(b, e.key), ": "...)
			b = e.val.appendJSON(b, depth+1)
		}
		return append(newline(b, 0, depth), '}')
	case listKind:
		if len(n.items) == 0 {
			return append(b, "[]"...)
		}
		b = append(b, '[')
		for i, x := range n.items {
			b = newline(b, i, depth+1)
			b = x.appendJSON(b, depth+1)
		}
		return append(newline(b, 0, depth), ']')
	case nullKind:
	}
	return append(b, "null"...)
}

func newline(b []byte, i, depth int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	b = append(b, '\n')
	for range depth {
		b = append(b, "    "...)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a text always encodes
	return append(b, bytes.TrimRight(buf.Bytes(), "\n")...)
}
