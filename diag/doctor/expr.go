package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// programs are the compiled parts of a rule.
type programs struct {
	when                   *vm.Program
	fail, warn, info, sure []*vm.Program
	let                    []*vm.Program
	evidence               []*vm.Program
	cause, why, verify     text
	fix                    []fixText
}

// env is what an expression is evaluated in. Names with a dot are facts: the
// compiler turns port.state into fact("port.state").
type env struct {
	Fact  func(name string) (any, error)                 `expr:"fact"`
	Known func(name string) bool                         `expr:"known_fact"`
	Delta func(counter string, prio ...int) (any, error) `expr:"delta"`
	Rate  func(counter string, prio ...int) (any, error) `expr:"rate"`
	Total func(counter string, prio ...int) (any, error) `expr:"total"`
	Seen  func(counter string, prio ...int) (any, error) `expr:"seen"`
	Peer  func(counter string, prio ...int) (any, error) `expr:"peer_seen"`
	Has   func(counter string, prio ...int) bool         `expr:"has"`
	Name  func(counter string) string                    `expr:"counter_name"`
	Event func(kind string, codes ...int) (bool, error)  `expr:"event"`
	Limit map[string]float64                             `expr:"limit"`
	Let   func(name string) (any, error)                 `expr:"let_value"`

	Logged   func(pattern string) (bool, error) `expr:"logged"`
	Quotient func(a, b any) (float64, error)    `expr:"quotient"`
}

// unknown is the error of a fact that the snapshot does not have.
type unknown struct {
	fact string
	why  string
}

func (u *unknown) Error() string { return u.fact + ": " + u.why }

// isUnknown returns the unknown fact that ended an evaluation.
func isUnknown(err error) (*unknown, bool) {
	var u *unknown
	ok := errors.As(err, &u)
	return u, ok
}

// roots are the first parts of facts' names.
var roots = map[string]bool{
	"host": true, "device": true, "port": true, "netdev": true, "qp": true, "app": true, "switch": true, "profile": true, "peer": true, "window": true,
}

// factPatcher turns the names of facts into calls, known(fact) into a question that
// does not end the rule, and let names into lookups. It collects names that are none.
type factPatcher struct {
	rule *Rule
	lets map[string]bool
	err  error
}

func (p *factPatcher) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.MemberNode:
		name, ok := dotted(n)
		if !ok {
			p.checkLimit(n)
			return
		}
		p.checkFact(name, n)
		ast.Patch(node, call("fact", &ast.StringNode{Value: name}))
	case *ast.CallNode:
		id, ok := n.Callee.(*ast.IdentifierNode)
		if !ok {
			return
		}
		if id.Value == "known" && len(n.Arguments) == 1 {
			// The argument was visited first: it is a call of fact already.
			if c, ok := n.Arguments[0].(*ast.CallNode); ok && len(c.Arguments) == 1 {
				ast.Patch(node, call("known_fact", c.Arguments[0]))
				return
			}
			p.fail(n, "known wants the name of a fact")
		}
		if counterFuncs[id.Value] && len(n.Arguments) > 0 {
			if s, ok := n.Arguments[0].(*ast.StringNode); ok && !isCounter(s.Value) {
				p.fail(n, fmt.Sprintf("%s(%q): no counter of this name", id.Value, s.Value))
			}
		}
	case *ast.BinaryNode:
		if n.Operator == "matches" {
			p.matchLog(node, n)
		}
		if n.Operator == "/" || n.Operator == "%" {
			p.checkDivisor(node, n)
		}
	case *ast.BuiltinNode:
		if !slices.Contains(builtins, n.Name) {
			p.fail(n, n.Name+" is not to be had in rules")
		}
	case *ast.IdentifierNode:
		if p.lets[n.Value] {
			ast.Patch(node, call("let_value", &ast.StringNode{Value: n.Value}))
		}
	}
}

var counterFuncs = map[string]bool{"delta": true, "rate": true, "total": true, "seen": true, "peer_seen": true, "has": true, "counter_name": true}

// builtins are the functions of the expression language that rules may use. Those that
// walk lists are not among them: loops in loops would have no end.
var builtins = []string{"len", "min", "max", "abs", "ceil", "floor", "round", "int", "float", "string", "lower", "upper", "trim"}

func call(name string, arg ast.Node) *ast.CallNode {
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: []ast.Node{arg}}
}

// dotted returns the name of a fact that a chain of members spells.
func dotted(n *ast.MemberNode) (string, bool) {
	prop, ok := n.Property.(*ast.StringNode)
	if !ok {
		return "", false
	}
	switch base := n.Node.(type) {
	case *ast.IdentifierNode:
		if roots[base.Value] {
			return base.Value + "." + prop.Value, true
		}
	case *ast.CallNode:
		// An inner chain was patched already: fact("peer.port") and then .mtu.
		if id, ok := base.Callee.(*ast.IdentifierNode); ok && id.Value == "fact" && len(base.Arguments) == 1 {
			if s, ok := base.Arguments[0].(*ast.StringNode); ok {
				return s.Value + "." + prop.Value, true
			}
		}
	}
	return "", false
}

func (p *factPatcher) checkFact(name string, n ast.Node) {
	if name == "peer.port" || name == "peer.netdev" || name == "peer.host" || name == "peer.device" {
		return // the first half of a longer name
	}
	f, ok := vocabulary[strings.TrimPrefix(name, "peer.")]
	switch {
	case !ok:
		p.fail(n, "no fact is called "+name)
	case !f.available(p.rule.Each):
		p.fail(n, fmt.Sprintf("%s is not to be had where each is %s", name, p.rule.Each))
	}
}

// matchLog makes a search of the log one by lines: the line that matches is evidence.
func (p *factPatcher) matchLog(node *ast.Node, n *ast.BinaryNode) {
	c, ok := n.Left.(*ast.CallNode)
	if !ok || len(c.Arguments) != 1 {
		return
	}
	name, ok := c.Arguments[0].(*ast.StringNode)
	pattern, ok2 := n.Right.(*ast.StringNode)
	if !ok || !ok2 || name.Value != "app.log_text" {
		return
	}
	if _, err := regexp.Compile(pattern.Value); err != nil {
		p.fail(n, err.Error())
		return
	}
	ast.Patch(node, call("logged", pattern))
}

// checkLimit refuses a limit that the rule does not have: it would be 0.
func (p *factPatcher) checkLimit(n *ast.MemberNode) {
	id, ok := n.Node.(*ast.IdentifierNode)
	if !ok || id.Value != "limit" {
		return
	}
	name, ok := n.Property.(*ast.StringNode)
	switch {
	case !ok:
		p.fail(n, "a limit is written limit.name")
	default:
		if _, ok := p.rule.Limits[name.Value]; !ok {
			p.fail(n, fmt.Sprintf("limits has no %s; it has %s", name.Value, cmp.Or(strings.Join(sortedKeys(p.rule.Limits), ", "), "none")))
		}
	}
}

// checkDivisor refuses a divisor that is 0, and lets one that may become 0 end the rule:
// a quotient without an end is above every threshold.
func (p *factPatcher) checkDivisor(node *ast.Node, n *ast.BinaryNode) {
	switch d := n.Right.(type) {
	case *ast.IntegerNode:
		if d.Value == 0 {
			p.fail(n, "it divides by 0")
		}
	case *ast.FloatNode:
		if d.Value == 0 {
			p.fail(n, "it divides by 0")
		}
	default:
		if n.Operator == "/" {
			ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: "quotient"}, Arguments: []ast.Node{n.Left, n.Right}})
		}
	}
}

// quotient divides numbers.
func quotient(a, b any) (float64, error) {
	x, ok := number(a)
	y, ok2 := number(b)
	switch {
	case !ok || !ok2:
		return 0, fmt.Errorf("%s / %s: both must be numbers", format(a), format(b))
	case y == 0:
		return 0, &unknown{"division", "by 0"}
	}
	return x / y, nil
}

func number(v any) (float64, bool) {
	switch x := v.(type) {
	case int:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}

func (p *factPatcher) fail(n ast.Node, why string) {
	if p.err == nil {
		p.err = &file.Error{Location: n.Location(), Message: why}
	}
}

// maxCode is the length of an expression at most, in bytes.
const maxCode = 2000

// compileExpr compiles one expression of a rule.
func (r *Rule) compileExpr(what, code string, lets map[string]bool) (*vm.Program, error) {
	if code == "" {
		return nil, nil
	}
	if len(code) > maxCode {
		return nil, fmt.Errorf("%s: %d bytes, must be at most %d", what, len(code), maxCode)
	}
	p := &factPatcher{rule: r, lets: lets}
	options := []expr.Option{expr.Env(env{}), expr.Patch(p), expr.MaxNodes(500), expr.DisableAllBuiltins()}
	for _, name := range builtins {
		options = append(options, expr.EnableBuiltin(name))
	}
	prog, err := expr.Compile(code, options...)
	if p.err != nil {
		err = p.err
	}
	if err != nil {
		var fe *file.Error
		if errors.As(err, &fe) {
			return nil, fmt.Errorf("%s, column %d: %s", what, fe.Column+1, fe.Message)
		}
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return prog, nil
}

// compile compiles all of a rule.
func (r *Rule) compile() error {
	lets := map[string]bool{}
	var errs []error
	one := func(what, code string) *vm.Program {
		p, err := r.compileExpr(what, code, lets)
		errs = append(errs, err)
		return p
	}
	txt := func(what, s string) text {
		t, err := r.compileText(what, s, lets)
		errs = append(errs, err)
		return t
	}
	for _, l := range r.Let {
		if roots[l.Name] || l.Name == "" || counterFuncs[l.Name] {
			errs = append(errs, fmt.Errorf("let: %q cannot be a name", l.Name))
			continue
		}
		r.prog.let = append(r.prog.let, one("let "+l.Name, l.Expr))
		lets[l.Name] = true
	}
	all := func(what string, codes Cond) []*vm.Program {
		var out []*vm.Program
		for _, code := range codes {
			out = append(out, one(what, code))
		}
		return out
	}
	r.prog.when = one("when", r.When)
	r.prog.fail, r.prog.warn, r.prog.info, r.prog.sure = all("fail", r.Fail), all("warn", r.Warn), all("info", r.Info), all("sure", r.Sure)
	for _, e := range r.Evidence {
		r.prog.evidence = append(r.prog.evidence, one("evidence", e))
	}
	r.prog.cause, r.prog.why, r.prog.verify = txt("cause", r.Cause), txt("why", r.Why), txt("verify", r.Verify)
	for _, f := range r.Fix {
		c := fixText{}
		if f.By == nil {
			c.all = txt("fix", f.All)
		} else {
			c.by = map[string]text{}
			for _, name := range slices.Sorted(maps.Keys(f.By)) {
				c.by[name] = txt("fix", f.By[name])
			}
		}
		r.prog.fix = append(r.prog.fix, c)
	}
	return errors.Join(errs...)
}

// text is a text with expressions in ${…}.
type text []piece

type piece struct {
	lit  string
	code string
	prog *vm.Program
}

func (r *Rule) compileText(what, s string, lets map[string]bool) (text, error) {
	var t text
	for s != "" {
		lit, rest, ok := strings.Cut(s, "${")
		t = append(t, piece{lit: lit})
		if !ok {
			break
		}
		code, after, ok := strings.Cut(rest, "}")
		if !ok {
			return nil, fmt.Errorf("%s: ${ without }", what)
		}
		prog, err := r.compileExpr(what, code, lets)
		if err != nil {
			return nil, err
		}
		t = append(t, piece{code: code, prog: prog})
		s = after
	}
	return t, nil
}

// render writes a text; an expression without a value stands as <expression>. Values
// are made short; in a command they are words of a shell, whatever a recording says.
func (t text) render(e *env, command bool) rendered {
	var b strings.Builder
	var r rendered
	for _, p := range t {
		if p.prog == nil {
			b.WriteString(p.lit)
			continue
		}
		word := "<" + strings.TrimSpace(p.code) + ">"
		if v, err := expr.Run(p.prog, *e); err == nil && v != nil {
			word = oneLine(format(v))
			if command && strings.ContainsAny(word, shellSigns) {
				word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
			}
		}
		r.values = append(r.values, renderedValue{p.code, word})
		b.WriteString(word)
	}
	r.text = b.String()
	return r
}

// shellSigns are those that a shell acts upon, but for the blank.
const shellSigns = "$`;&|<>(){}[]*?!#~'\"\\^"

// truth evaluates a condition; a condition that is not there does not hold.
func truth(p *vm.Program, e *env) (bool, error) {
	if p == nil {
		return false, nil
	}
	v, err := expr.Run(p, *e)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("the condition is %v, which is neither true nor false", v)
	}
	return b, nil
}

// anyOf returns the index of the first alternative that holds, or -1: then err is the
// first unknown fact, for one that is not known might have held.
func anyOf(progs []*vm.Program, e *env, t *trace) (int, error) {
	var missing error
	for i, p := range progs {
		mark := len(t.seen)
		holds, err := truth(p, e)
		switch {
		case err == nil && holds:
			return i, nil
		case err != nil && missing == nil:
			missing = err
		}
		if err != nil {
			t.seen = t.seen[:mark]
		}
	}
	return -1, missing
}

// evaluate evaluates an expression for its value.
func evaluate(p *vm.Program, e *env) (any, error) { return expr.Run(p, *e) }
