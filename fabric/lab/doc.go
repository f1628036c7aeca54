// Package lab is the library of scenarios: each a file that teaches one thing,
// with the numbers that it must show and where these are from.
//
//	scenarios/NAME.yaml   the scenario
//	variants/NAME.yaml    what to change in it: the cure, or what the cure costs
//
// Numbers in expect are derived: from a formula that the source works out, a
// standard, or a publication that the source names. They are never what a run of
// ours has shown. A test runs every scenario and variant, holds it to them and to
// the rules that every run keeps, and asks package explain for the cause that was
// put in. It also writes docs/scenarios.md.
//
// The package only hands out files and compares numbers; commands and tests run
// them. A scenario takes less than two seconds, so that all can be tested.
//
// Read lab.go, variant.go, judge.go, then any file in scenarios.
package lab
