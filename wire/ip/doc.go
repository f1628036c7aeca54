// Package ip owns the formats of IPv4 (RFC 791), IPv6 (RFC 8200) and UDP (RFC
// 768) as far as they carry RoCE. An IPv6 header is at the same time
// InfiniBand's global route header (IBA vol.1 8.3), which RoCEv1 uses.
//
// Each header has a value form with Decode and Encode. [ECNOf] and [SetECN]
// work on the bytes of either IP version in place: that is what a switch does
// to a packet, and what the receiver looks for.
//
// It must never keep a slice, allocate, or read or write outside the given
// bytes. What is no header gives a [Reason]. It reassembles nothing.
//
// Read checksum.go, ecn.go, ipv4.go, ipv6.go, udp.go, reason.go.
package ip
