// Package ether owns the formats of the Ethernet link: Ethernet II headers
// with or without an 802.1Q tag, and the two MAC control frames by which a
// receiver stops a sender, PAUSE and PFC (802.3 annex 31B, 802.1Qbb).
//
// Lengths are without preamble and frame check sequence, as captures and
// AF_PACKET sockets have them. Each format has a value form with Decode and
// Encode; [Frame] is a view for code that changes a field in place.
//
// It must never keep a slice, allocate, or read or write outside the given
// bytes; what is no frame gives false. When to pause, and for how long, is
// decided by package rnic and by the switches of package fabric.
//
// Read header.go, vlan.go, frame.go, control.go.
package ether
