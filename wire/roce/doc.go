// Package roce owns what stands around an InfiniBand packet on Ethernet: the
// RoCEv2 envelope over IPv4 or IPv6 and the RoCEv1 envelope with a global
// route header, whole frames in both directions with their ICRC checked or
// computed exactly, the congestion notification packet, and the cutting of
// frames that a kernel merged.
//
//	RoCEv2: Ethernet [802.1Q] IPv4|IPv6 UDP(4791)  BTH … ICRC   (IBA vol.1 annex A17)
//	RoCEv1: Ethernet [802.1Q] GRH                  BTH … ICRC   (IBA vol.1 annex A16)
//
// [Envelope] is the value form of everything up to the BTH. It must never keep
// a slice beyond what its fields lend, allocate on the way of a packet, or
// panic for any bytes; what is no RoCE gives a [Reason]. It reads captures and
// raw links alike: bytes behind the IP length are ignored.
//
// The adapter uses it on links that carry whole frames, decode tools on
// captures. A link over UDP sockets never sees an envelope and computes ICRCs
// with package icrc.
//
// Read envelope.go (the value), decode.go, encode.go, split.go (merged
// frames), cnp.go, reason.go.
package roce
