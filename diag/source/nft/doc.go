// Package nft asks the kernel for its nftables rules and says of each what it does to
// a packet of RoCE: protocol, ports, addresses, interfaces, connection state, verdict.
//
// It owns the reading of rules as the kernel has them (a small program of loads and
// comparisons), also those that iptables-nft made. What it does not understand it
// lists in the rule's Unknown, so that a judgement can say that it does not know; it
// never leaves such a part out in silence. It only reads; root is needed for that.
// On other systems than Linux [Read] fails. Called by diag/source.
//
// Reading order: read_linux.go, rule_linux.go, field_linux.go.
package nft
