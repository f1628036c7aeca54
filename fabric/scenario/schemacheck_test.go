package scenario

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// checker validates values against the part of JSON Schema that the file uses.
type checker struct{ root object }

func (c *checker) check(v any, s object, path string) error {
	if ref, ok := s["$ref"].(string); ok {
		at := any(c.root)
		for _, p := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			at = at.(object)[p]
		}
		if err := c.check(v, at.(object), path); err != nil {
			return err
		}
	}
	if list, ok := s["anyOf"].([]any); ok {
		var first error
		for _, x := range list {
			err := c.check(v, x.(object), path)
			if err == nil {
				first = nil
				break
			}
			if first == nil {
				first = err
			}
		}
		if first != nil {
			return first
		}
	}
	if want, ok := s["const"]; ok && fmt.Sprint(want) != fmt.Sprint(v) {
		return fmt.Errorf("%s: %v is not %v", path, v, want)
	}
	if list, ok := s["enum"].([]any); ok && !slices.Contains(list, v) {
		return fmt.Errorf("%s: %v is not among %v", path, v, list)
	}
	if err := c.kind(v, s, path); err != nil {
		return err
	}
	switch x := v.(type) {
	case string:
		if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(x) {
			return fmt.Errorf("%s: %q does not match %s", path, x, p)
		}
	case float64:
		if lo, ok := s["minimum"].(float64); ok && x < lo {
			return fmt.Errorf("%s: %v is below %v", path, x, lo)
		}
		if hi, ok := s["maximum"].(float64); ok && x > hi {
			return fmt.Errorf("%s: %v is above %v", path, x, hi)
		}
	case []any:
		if items, ok := s["items"].(object); ok {
			for i, e := range x {
				if err := c.check(e, items, index(path, i)); err != nil {
					return err
				}
			}
		}
	case object:
		return c.object(x, s, path)
	}
	return nil
}

func (c *checker) object(x, s object, path string) error {
	if list, ok := s["required"].([]any); ok {
		for _, k := range list {
			if _, ok := x[k.(string)]; !ok {
				return fmt.Errorf("%s: %s is missing", path, k)
			}
		}
	}
	props, _ := s["properties"].(object)
	for k, e := range x {
		if p, ok := s["propertyNames"].(object); ok {
			if err := c.check(k, p, join(path, k)); err != nil {
				return err
			}
		}
		sub, ok := props[k].(object)
		if !ok {
			switch a := s["additionalProperties"].(type) {
			case bool:
				if !a {
					return fmt.Errorf("%s: unknown key %s", path, k)
				}
				continue
			case object:
				sub = a
			default:
				continue
			}
		}
		if err := c.check(e, sub, join(path, k)); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) kind(v any, s object, path string) error {
	var types []any
	switch t := s["type"].(type) {
	case string:
		types = []any{t}
	case []any:
		types = t
	default:
		return nil
	}
	is := "null"
	switch x := v.(type) {
	case string:
		is = "string"
	case bool:
		is = "boolean"
	case float64:
		is = "number"
		if x == math.Trunc(x) && slices.Contains(types, "integer") {
			is = "integer"
		}
	case []any:
		is = "array"
	case object:
		is = "object"
	}
	if !slices.Contains(types, any(is)) {
		return fmt.Errorf("%s: %v is a %s, not %v", path, v, is, types)
	}
	return nil
}

func loadSchema(t *testing.T) *checker {
	t.Helper()
	var root object
	if err := json.Unmarshal(makeSchema(t), &root); err != nil {
		t.Fatal(err)
	}
	return &checker{root}
}
