// Package capture reads packet captures (pcap and pcapng) and says of every
// RoCE packet what it is and whether its invariant CRC is right.
//
// It reads anybody's files: frames that a kernel merged (a UDP GSO send seen on
// the sending host) are cut into packets first; frames that are no RoCE are
// counted and passed over. It never panics for the contents of a file and never
// keeps more than one frame.
//
// Read reader.go (files and link types), decode.go (from frame to packets and
// totals), line.go (one line of text a packet).
package capture
