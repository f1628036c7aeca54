// Package icrc owns RoCE's invariant CRC: which bytes around a packet it
// covers, which of them are masked because a router may change them, and how
// the check is done by a program that cannot see the IP header.
//
//	RoCEv2, IPv4: 8 × FF │ IP, TOS TTL checksum = FF │ UDP, checksum = FF │ BTH, byte 4 = FF │ headers payload pad
//	RoCEv2, IPv6: 8 × FF │ IP, class label hops = FF │ UDP, checksum = FF │ BTH, byte 4 = FF │ headers payload pad
//	RoCEv1:       8 × FF │ GRH, class label hops = FF │                     BTH, byte 4 = FF │ headers payload pad
//
// (IBA vol.1 7.8.1 and annexes A16, A17.3.) The CRC is package crc's; it is
// stored with its least significant byte first, after the pad.
//
// Who sends calls [Flow.Header] and continues over the payload with crc.Copy;
// who receives calls [Flow.Verify] where the IP header is seen, and
// [Flow.Solve] behind a UDP socket, which hides the IPv4 Identification.
//
// It never allocates, never keeps a slice, and never panics for bytes received.
//
// Read flow.go, then verify.go.
package icrc
