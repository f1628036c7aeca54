// Command testsum runs "go test -json" commands one after the other, prints a line a package and the output of what
// failed, and ends with one line for all of them:
//
//	testsum -- go test -json -race ./… -- go test -json ./test/interop/…
//	…
//	812 passed, 0 failed, 3 skipped
//
// Subtests count as tests. A package that does not build, a process that dies and a test that never ends count as
// failed. The exit status is 1 when anything failed or no test ran at all.
//
// Read tally.go (the events become counts) and main.go.
package main
