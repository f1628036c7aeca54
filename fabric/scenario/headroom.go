package scenario

import (
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/theory"
)

// Headers around the payload of a data packet with RETH, destination MAC to
// FCS: Ethernet 14, IPv4 20, UDP 8, BTH 12, RETH 16, ICRC 4, FCS 4.
const dataHeader = 14 + 20 + 8 + 12 + 16 + 4 + 4

// tcpHeader is Ethernet 14, IPv4 20, TCP 20 and FCS 4.
const tcpHeader = 14 + 20 + 20 + 4

// minFrame is the shortest Ethernet frame.
const minFrame = 64

// gapBytes is preamble, delimiter and inter-frame gap.
const gapBytes = 20

// FullPayload returns the bytes of user data of a full packet.
func (p *Packet) FullPayload() int {
	if p.Payload == 0 {
		return p.MTU
	}
	return p.Payload
}

// FullFrame returns the bytes of a full data packet, destination MAC to FCS.
func (p *Packet) FullFrame() int64 {
	if p.Header < 0 {
		return int64(p.FullPayload() + dataHeader)
	}
	return int64(p.FullPayload() + p.Header)
}

// LeastFrame returns the bytes of the shortest frame of a data class: an
// acknowledgement.
func (p *Packet) LeastFrame() int64 {
	if p.Control > 0 {
		return int64(p.Control)
	}
	return minFrame
}

// GapBytes returns what each frame takes on the link beside its bytes.
func (p *Packet) GapBytes() int64 {
	if p.Gap {
		return gapBytes
	}
	return 0
}

// MaxFrame returns the longest frame that the scenario sends, of any class.
func (s *Scenario) MaxFrame() int64 {
	n := s.Packet.FullFrame()
	for i := range s.Workload {
		if s.Workload[i].Op == "tcp" {
			n = max(n, int64(s.Host.TCP.MSS)+tcpHeader)
		}
	}
	return n
}

// PortLink is what the headroom of a port depends on.
type PortLink struct {
	Rate     sim.Rate
	Delay    sim.Time // of the cable, one way
	Response sim.Time // of the peer to a pause
	MaxFrame int64    // longest frame of any class, destination MAC to FCS
	Least    int64    // shortest frame of the lossless class
	Gap      int64    // bytes between frames on the link
}

// HeadroomOf returns the headroom of ports of a rate.
func (b *Buffer) HeadroomOf(rate sim.Rate) Headroom {
	for _, h := range b.HeadroomByRate {
		if h.Rate == rate {
			return h.Headroom
		}
	}
	return b.Headroom
}

// NeedHeadroom returns the bytes of buffer that lossless operation takes at a
// port: 802.1Qbb's terms for ports without delay of their own, in whole cells
// at the worst mix of packet lengths.
func (b *Buffer) NeedHeadroom(l PortLink) int64 {
	frame := l.MaxFrame + l.Gap
	n := theory.IdealHeadroom(int64(l.Rate), int64(l.Delay), frame, minFrame+l.Gap, int64(l.Response))
	cell := int64(b.Cell)
	if cell <= 1 {
		return n
	}
	// What is on the wire fills cells: worst are the shortest frames, or those
	// one byte longer than a cell.
	num, den := (l.Least+cell-1)/cell*cell, l.Least+l.Gap
	if long := cell + 1; 2*cell*den > num*(long+l.Gap) && long > l.Least {
		num, den = 2*cell, long+l.Gap
	}
	n = (n*num + den - 1) / den
	return (n + cell - 1) / cell * cell
}

// HaveHeadroom returns the bytes that the port's rule gives.
func (b *Buffer) HaveHeadroom(l PortLink) int64 {
	h := b.HeadroomOf(l.Rate)
	switch h.Rule {
	case HeadroomHPCC:
		return theory.HPCCHeadroom(int64(l.Rate), int64(l.Delay))
	case HeadroomConweave:
		return theory.ConweaveHeadroom(int64(l.Rate), int64(l.Delay), l.MaxFrame)
	case HeadroomBytes:
		return int64(h.Bytes)
	case HeadroomAuto:
	}
	return b.NeedHeadroom(l)
}
