// Package pcap is a link around a link that writes what passes into a pcapng
// file, one packet a frame, so that Wireshark, tshark or "verbena decode" read
// it.
//
//	w, err := pcap.NewWriter(file)              // owns file from now on
//	l, err := w.Wrap(inner, pcap.Config{Name: "vrb0"})
//	…
//	err = l.Close()
//	err = w.Close()                             // and says what could not be written
//
// A link below UDP shows no headers of Ethernet, IP and UDP; they are made up
// here, as they must have been: real addresses, port, TOS and TTL, right
// lengths and checksums, MACs that are derived from the addresses, and the IPv4
// Identification with which the ICRC is right. A packet for which none is right
// is written with Identification 0 and a comment. Frames of a link that shows
// them whole are written as they are; those on their way out have no MAC
// addresses yet, which the link inside writes.
//
// The path of the packets only copies: into batches that a goroutine encodes
// and writes. When it cannot keep up, packets are not recorded and counted; the
// memory is bounded.
//
// Read link.go (the path), batch.go (what is handed over), writer.go (the
// goroutine), synth.go (headers).
package pcap
