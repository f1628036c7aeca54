package pcap

import (
	"net/netip"

	"github.com/verbena-rdma/verbena/link/internal/ring"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/icrc"
	"github.com/verbena-rdma/verbena/wire/ip"
)

// synth writes the headers that the operating system writes around a frame.
type synth struct {
	buf  [ether.HeaderLen + ip.IPv6Len + ip.UDPLen + ring.BufLen]byte
	flow icrc.Flow
	key  flowKey // whose flow it is
}

type flowKey struct {
	src, dst         netip.Addr
	srcPort, dstPort uint16
}

// commentNoIdent is given to packets whose ICRC is wrong however the
// Identification was.
const commentNoIdent = "ICRC wrong for every IPv4 Identification"

// frame returns packet number i of a record as a whole Ethernet frame, which is
// lent until the next call, and a remark, usually none.
func (s *synth) frame(r *record, pkt []byte, i int) (data []byte, comment string) {
	if r.ether {
		return pkt, ""
	}
	src, dst := r.src, r.dst
	if !dst.IsValid() || dst.Is4() != src.Is4() {
		dst = netip.IPv6Unspecified()
		if src.Is4() {
			dst = netip.IPv4Unspecified()
		}
	}
	ttl := r.ttl
	if ttl == 0 {
		ttl = ring.DefaultTTL
	}
	h := ether.Header{Dst: macOf(dst), Src: macOf(src), Type: ether.TypeIPv4}
	n := ether.HeaderLen
	udp := ip.UDP{SrcPort: r.srcPort, DstPort: r.dstPort, Len: uint16(ip.UDPLen + len(pkt))}
	if src.Is4() {
		h.Encode(s.buf[:])
		id, df := uint16(i), true
		if !r.idents {
			id, df, comment = s.solve(r, src, dst, pkt)
		}
		v4 := ip.IPv4{
			TOS: ip.TOS(r.tos), TotalLen: uint16(ip.IPv4Len + ip.UDPLen + len(pkt)), ID: id, DF: df,
			TTL: ttl, Proto: ip.ProtoUDP, Src: src.As4(), Dst: dst.As4(),
		}
		n += v4.Encode(s.buf[n:])
		n += udp.Encode(s.buf[n:])
		n += copy(s.buf[n:], pkt)
		return s.buf[:n], comment
	}
	h.Type = ether.TypeIPv6
	h.Encode(s.buf[:])
	v6 := ip.IPv6{
		TOS: ip.TOS(r.tos), PayloadLen: udp.Len, NextHeader: ip.ProtoUDP, HopLimit: ttl, Src: src.As16(), Dst: dst.As16(),
	}
	n += v6.Encode(s.buf[n:])
	at := n
	n += udp.Encode(s.buf[n:])
	n += copy(s.buf[n:], pkt)
	// Over IPv6 a checksum is the rule, and readers complain about 0.
	udp.Checksum = ip.UDPChecksum6(v6.Src, v6.Dst, s.buf[at:n])
	udp.Encode(s.buf[at:])
	return s.buf[:n], ""
}

// solve finds the Identification that a received packet had.
func (s *synth) solve(r *record, src, dst netip.Addr, pkt []byte) (id uint16, df bool, comment string) {
	if key := (flowKey{src, dst, r.srcPort, r.dstPort}); s.key != key {
		s.key, s.flow = key, icrc.V4(src.As4(), dst.As4(), r.srcPort, r.dstPort)
	}
	id, df, ok := s.flow.Solve(pkt)
	if !ok {
		return 0, true, commentNoIdent
	}
	return id, df, ""
}

// macOf derives a locally administered address from an IP address, or the
// group address that belongs to a multicast group.
func macOf(a netip.Addr) ether.MAC {
	b := a.As16()
	switch {
	case a.IsMulticast() && a.Is4():
		return ether.MAC{0x01, 0x00, 0x5E, b[13] & 0x7F, b[14], b[15]}
	case a.IsMulticast():
		return ether.MAC{0x33, 0x33, b[12], b[13], b[14], b[15]}
	}
	return ether.MAC{0x02, 0x00, b[12], b[13], b[14], b[15]}
}
