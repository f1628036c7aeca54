// Package coverage keeps the list of what the specification demands and of the
// kinds of fault that users of RDMA stacks have met, with the tests that hold
// each; it has no code of its own.
//
// reports.txt is written by hand: one kind of fault a line, and where it is
// tested. The rules of the engines are in transport/*/testdata/rules.txt. The
// test here fails when a line names a test that does not exist, or when a NAK
// code, a completion status or a transition of the queue pair has no test; it
// generates docs/spec-coverage.md (go test ./internal/coverage -update).
package coverage
