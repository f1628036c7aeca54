// Package wire owns the formats of InfiniBand's transport headers as RoCE
// carries them: everything from the base transport header (BTH) up to, and not
// including, the invariant CRC.
//
//	        ┌─────┬──────────────────────────────────────┬─────────┬─────┐
//	packet: │ BTH │ DETH RETH AtomicETH AETH ImmDt IETH  │ payload │ pad │ ICRC
//	        └─────┴──────────────────────────────────────┴─────────┴─────┘
//	                 which of them: the opcode's row          to a multiple of 4
//
// One table with a row for each opcode ([OpInfo]) says which headers follow,
// whether a payload may, and what the packet means to a protocol machine;
// decoding, building and validating read nothing else. [Packet] is the value
// form of one packet, in both directions. [BTH] is a view over bytes, for code
// that wants one field and not a packet: steering, marking, decode tools.
//
// It must never keep a slice that it was shown, allocate, panic or read out of
// bounds for any input, or decide anything that needs the state of a QP (path
// MTU, PSN, key checks): those are the engines' business. A byte string that
// is no packet gives a [Reason], not an error.
//
// Engines (package transport/…) call Packet; the adapter (package rnic) calls
// both forms. The sub-packages hold what surrounds a packet: crc and icrc (the
// checks), ether and ip (outer headers), roce (whole frames).
//
// Read opcode.go (the table), packet.go (decode and build), then one file a
// header in the order of the wire: bth.go, deth.go, feth.go, reth.go, atomiceth.go,
// aeth.go, immdt.go, ieth.go; last reason.go.
package wire
