// Package nft asks the kernel for its nftables rules and says of each what it does to
// a packet of RoCE: protocol, ports, addresses, interfaces, connection state, verdict.
//
// It owns the reading of rules as the kernel has them (a small program of loads and
// comparisons), also those that iptables-nft made. A rule that looks into a verdict map,
// or into a set of several fields, is one rule for each element, of the same handle.
// What it does not understand it lists in the rule's Unknown, so that a judgement can
// say that it does not know; it never leaves such a part out in silence. It only reads;
// root is needed for that. A ruleset that was replaced between two questions is read
// again. On other systems than Linux [Read] fails. Called by diag/source.
//
// Reading order: read_linux.go (asking), message_linux.go (layouts), rule_linux.go,
// lookup_linux.go, field_linux.go.
package nft
