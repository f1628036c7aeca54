package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Limits of a file. Beyond them it is refused, not read.
const (
	MaxFile  = 16 << 20 // bytes
	maxDepth = 40       // of nesting
	maxNodes = 2 << 20  // after aliases and merges are followed
)

// readTree parses YAML 1.2 into a tree. The library that does it sees only
// files that are valid UTF-8 and not nested deeply.
func readTree(name string, data []byte) (root *node, err error) {
	if len(data) > MaxFile {
		return nil, errorAt(position{file: name, line: 1, col: 1}, "", "the file has %d bytes, the limit is %d; traces belong in files of their own", len(data), MaxFile)
	}
	if err := prescan(name, data); err != nil {
		return nil, err
	}
	// The library is not ours: an input that breaks it must not end the program.
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, errorAt(position{file: name, line: 1, col: 1}, "", "not YAML that can be read: %v", r)
		}
	}()
	f, perr := parser.ParseBytes(data, 0)
	if perr != nil {
		var syn *yaml.SyntaxError
		if errors.As(perr, &syn) && syn.Token != nil && syn.Token.Position != nil {
			p := syn.Token.Position
			return nil, errorAt(position{name, p.Line, p.Column}, "", "%s", syn.Message)
		}
		return nil, errorAt(position{file: name, line: 1, col: 1}, "", "%s", clip(oneLine(perr.Error())))
	}
	c := converter{file: name, anchors: map[string]*node{}}
	for _, d := range f.Docs {
		if d == nil || d.Body == nil {
			continue
		}
		if d.Body.Type() == ast.CommentType || d.Body.Type() == ast.DirectiveType {
			continue
		}
		n, err := c.node(d.Body, 0)
		if err != nil {
			return nil, err
		}
		if root != nil {
			return nil, errorAt(n.pos, "", "a second document; a scenario is one")
		}
		root = n
	}
	if root == nil {
		root = &node{kind: mapKind, pos: position{name, 1, 1}}
	}
	return root, nil
}

// Limits on the shape of a file. The library takes time in the square of
// these; what is larger belongs in a file of flows or links.
const (
	maxLines  = 20_000
	maxKeys   = 5_000   // lines of one map
	maxCommas = 50_000  // of lists and maps on lines
	maxMarks  = 200_000 // of punctuation
)

// prescan refuses what would make the parser recurse, or work, without bound.
func prescan(name string, data []byte) error {
	p := prescanner{name: name, line: 1}
	start := 0
	for i, b := range data {
		switch b {
		case 0:
			return p.fail(i-start, "a zero byte: not a text file")
		case '\n':
			if err := p.endLine(data[start:i]); err != nil {
				return err
			}
			start = i + 1
		case '[', '{':
			p.marks++
			if p.depth++; p.depth > 10*maxDepth {
				return p.fail(i-start, "nested more than %d deep", maxDepth)
			}
		case ']', '}':
			p.marks++
			p.depth = max(0, p.depth-1)
		case ',':
			p.marks++
			if p.commas++; p.commas > maxCommas {
				return p.fail(i-start, "more than %d commas; long lists belong in a file of flows or links", maxCommas)
			}
		case ':', '&', '*', '!', '?', '|', '>', '-', '#', '%', '@', '`', '"', '\'':
			p.marks++
		}
		if p.marks > maxMarks {
			return p.fail(i-start, "more than %d marks of punctuation; long lists belong in a file of flows or links", maxMarks)
		}
	}
	if err := p.endLine(data[start:]); err != nil {
		return err
	}
	return p.text(data)
}

type prescanner struct {
	name                       string
	line, depth, commas, marks int
	siblings                   [64]int // lines at each indentation since one that was less
}

func (p *prescanner) fail(col int, format string, args ...any) error {
	return errorAt(position{p.name, p.line, col + 1}, "", format, args...)
}

func (p *prescanner) endLine(line []byte) error {
	if n := leaders(line); n > maxDepth {
		return p.fail(0, "nested more than %d deep", maxDepth)
	}
	if text := bytes.TrimLeft(line, " "); len(text) > 0 && text[0] != '#' && text[0] != '-' && text[0] != '\r' {
		indent := min(len(line)-len(text), len(p.siblings)-1)
		clear(p.siblings[indent+1:])
		if p.siblings[indent]++; p.siblings[indent] > maxKeys {
			return p.fail(0, "more than %d lines in one map or text", maxKeys)
		}
	} else if len(text) > 0 && text[0] == '-' {
		clear(p.siblings[min(len(line)-len(text), len(p.siblings)-1)+1:])
	}
	if p.line++; p.line > maxLines+1 {
		return p.fail(0, "more than %d lines; long lists belong in a file of flows or links", maxLines)
	}
	return nil
}

// text refuses what is not UTF-8.
func (p *prescanner) text(data []byte) error {
	if utf8.Valid(data) {
		return nil
	}
	p.line = 1
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			break
		}
		if r == '\n' {
			p.line++
		}
		data = data[n:]
	}
	return p.fail(0, "not UTF-8 text")
}

// leaders counts the "- " and "? " at the head of a line, each of which nests.
func leaders(line []byte) int {
	n := 0
	for _, b := range line {
		switch b {
		case '-', '?':
			n++
		case ' ', '\t':
		default:
			if strings.Trim(string(line), "-") == "" {
				return 0
			}
			return n
		}
	}
	if strings.Trim(string(line), "-\r") == "" {
		return 0 // a document marker
	}
	return n
}

// converter turns the library's tree into ours.
type converter struct {
	file    string
	anchors map[string]*node
	nodes   int
}

func (c *converter) at(n ast.Node) position {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return position{c.file, t.Position.Line, t.Position.Column}
	}
	return position{c.file, 1, 1}
}

func (c *converter) node(n ast.Node, depth int) (*node, error) {
	pos := c.at(n)
	if depth > maxDepth {
		return nil, errorAt(pos, "", "nested more than %d deep", maxDepth)
	}
	if c.nodes++; c.nodes > maxNodes {
		return nil, errorAt(pos, "", "more than %d values", maxNodes)
	}
	switch n := n.(type) {
	case *ast.NullNode:
		return &node{kind: nullKind, pos: pos}, nil
	case *ast.StringNode:
		return &node{kind: scalarKind, pos: pos, text: n.Value}, nil
	case *ast.LiteralNode:
		return &node{kind: scalarKind, pos: pos, text: n.Value.Value}, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return &node{kind: scalarKind, pos: pos, text: n.GetToken().Value}, nil
	case *ast.MappingNode:
		return c.mapping(pos, n.Values, depth)
	case *ast.MappingValueNode:
		return c.mapping(pos, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		l := &node{kind: listKind, pos: pos}
		for _, v := range n.Values {
			item, err := c.node(v, depth+1)
			if err != nil {
				return nil, err
			}
			l.items = append(l.items, item)
		}
		return l, nil
	case *ast.AnchorNode:
		v, err := c.node(n.Value, depth+1)
		if err != nil {
			return nil, err
		}
		c.anchors[n.Name.GetToken().Value] = v
		return v, nil
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		v := c.anchors[name]
		if v == nil {
			return nil, errorAt(pos, "", "alias *%s: there is no anchor &%s before it", clip(name), clip(name))
		}
		return v, nil
	case *ast.TagNode:
		return nil, errorAt(pos, "", "tag %s: tags are not used here", clip(n.Start.Value))
	}
	return nil, errorAt(pos, "", "%s is not used here", n.Type())
}

func (c *converter) mapping(pos position, values []*ast.MappingValueNode, depth int) (*node, error) {
	m := &node{kind: mapKind, pos: pos}
	if len(values) > 0 {
		m.pos = c.at(values[0].Key)
	}
	seen := make(map[string]position, len(values))
	var merged []*node
	for _, v := range values {
		at := c.at(v.Key)
		if v.Key.IsMergeKey() {
			val, err := c.node(v.Value, depth+1)
			if err != nil {
				return nil, err
			}
			list := []*node{val}
			if val.kind == listKind {
				list = val.items
			}
			for _, x := range list {
				if x.kind != mapKind {
					return nil, errorAt(at, "", "<< merges maps, not %s", x.kind)
				}
				merged = append(merged, x)
			}
			continue
		}
		key, err := c.key(v.Key)
		if err != nil {
			return nil, err
		}
		if first, ok := seen[key]; ok {
			return nil, errorAt(at, key, "given twice; first in line %d", first.line)
		}
		seen[key] = at
		val, err := c.node(v.Value, depth+1)
		if err != nil {
			return nil, err
		}
		m.entries = append(m.entries, entry{key, at, val})
	}
	for _, x := range merged {
		for _, e := range x.entries {
			if _, ok := seen[e.key]; ok {
				continue
			}
			if c.nodes++; c.nodes > maxNodes {
				return nil, errorAt(pos, "", "more than %d values", maxNodes)
			}
			seen[e.key] = e.pos
			m.entries = append(m.entries, e)
		}
	}
	return m, nil
}

func (c *converter) key(k ast.MapKeyNode) (string, error) {
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return k.GetToken().Value, nil
	}
	return "", errorAt(c.at(k), "", "a key must be a plain word, not %s", fmt.Sprint(k.Type()))
}
