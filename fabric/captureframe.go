package fabric

import (
	"encoding/binary"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/crc"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/icrc"
	"github.com/verbena-rdma/verbena/wire/ip"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// framer writes packets of a run as the frames that they stand for.
type framer struct {
	g           *topo.Graph
	full        bool
	routed      bool // switches are routers between the leaves' subnets
	here, there ether.MAC
	buf         []byte
}

// tcpLen is a TCP header without options.
const tcpLen = 20

// endpointMAC derives the address of a NIC from its IP address: 02:00 and that.
func endpointMAC(g *topo.Graph, endpoint int32) ether.MAC {
	a := g.Endpoints[endpoint].Addr.As4()
	return ether.MAC{0x02, 0x00, a[0], a[1], a[2], a[3]}
}

// portMAC derives the address of a port: a host's is its NIC's, a switch's is 06,
// three bytes of its number and two of the port's.
func portMAC(g *topo.Graph, node, port int32) ether.MAC {
	if g.Nodes[node].Kind == topo.Host {
		return endpointMAC(g, g.Nodes[node].Endpoint+port)
	}
	return ether.MAC{0x06, byte(node >> 16), byte(node >> 8), byte(node), byte(port >> 8), byte(port)}
}

// frame returns a frame without FCS, cut where the capture cuts it, and its
// whole length. The bytes are lent until the next call.
func (f *framer) frame(k *sim.Packet, out bool) (data []byte, length int) {
	from, to := f.here, f.there
	if !out {
		from, to = to, from
	}
	switch k.Kind {
	case sim.KindPFC:
		c := ether.PFC{}
		for q := range uint8(8) {
			if k.Enable&(1<<q) != 0 {
				c.Set(q, k.Quanta(q))
			}
		}
		return f.room(ether.MinLen)[:c.EncodeFrame(f.buf, from)], ether.MinLen
	case sim.KindPause:
		c := ether.Pause{Quanta: k.Quanta(0)}
		return f.room(ether.MinLen)[:c.EncodeFrame(f.buf, from)], ether.MinLen
	case sim.KindTCP, sim.KindRoCE:
	}
	h := ether.Header{Src: from, Dst: to, Type: ether.TypeIPv4, Tagged: k.Tagged, Tag: ether.MakeTag(k.PCP, false, 0)}
	if !f.routed || k.V1 || f.g.Endpoints[k.Src].Subnet == f.g.Endpoints[k.Dst].Subnet {
		h.Src, h.Dst = endpointMAC(f.g, k.Src), endpointMAC(f.g, k.Dst)
	}
	if k.Kind == sim.KindTCP {
		return f.tcp(k, &h)
	}
	return f.roce(k, &h)
}

// room returns n bytes of zeros.
func (f *framer) room(n int) []byte {
	if cap(f.buf) < n {
		f.buf = make([]byte, max(n, 2048))
	}
	f.buf = f.buf[:n]
	clear(f.buf)
	return f.buf
}

func tos(k *sim.Packet) ip.TOS { return ip.TOS(0).WithDSCP(k.DSCP).WithECN(ip.ECN(k.ECN)) }

// roce writes a frame of RoCE. What is behind the headers is zeros.
func (f *framer) roce(k *sim.Packet, h *ether.Header) (data []byte, length int) {
	src, dst := f.g.Endpoints[k.Src].Addr, f.g.Endpoints[k.Dst].Addr
	e := roce.Envelope{
		Ether: *h, Kind: roce.V2IPv4, Src: ib.GIDFromAddr(src), Dst: ib.GIDFromAddr(dst), TOS: tos(k), TTL: k.TTL, DF: true,
		SrcPort: k.SrcPort, DstPort: k.DstPort,
	}
	if k.V1 {
		e.Kind = roce.V1
	}
	head := k.Head[:k.N]
	payload := int(k.Payload)
	pad := int(wire.PadFor(payload))
	n := len(head) + payload + pad + wire.ICRCLen
	length = max(e.Len()+n, ether.MinLen)
	if payload > 0 && !f.full {
		b := f.room(e.Len() + len(head))
		copy(b[e.EncodeHeaders(b, n):], head)
		return b, length
	}
	b := f.room(length)
	ibp := b[e.EncodeHeaders(b, n):][:n]
	copy(ibp, head)
	flow := e.Flow()
	c := flow.Header(e.Ident, e.DF, ip.UDPLen+n, head)
	icrc.Put(ibp[n-wire.ICRCLen:], crc.Update(c, ibp[len(head):n-wire.ICRCLen]))
	if k.Bad {
		ibp[n-1] ^= 0xFF
	}
	return b, length
}

// tcp writes a segment. The stream begins at 1 in both directions, as behind a
// handshake whose sequence numbers were 0; the window says nothing.
func (f *framer) tcp(k *sim.Packet, h *ether.Header) (data []byte, length int) {
	n := tcpLen + int(k.Payload)
	v4 := ip.IPv4{
		TOS: tos(k), TotalLen: uint16(ip.IPv4Len + n), DF: true, TTL: k.TTL, Proto: ip.ProtoTCP,
		Src: f.g.Endpoints[k.Src].Addr.As4(), Dst: f.g.Endpoints[k.Dst].Addr.As4(),
	}
	headers := h.Len() + ip.IPv4Len + tcpLen
	length = max(h.Len()+ip.IPv4Len+n, ether.MinLen)
	size := length
	if k.Payload > 0 && !f.full {
		size = headers
	}
	b := f.room(size)
	h.Encode(b)
	v4.Encode(b[h.Len():])
	t := b[headers-tcpLen : headers]
	binary.BigEndian.PutUint16(t, k.SrcPort)
	binary.BigEndian.PutUint16(t[2:], k.DstPort)
	binary.BigEndian.PutUint32(t[4:], uint32(k.Seq)+1)
	binary.BigEndian.PutUint32(t[8:], uint32(k.AckSeq)+1)
	t[12], t[13] = tcpLen/4<<4, k.Flags
	binary.BigEndian.PutUint16(t[14:], 0xFFFF)
	// Payload of zeros adds nothing to the sum but its length.
	var pseudo [12 + tcpLen]byte
	copy(pseudo[:], v4.Src[:])
	copy(pseudo[4:], v4.Dst[:])
	pseudo[9] = uint8(ip.ProtoTCP)
	binary.BigEndian.PutUint16(pseudo[10:], uint16(n))
	copy(pseudo[12:], t)
	sum := ip.Checksum(pseudo[:])
	if k.Bad {
		sum ^= 0xFF
	}
	binary.BigEndian.PutUint16(t[16:], sum)
	return b, length
}
