// Package probe finds out what the network between two hosts does to RoCEv2:
// whether UDP port 4791 is open, how large a packet may be, what becomes of
// DSCP and ECN, how long packets take, how many are lost or overtaken, and what
// each failure does to a queue pair. Each direction is judged apart.
//
//	probing host                                     listening host
//	Run ── control: TCP, port 14791, JSON frames ──▶ Listener
//	mouth ── probes: UDP, path's source port ─▶ 4791 ── ear
//	ear ◀── 4791 ── probes and echoes, the same source port ── mouth
//
// A probe is a whole RoCE packet that no responder answers: UC SEND Only to
// queue pair 0, which RoCE does not have, with a right ICRC (packet.go). An ear
// is a UDP socket on the port, and a packet socket beside it where the process
// may open one: a packet that the second sees and the first does not was dropped
// by the host's own firewall. Where a kernel's or a program's RNIC has the port
// the packet socket alone hears; where a hardware RNIC may take the packets
// before the kernel sees them and nothing is heard, the verdict is Unknown, not
// Blocked.
//
// A listener sends only to the address at the other end of a control
// connection, no more bytes of UDP than it was sent as UDP or control frames,
// and answers only probes that carry the token of that connection, once each. The
// probing end answers none. Sessions, their time and their memory are bounded.
// Nothing that a peer sends is believed: message.go checks it, and ICMP errors do
// not count against packets that arrive.
//
// The package never changes a setting of the host and never touches a queue
// pair. verbena probe calls it, and a doctor may: [Result] is stable.
//
// Read packet.go (the probe), message.go (the control channel), endpoint.go with
// socket_linux.go, capture_linux.go and voice.go (what both ends have),
// session.go (what was heard), listen.go with admit.go (the far end), run.go with
// dial.go, phase.go and mtu.go (the near end), then result.go, judge.go with
// verdict.go, judgeclass.go and judgemtu.go, find.go with findflow.go, findmtu.go
// and findclass.go (the verdicts, pure functions) and print.go.
package probe
