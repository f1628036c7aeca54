// Package doctor says why RDMA does not work, or is slow, on a host: it holds a
// snapshot of the host, perhaps one of its peer, against rules and ranks what it
// finds by likely root cause.
//
// Rules are data: YAML in rules/, and more from the user with Load. A rule names
// what it looks at (each port, each interface, the host …), conditions over facts,
// the cause, why it matters and the command that mends it. It never runs a command.
//
// A fact is a named value of the snapshot: port.state, netdev.mtu, delta("ack_timeout").
// The vocabulary is a table in Go (facts_*.go); a name that is none is an error with
// line and column when the rules are loaded. A fact that the snapshot does not have
// ends its rule with SKIP and the reason: absence is never a pass. What a condition
// has read becomes the evidence of the finding, with the place it came from.
//
// Order is the operator's: 1 link, 2 counters, 3 lossless configuration, 4
// application, 5 the host around it.
//
// Reading order: rule.go (a rule and its file), expr.go (conditions and texts),
// scope.go (what a rule looks at), fact.go and facts_*.go (the vocabulary), examine.go
// (the walk), rank.go, report.go.
//
// The package does no I/O and starts nothing.
package doctor
