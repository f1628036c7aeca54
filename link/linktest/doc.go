// Package linktest is what every link must pass: [Run] checks a pair of ends
// against the contract of link.Link. A package that implements a link, or a
// middleware around one, calls it from its tests.
//
// Nothing here measures time. A test that waits for a packet gives up after a
// number of waits that bring nothing, and only then fails.
//
// Read linktest.go (what a caller gives), then flow.go (data), edge.go (limits
// and misuse), life.go (waiting, closing, leaks).
package linktest
