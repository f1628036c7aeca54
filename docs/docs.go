// Package docs carries the documents that the program itself prints. It owns
// nothing else, and only commands call it.
package docs

import (
	"bytes"
	_ "embed" // the schema
)

//go:embed scenario.schema.json
var scenarioSchema []byte

// ScenarioSchema returns the JSON schema of scenario files. The slice is the
// caller's.
func ScenarioSchema() []byte { return bytes.Clone(scenarioSchema) }
