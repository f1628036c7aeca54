package lab

import (
	"bytes"
	"embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

//go:embed variants
var variants embed.FS

// Variant is a change to a scenario that shows its other side: the cure, or
// what the cure costs. A run of the scenario shows it beside.
type Variant struct {
	Name string   // for tables and file names: "kmin-256KB"
	Sets []string // overrides, key=value
	Says string   // what it shows, in one line
	// Expect is the list of what it must show, in the form of the scenario's
	// key; the scenario's own expectations are not the variant's.
	Expect string
}

// All returns the overrides with the one that puts the variant's expectations
// in place of the scenario's.
func (v *Variant) All() []string {
	return append(slices.Clone(v.Sets), "expect="+v.Expect)
}

// Variants returns those of a scenario, which are in variants/NAME.yaml; nil if
// it has none. The slice is the caller's.
func Variants(name string) []Variant {
	text, err := variants.ReadFile("variants/" + name + ".yaml")
	if err != nil {
		return nil
	}
	list, err := readVariants(text)
	if err != nil {
		return nil // a test reads all of them
	}
	return list
}

func readVariants(text []byte) ([]Variant, error) {
	var file []struct {
		Name   string           `yaml:"name"`
		Says   string           `yaml:"says"`
		Set    []string         `yaml:"set"`
		Expect []map[string]any `yaml:"expect"`
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		return nil, err
	}
	out := make([]Variant, len(file))
	for i := range file {
		f := &file[i]
		var b bytes.Buffer
		e := json.NewEncoder(&b) // JSON is YAML on one line
		e.SetEscapeHTML(false)
		if f.Expect == nil {
			f.Expect = []map[string]any{}
		}
		if err := e.Encode(f.Expect); err != nil {
			return nil, err
		}
		out[i] = Variant{Name: f.Name, Sets: f.Set, Says: f.Says, Expect: strings.TrimSpace(b.String())}
	}
	return out, nil
}
