package probe

import (
	"encoding/binary"
	"net/netip"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/icrc"
)

// RoCEPort is RoCEv2's UDP port (IBA vol.1 annex A17.2).
const RoCEPort = 4791

const (
	ipv4Len = 20
	ipv6Len = 40
	udpLen  = 8

	// payloadLen is what a probe says; bytes after it are zero.
	payloadLen = 60
	frameLen   = wire.BTHLen + payloadLen + wire.ICRCLen

	// MinSize and MaxSize bound the IP packet of a probe, in bytes. Sizes are
	// multiples of 4, as RoCE's packets are.
	MinSize = ipv6Len + udpLen + frameLen
	MaxSize = 9216
)

// magic begins the payload of every probe; its last byte is the layout.
const magic = 0x56524201

// kind says what a packet is for.
type kind uint8

const (
	kindProbe   kind = 1 + iota // to UDP 4791
	kindEcho                    // the answer to a probe that asked for one
	kindWitness                 // to the control channel's port, and its answer
)

// Token names a session. It is drawn by the listener and known to the two ends
// of the control connection only.
type token [16]byte

// datagram is the value form of a probe.
//
//	BTH: UC SEND Only, P_Key 0xFFFF, destination QPN 0, PSN = the low bits of seq
//	 0: magic             4: kind  5: 1 if an echo is wanted  6: TOS as sent  7: path
//	 8: seq              12: token                            28: sent, ns since 1970
//	36: of an echo: the probe arrived    44: of an echo: the echo was sent
//	52: zero, up to the size; then the ICRC
type datagram struct {
	kind   kind
	echo   bool
	tos    uint8
	path   uint8
	seq    uint32
	token  token
	sentAt int64
	heard  int64
	echoed int64
}

// ipHeader is the length of the IP header of packets to or from a.
func ipHeader(a netip.Addr) int {
	if a.Unmap().Is4() {
		return ipv4Len
	}
	return ipv6Len
}

// encode writes the UDP payload of d to b, whose length it fills: the IP packet
// without IP and UDP header. It is false if b is too short or no multiple of 4.
//
// UC never answers, and packets to a queue pair that does not exist, or of
// another service, are dropped silently (IBA vol.1 9.6.1.1, 9.8.2).
func (d *datagram) encode(b []byte) bool {
	if len(b) < frameLen || len(b)%4 != 0 {
		return false
	}
	clear(b)
	var p wire.Packet
	p.SetOp(wire.UCSendOnly)
	p.PKey = ib.DefaultPKey
	p.PSN = ib.PSN(d.seq & 0xFFFFFF)
	b = b[p.EncodeHeaders(b):]
	binary.BigEndian.PutUint32(b, magic)
	b[4] = uint8(d.kind)
	if d.echo {
		b[5] = 1
	}
	b[6], b[7] = d.tos, d.path
	binary.BigEndian.PutUint32(b[8:], d.seq)
	copy(b[12:], d.token[:])
	binary.BigEndian.PutUint64(b[28:], uint64(d.sentAt))
	binary.BigEndian.PutUint64(b[36:], uint64(d.heard))
	binary.BigEndian.PutUint64(b[44:], uint64(d.echoed))
	return true
}

// seal puts the ICRC that the packet has with Identification 0 and
// don't-fragment at the end of b.
func seal(b []byte, src, dst netip.AddrPort) {
	if len(b) < icrc.MinLen {
		return
	}
	f := flowOf(src, dst)
	icrc.Put(b[len(b)-icrc.Len:], f.Sum(0, true, b))
}

func flowOf(src, dst netip.AddrPort) icrc.Flow {
	a, b := src.Addr().Unmap(), dst.Addr().Unmap()
	if a.Is4() && b.Is4() {
		return icrc.V4(a.As4(), b.As4(), src.Port(), dst.Port())
	}
	return icrc.V6(a.As16(), b.As16(), src.Port(), dst.Port())
}

// decode fills d from a UDP payload; it is false for what is no probe. The
// ICRC is not looked at. b is borrowed.
func (d *datagram) decode(b []byte) bool {
	var p wire.Packet
	if len(b) < frameLen || p.Decode(b[:len(b)-wire.ICRCLen]) != wire.ReasonNone || p.Op != wire.UCSendOnly || p.DestQPN != 0 {
		return false
	}
	return d.decodePayload(p.Payload)
}

func (d *datagram) decodePayload(b []byte) bool {
	if len(b) < payloadLen-8 || binary.BigEndian.Uint32(b) != magic || b[5] > 1 {
		return false
	}
	*d = datagram{
		kind: kind(b[4]), echo: b[5] == 1, tos: b[6], path: b[7],
		seq: binary.BigEndian.Uint32(b[8:]), token: token(b[12:28]),
		sentAt: int64(binary.BigEndian.Uint64(b[28:])),
		heard:  int64(binary.BigEndian.Uint64(b[36:])),
		echoed: int64(binary.BigEndian.Uint64(b[44:])),
	}
	return d.kind >= kindProbe && d.kind <= kindWitness
}
