package faultplan

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// MaxFile is the most bytes that a file may have.
const MaxFile = 1 << 20

// Error is what is wrong with a file: one line. It matches ErrPlan.
type Error struct {
	File string
	Line int    // from 1
	Col  int    // from 1
	Path string // the key, rules[2].nth; "" for the whole file
	Msg  string
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Col)
	if e.Path != "" {
		s += ": " + e.Path
	}
	return s + ": " + e.Msg
}

// Unwrap makes the error match ErrPlan.
func (e *Error) Unwrap() error { return ErrPlan }

// Load reads a plan from a file.
func Load(path string) (*Plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	defer f.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(&limited{f, MaxFile + 1}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	return Parse(path, b.Bytes())
}

// limited ends after n bytes.
type limited struct {
	f *os.File
	n int
}

func (l *limited) Read(b []byte) (int, error) {
	n, err := l.f.Read(b[:min(len(b), l.n)])
	if l.n -= n; l.n == 0 && err == nil {
		err = errors.New("the file is too long")
	}
	return n, err
}

// Parse reads a plan from the text of a file, whose name is for messages. The
// error is an [*Error].
func Parse(name string, text []byte) (*Plan, error) {
	p := reader{file: name}
	plan := &Plan{Name: name}
	if err := p.read(text, plan); err != nil {
		return nil, err
	}
	return plan, nil
}

type reader struct{ file string }

func (p *reader) at(line, col int, path, format string, args ...any) error {
	msg := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, fmt.Sprintf(format, args...))
	return &Error{File: p.file, Line: max(line, 1), Col: max(col, 1), Path: path, Msg: msg}
}

func (p *reader) node(n ast.Node, path, format string, args ...any) error {
	line, col := 1, 1
	if t := n.GetToken(); t != nil && t.Position != nil {
		line, col = t.Position.Line, t.Position.Column
	}
	return p.at(line, col, path, format, args...)
}

// read fills a plan.
func (p *reader) read(text []byte, plan *Plan) (err error) {
	if err := p.prescan(text); err != nil {
		return err
	}
	// The library is not ours: an input that breaks it must not end the program.
	defer func() {
		if r := recover(); r != nil {
			err = p.at(1, 1, "", "not YAML that can be read: %v", r)
		}
	}()
	f, perr := parser.ParseBytes(text, 0)
	if perr != nil {
		var syn *yaml.SyntaxError
		if errors.As(perr, &syn) && syn.Token != nil && syn.Token.Position != nil {
			return p.at(syn.Token.Position.Line, syn.Token.Position.Column, "", "%s", syn.Message)
		}
		return p.at(1, 1, "", "%s", quote(perr.Error()))
	}
	var root ast.Node
	for _, d := range f.Docs {
		if d == nil || d.Body == nil || d.Body.Type() == ast.CommentType {
			continue
		}
		if root != nil {
			return p.node(d.Body, "", "a second document; a plan is one")
		}
		root = d.Body
	}
	if root == nil {
		return p.at(1, 1, "", "the file is empty; a plan has keys seed and rules")
	}
	return p.plan(root, plan)
}

// Bounds on what the library is given: it takes time in the square of some.
const (
	maxLines = 20_000
	maxDepth = 20
	maxMarks = 50_000
)

// prescan refuses what would make the parser recurse, or work, without bound.
func (p *reader) prescan(text []byte) error {
	if len(text) > MaxFile {
		return p.at(1, 1, "", "the file has %d bytes, can have %d", len(text), MaxFile)
	}
	if !utf8.Valid(text) {
		return p.at(1, 1, "", "not UTF-8 text")
	}
	line, col, depth, marks := 1, 0, 0, 0
	leading := 0 // "- " at the head of the line, each of which nests
	head := true
	for _, b := range text {
		col++
		switch b {
		case 0:
			return p.at(line, col, "", "a zero byte: not a text file")
		case '\n':
			line, col, leading, head = line+1, 0, 0, true
			continue
		case '[', '{':
			depth++
			marks++
		case ']', '}':
			depth = max(0, depth-1)
			marks++
		case ',', ':', '&', '*', '!', '|', '>', '#', '%', '"', '\'', '@', '`':
			marks++
		case '-', '?':
			marks++
			if head {
				leading++
			}
		}
		if b != ' ' && b != '-' && b != '?' {
			head = false
		}
		switch {
		case depth > maxDepth || leading > maxDepth && col > 2*maxDepth || head && col > 200:
			return p.at(line, col, "", "nested more than %d deep", maxDepth)
		case marks > maxMarks:
			return p.at(line, col, "", "more than %d marks of punctuation", maxMarks)
		case line > maxLines:
			return p.at(line, col, "", "more than %d lines", maxLines)
		}
	}
	return nil
}

// pairs returns the entries of a map.
func (p *reader) pairs(n ast.Node, path, what string) ([]*ast.MappingValueNode, error) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, nil
	}
	return nil, p.node(n, path, "%s must be a map of keys and values", what)
}

// keyOf returns the text of a key.
func (p *reader) keyOf(v *ast.MappingValueNode) (string, error) {
	if s, ok := text(v.Key); ok {
		return s, nil
	}
	return "", p.node(v.Key, "", "a key must be a word")
}

// text returns the text of a plain value.
func text(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NanNode, *ast.InfinityNode:
		return n.GetToken().Value, true
	}
	return "", false // anchors, aliases, tags, texts of several lines: a plan needs none
}

func (p *reader) plan(root ast.Node, plan *Plan) error {
	entries, err := p.pairs(root, "", "a plan")
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, e := range entries {
		k, err := p.keyOf(e)
		if err != nil {
			return err
		}
		if seen[k] {
			return p.node(e.Key, k, "given twice")
		}
		seen[k] = true
		switch k {
		case "seed":
			s, _ := text(e.Value)
			n, err := number(s, 1, 1<<64-1)
			if err != nil {
				return p.node(e.Value, k, "%v; leave it out for one by chance", err)
			}
			plan.Seed = n
		case "rules":
			if err := p.rules(e.Value, plan); err != nil {
				return err
			}
		default:
			return p.node(e.Key, clip(k), "unknown key; keys here: seed, rules")
		}
	}
	if !seen["rules"] {
		return p.node(root, "", "the plan has no rules")
	}
	return nil
}

func clip(s string) string {
	if q := quote(s); len(q) != len(s)+2 {
		return q
	}
	return s
}

func (p *reader) rules(n ast.Node, plan *Plan) error {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return p.node(n, "rules", "must be a list of rules")
	}
	if len(list.Values) > MaxRules {
		return p.node(n, "rules", "%d rules, can have %d", len(list.Values), MaxRules)
	}
	for i, item := range list.Values {
		r, err := p.rule(item, fmt.Sprintf("rules[%d]", i))
		if err != nil {
			return err
		}
		plan.Rules = append(plan.Rules, r)
	}
	return nil
}

func (p *reader) rule(n ast.Node, path string) (r Rule, err error) {
	entries, err := p.pairs(n, path, "a rule")
	if err != nil {
		return r, err
	}
	at := map[string]ast.Node{}
	for _, e := range entries {
		name, err := p.keyOf(e)
		if err != nil {
			return r, err
		}
		k := findKey(name)
		if k == nil {
			return r, p.node(e.Key, path+"."+clip(name), "unknown key; keys here: %s", strings.Join(ruleKeyNames(), ", "))
		}
		if at[name] != nil {
			return r, p.node(e.Key, path+"."+name, "given twice")
		}
		at[name] = e.Value
		if err := p.value(e.Value, k, &r, path+"."+name); err != nil {
			return r, err
		}
	}
	if err := r.validate(); err != nil {
		var f *fieldError
		where := n
		if errors.As(err, &f) {
			if at[f.key] != nil {
				where = at[f.key]
			}
			return r, p.node(where, path+"."+f.key, "%s", f.text)
		}
		return r, p.node(n, path, "%v", err)
	}
	return r, nil
}

func findKey(name string) *key {
	for i := range ruleKeys {
		if ruleKeys[i].name == name {
			return &ruleKeys[i]
		}
	}
	return nil
}

// maxList is how many values a key may have.
const maxList = 256

func (p *reader) value(n ast.Node, k *key, r *Rule, path string) error {
	if list, ok := n.(*ast.SequenceNode); ok && k.list {
		if len(list.Values) == 0 || len(list.Values) > maxList {
			return p.node(n, path, "%d values, can be 1 to %d", len(list.Values), maxList)
		}
		for _, item := range list.Values {
			if err := p.one(item, k, r, path); err != nil {
				return err
			}
		}
		return nil
	}
	return p.one(n, k, r, path)
}

func (p *reader) one(n ast.Node, k *key, r *Rule, path string) error {
	s, ok := text(n)
	if !ok {
		what := "a value"
		if k.list {
			what = "a value or a list of values"
		}
		return p.node(n, path, "must be %s: %s", what, k.what)
	}
	if err := k.set(r, s); err != nil {
		return p.node(n, path, "%v", err)
	}
	return nil
}
