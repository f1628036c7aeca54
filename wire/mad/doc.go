// Package mad owns the formats of management datagrams as RoCE has them: the
// common header, and the messages of communication management (IBA vol.1 12.6
// to 12.11, 13.4.2), with what IP-based connection management puts into their
// private data (IBA annex A11).
//
//	        ┌────────────┬──────────────────────────────────────────────────┐
//	MAD:    │ header, 24 │ data, 232: fields of the attribute, private data │  256 bytes, always
//	        └────────────┴──────────────────────────────────────────────────┘
//	                                                        │
//	REQ and SIDR REQ of an IP port space:                   ├─ IP header, 36
//	                                                        └─ the user's: 56 or 180
//
// Each message is a value with Decode and Encode over the 232 data bytes. A
// message has no length to be wrong: any 232 bytes decode, reserved bits are
// ignored when read and 0 when written. What a value means to a connection is
// the business of package cm.
//
// It must never keep or change what it was shown, allocate, panic, or decide
// anything that needs the state of a connection. The Private slice of a decoded
// message is borrowed from the bytes that it was decoded from.
//
// Read header.go, attr.go, then the messages in the order of a connection's
// life: req.go, mra.go, rep.go, rtu.go, rej.go (with reason.go), dreq.go, sidr.go, lap.go;
// then service.go and ip.go.
package mad
