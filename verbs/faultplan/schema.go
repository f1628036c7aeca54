package faultplan

import "encoding/json"

// Schema returns the JSON schema of a plan.
func Schema() []byte {
	props := map[string]any{}
	for i := range ruleKeys {
		k := &ruleKeys[i]
		one := map[string]any{"type": []string{"string", "number", "boolean"}}
		if k.enum != nil {
			one = map[string]any{"enum": k.enum}
			if k.enum[0] == "true" {
				one = map[string]any{"type": "boolean"}
			}
		}
		if k.list {
			one = map[string]any{"oneOf": []any{one, map[string]any{"type": "array", "items": one, "minItems": 1, "maxItems": maxList}}}
		}
		one["description"] = k.what
		props[k.name] = one
	}
	doc := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Verbena fault plan",
		"type":    "object",
		"properties": map[string]any{
			"seed": map[string]any{"type": "integer", "minimum": 1, "description": "makes the plan repeatable; default: by chance"},
			"rules": map[string]any{"type": "array", "maxItems": MaxRules, "items": map[string]any{
				"type": "object", "properties": props, "required": []string{"inject"}, "additionalProperties": false,
			}},
		},
		"required":             []string{"rules"},
		"additionalProperties": false,
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil // maps of strings always marshal
	}
	return append(b, '\n')
}
