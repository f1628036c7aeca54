// Package golden reads the recorded packets in wire/testdata for the tests of
// wire and its sub-packages. Nothing but tests may import it.
package golden
