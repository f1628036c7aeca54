// Package token reads the text files of other simulators: fields between white
// space or commas, each with its place, so that every complaint names file,
// line and column; and the numbers in them, exactly and without floats.
//
// It holds one field at a time and refuses fields that are absurdly long, so a
// file of any size streams. It must never open a file: it is given a reader.
// The readers of fabric/topo and fabric/work call it.
//
// Read reader.go, number.go, unit.go.
package token
