package doctor

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

// fileForm says what a file of rules is.
const fileForm = "a file of rules is a list: - id: U01, then title, step, each, warn, confidence, cause, why, fix"

// ruleLines finds the lines of rules and of their fields in a file, for errors.
type ruleLines struct {
	text   []string
	begins []int // line of each entry of the list, from 0
}

var reField = regexp.MustCompile(`^(?:- |  )\s*([a-z_]+):`)

func newRuleLines(text []byte) ruleLines {
	l := ruleLines{text: strings.Split(string(text), "\n")}
	for i, line := range l.text {
		if strings.HasPrefix(line, "- ") || strings.TrimRight(line, " \r") == "-" {
			l.begins = append(l.begins, i)
		}
	}
	return l
}

// begin is the line of a rule, from 1; 1 for one that is not to be found, in a list of
// another form.
func (l *ruleLines) begin(rule int) int {
	if rule >= len(l.begins) {
		return 1
	}
	return l.begins[rule] + 1
}

// of is the line of the field that an error begins with, else that of the rule.
func (l *ruleLines) of(rule int, why string) int {
	field := why[:len(why)-len(strings.TrimLeft(why, "abcdefghijklmnopqrstuvwxyz_"))]
	if rule < len(l.begins) && field != "" {
		end := len(l.text)
		if rule+1 < len(l.begins) {
			end = l.begins[rule+1]
		}
		for i := l.begins[rule]; i < end; i++ {
			if m := reField.FindStringSubmatch(l.text[i]); m != nil && m[1] == field {
				return i + 1
			}
		}
	}
	return l.begin(rule)
}

// yamlError makes one line of an error of the YAML reader.
func yamlError(name string, err error) error {
	var e yaml.Error
	if errors.As(err, &e) {
		if tk := e.GetToken(); tk != nil && tk.Position != nil {
			return fmt.Errorf("%s:%d:%d: %s", name, tk.Position.Line, tk.Position.Column, plainly(e.GetMessage()))
		}
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%s:1: %s", name, plainly(first))
}

var (
	reKind = regexp.MustCompile(`^cannot unmarshal (?:\S+ )*into Go struct field \w+\.(\w+) of type (\S+)`)
	kinds  = map[string]string{"int": "a whole number", "float64": "a number", "string": "a text", "bool": "true or false"}
)

// plainly says in words of rules what the YAML reader says in those of Go.
func plainly(why string) string {
	first, _, _ := strings.Cut(why, "\n")
	if m := reKind.FindStringSubmatch(first); m != nil {
		if f, ok := reflect.TypeFor[Rule]().FieldByName(m[1]); ok && kinds[m[2]] != "" {
			return f.Tag.Get("yaml") + " must be " + kinds[m[2]]
		}
	}
	switch {
	case strings.HasPrefix(first, "unknown field"):
		return first + "; a rule has " + strings.Join(fieldNames(), ", ")
	case strings.HasSuffix(first, "was used where sequence is expected"), strings.HasSuffix(first, "was used where mapping is expected"):
		return first + "; " + fileForm
	}
	return first
}

// fieldNames are the fields of a rule as a file has them.
func fieldNames() []string {
	var out []string
	t := reflect.TypeFor[Rule]()
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" {
			out = append(out, name)
		}
	}
	return out
}
