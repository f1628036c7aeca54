// Package scenario owns the scenario file.
package scenario
