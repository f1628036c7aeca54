// Package scenario owns the scenario file: the model of a fabric, its traffic,
// its faults and what is expected of a run; reading it from YAML with the place
// of every mistake; units, defaults, presets, overrides; what is impossible
// (errors) and what is unwise (warnings that say what will happen); the
// effective file; and the files of others that hold the same things, which are
// HPCC's config.txt and the tables of a SONiC switch.
//
//	file ── tree ── overrides ── model ── Graph ── Check ── Lint
//	 YAML, JSON      --set        │         names    warnings
//	                            YAML (effective file), SONiC
//
// A mistake is an *Error: one line with file:line:col, key, value and limit. A
// file is never read without bound: size, lines, nesting and what aliases make
// of it are limited.
//
// It never opens a file, runs anything, or decides what a key does: package
// fabric composes a run from the model. Nothing here is on the path of a packet.
//
// The comments of the model's fields are the documentation: docs/scenario.md and
// docs/scenario.schema.json are made from them by the tests with -update.
//
// Read model.go, topology.go, switch.go, host.go, traffic.go, record.go (the
// model); unit.go, value.go (values); yaml.go, tree.go, decode.go, override.go,
// overlay.go (reading); default.go, asic.go, dcqcn.go (defaults and presets);
// validate*.go, names.go, graph.go, checkgraph.go (what must be), headroom.go,
// lint*.go (what should be); encode.go; hpcc.go; json.go, sonic*.go.
package scenario
