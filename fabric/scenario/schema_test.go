package scenario

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/verbena-rdma/verbena/transport/dcqcn"
)

var update = flag.Bool("update", false, "write docs/scenario.md and docs/scenario.schema.json")

const (
	docFile    = "../../docs/scenario.md"
	schemaFile = "../../docs/scenario.schema.json"
)

// comments are the doc comments of the model: "Buffer.Total" and "Buffer".
func comments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	fset := token.NewFileSet()
	for _, f := range files {
		file, err := parser.ParseFile(fset, f, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				ts, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				doc := g.Doc
				if ts.Doc != nil {
					doc = ts.Doc
				}
				out[ts.Name.Name] = plainText(doc.Text())
				st, ok := ts.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, field := range st.Fields.List {
					for _, name := range field.Names {
						out[ts.Name.Name+"."+name.Name] = plainText(field.Doc.Text())
					}
				}
			}
		}
	}
	return out
}

func plainText(s string) string { return strings.Join(strings.Fields(s), " ") }

// describeField turns "KMin is the queue ..." into a text that does not begin
// with the name in Go; "Hosts of a star." stays.
func describeField(doc, name string) string {
	rest, ok := strings.CutPrefix(doc, name+" ")
	if !ok {
		return doc
	}
	for _, verb := range []string{"is ", "are "} {
		if after, ok := strings.CutPrefix(rest, verb); ok {
			return strings.ToUpper(after[:1]) + after[1:]
		}
	}
	for _, verb := range []string{"says ", "has ", "gives ", "lists ", "names ", "change ", "replace ", "happen ", "routes ", "stops ", "ends ", "limits ", "sets ", "divides ", "doubles ", "looks ", "joins ", "chooses "} {
		if strings.HasPrefix(rest, verb) {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return doc
}

type object = map[string]any

// schemaOf returns the JSON schema of a type.
func schemaOf(t reflect.Type, tag reflect.StructTag, docs map[string]string, defs object) object {
	text := func(pattern string) object {
		return object{"anyOf": []any{object{"type": "string", "pattern": pattern}, object{"const": 0}}}
	}
	const num = `^[+-]?[0-9_]*\.?[0-9_]*[0-9] ?`
	switch t {
	case typeTime:
		return text(num + "(ps|ns|us|µs|μs|ms|s)$|^0$")
	case typeRate:
		return text(num + "([KMGTk]?b(ps|/s)|[kMGT]?bit/s)$|^0$")
	case typeBytes:
		return text(num + "([KMGTk]?B|[KMGT]iB)$|^0$")
	case typeLength:
		return text(num + "(mm|cm|m|km)$|^0$")
	case typeRatio:
		return object{"anyOf": []any{object{"type": "number", "minimum": 0}, object{"type": "string", "pattern": `^[0-9_.]+ ?(%|/ ?[0-9_.]+)?$`}}}
	case typePrios:
		p := object{"type": "integer", "minimum": 0, "maximum": 7}
		return object{"anyOf": []any{p, object{"type": "array", "items": p}, object{"enum": []any{"all", "none"}}}}
	case typeSelect:
		return object{"anyOf": []any{object{"type": []any{"string", "null"}}, object{"type": "array", "items": object{"type": "string"}}}}
	case typeQuantity, typeSeed, typeHeadroom:
		return object{"type": []any{"string", "number"}}
	case typeIgnored:
		return object{}
	case typeOverlay:
		of := tag.Get("overlay")
		base, _ := keyType(reflect.TypeFor[Scenario](), of)
		name := base.Name()
		schemaOf(base, "", docs, defs)
		props := object{"match": schemaOf(typeSelect, "", docs, defs)}
		for k := range defs[name].(object)["properties"].(object) {
			props[k] = object{"$ref": "#/$defs/" + name + "/properties/" + k}
		}
		return object{"type": "object", "properties": props, "required": []any{"match"}, "additionalProperties": false}
	}
	switch t.Kind() {
	case reflect.Struct:
		return structSchema(t, docs, defs)
	case reflect.Slice:
		s := object{"type": []any{"array", "null"}, "items": schemaOf(t.Elem(), tag, docs, defs)}
		if n := tag.Get("items"); n != "" {
			s["maxItems"] = json.Number(n)
		}
		return s
	case reflect.Array:
		return object{
			"type": []any{"object", "null"}, "propertyNames": object{"pattern": "^[0-9]+$"},
			"additionalProperties": schemaOf(t.Elem(), tag, docs, defs),
		}
	case reflect.Bool:
		return object{"anyOf": []any{object{"type": "boolean"}, object{"enum": []any{"yes", "no", "on", "off"}}}}
	case reflect.String:
		if enum := tag.Get("enum"); enum != "" {
			var list []any
			for _, c := range strings.Split(enum, "|") {
				list = append(list, c)
			}
			return object{"enum": list}
		}
		return object{"type": []any{"string", "number", "boolean"}}
	}
	s := object{"type": "integer"}
	if t.Kind() == reflect.Uint8 && tag.Get("max") == "" {
		s["minimum"], s["maximum"] = 0, 7
	}
	for _, m := range [][2]string{{"min", "minimum"}, {"max", "maximum"}} {
		if v := tag.Get(m[0]); v != "" && t.Kind() != reflect.Uint64 {
			if _, err := parseInt(v); err == nil {
				s[m[1]] = json.Number(v)
			}
		}
	}
	return s
}

func structSchema(t reflect.Type, docs map[string]string, defs object) object {
	ref := object{"$ref": "#/$defs/" + t.Name()}
	if defs[t.Name()] != nil {
		return ref
	}
	props := object{}
	def := object{"type": []any{"object", "null"}, "additionalProperties": false, "properties": props}
	defs[t.Name()] = def
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("yaml")
		switch key {
		case "":
			continue
		case "*":
			for _, k := range dcqcn.Knobs() {
				knob := object{"type": []any{"string", "number", "boolean"}, "description": k.Doc + " (" + k.Limits() + ")"}
				props[k.Name] = knob
				if k.Paper != "" {
					props[k.Paper] = knob
				}
			}
			continue
		}
		s := schemaOf(f.Type, f.Tag, docs, defs)
		if doc := describeField(docs[t.Name()+"."+f.Name], f.Name); doc != "" {
			s["description"] = doc
		}
		props[key] = s
	}
	return ref
}

func makeSchema(t *testing.T) []byte {
	t.Helper()
	defs := object{}
	docs := comments(t)
	root := structSchema(reflect.TypeFor[Scenario](), docs, defs)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Verbena scenario"
	root["$defs"] = defs
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(root); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The schema in docs is that of the model.
func TestSchemaFile(t *testing.T) {
	want := makeSchema(t)
	if *update {
		if err := os.WriteFile(schemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not the model's: run go test ./fabric/scenario -update (%v)", schemaFile, err)
	}
}

// generic reads YAML as JSON would have it.
func generic(data []byte) (any, error) {
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	var norm func(any) any
	norm = func(v any) any {
		switch x := v.(type) {
		case map[string]any:
			for k := range x {
				x[k] = norm(x[k])
			}
		case map[any]any:
			m := object{}
			for k, e := range x {
				m[fmt.Sprint(k)] = norm(e)
			}
			return m
		case []any:
			for i := range x {
				x[i] = norm(x[i])
			}
		case uint64:
			return float64(x)
		case int64:
			return float64(x)
		case int:
			return float64(x)
		}
		return v
	}
	return norm(v), nil
}

// examples are the scenario files of this package's tests and of the library.
func examples(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, pattern := range []string{"testdata/*.yaml", "../lab/scenarios/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			out[f] = data
		}
	}
	if len(out) < 3 {
		t.Fatalf("only %d examples", len(out))
	}
	return out
}

// Whatever this package reads, an editor with the schema takes too: the examples
// as they are, and their effective form.
func TestSchemaTakesExamples(t *testing.T) {
	c := loadSchema(t)
	for name, data := range examples(t) {
		s, err := Parse(name, data)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, text := range [][]byte{data, s.YAML(), s.Changes()} {
			v, err := generic(text)
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, text)
				continue
			}
			if v == nil {
				continue
			}
			if err := c.check(v, c.root, ""); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// The schema refuses what Parse refuses for its form.
func TestSchemaRefuses(t *testing.T) {
	c := loadSchema(t)
	for _, text := range []string{
		"nonsense: 1", "topology: {kind: cube}", "topology: {rate: 100}", "switch: {ecn: {kmin: 8 apples}}",
		"switch: {pfc: {priorities: [8]}}", "switch: {pfc: {quanta: 70000}}", "switches: [{trust: dscp}]",
		"workload: [{kind: incast, bites: 1MB}]", "host: {dcqcn: {rpg_ia_rate: 5}}", "topology: 3", "workload: {}",
		"switch: {dscp_map: {x: 1}}", "packet: {gap: 2}",
	} {
		v, err := generic([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.check(v, c.root, ""); err == nil {
			t.Errorf("%s: taken", text)
		}
		if _, err := Parse("x", []byte(text)); err == nil {
			t.Errorf("%s: parsed", text)
		}
	}
}
