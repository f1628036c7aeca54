package rnic

import (
	"encoding/binary"
	"net/netip"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// rxScratch is what one packet needs on its way in, kept between packets.
type rxScratch struct {
	pkt wire.Packet
	in  transport.In
	grh [40]byte
	// head holds the headers of a phantom packet with pad; none are longer.
	head [64]byte
}

// Ingress takes what a link received, which is lent for the call: it cuts
// merged buffers into packets and hands each to its queue pair, or counts why
// not. Any bytes are harmless. Owner.
func (a *Adapter) Ingress(now clock.Time, f *frame.Rx) {
	if a.phantom {
		a.ingressPhantom(now, f)
		return
	}
	if a.ether != nil {
		a.ingressEther(now, f)
		return
	}
	seg := f.Seg
	if seg <= 0 || seg > len(f.Data) {
		seg = len(f.Data)
	}
	if seg == 0 {
		a.count.drop(dropShort)
		return
	}
	from := arrival{f: f}
	var last *QP
	for data := f.Data; len(data) > 0; from.index++ {
		n := min(seg, len(data))
		q := a.packet(now, &from, data[:n:n])
		data = data[n:]
		if q == nil || q == last {
			continue
		}
		if last != nil {
			a.look(now, last)
		}
		last = q
		if len(a.overrun) > 0 {
			a.look(now, q)
			a.settle(now)
		}
	}
	if last != nil {
		a.look(now, last)
	}
	a.settle(now)
}

// arrival is one received buffer on its way through Ingress.
type arrival struct {
	f     *frame.Rx
	index int     // of the packet in the buffer
	src   *source // found with the first packet that has a queue pair
	ident uint16  // IPv4 Identification of its first packet, as far as is known
	gid   uint16  // row of the GID table that the buffer was sent to
}

// packet handles the bytes from one BTH to its ICRC and returns the queue pair
// that got the packet, or nil if it was dropped. Nothing is believed, and no
// memory touched, before the ICRC is verified.
func (a *Adapter) packet(now clock.Time, from *arrival, b []byte) *QP {
	if len(b) < wire.BTHLen+wire.ICRCLen {
		a.count.drop(dropShort)
		return nil
	}
	p := &a.scratch.rx.pkt
	if r := p.Decode(b[:len(b)-wire.ICRCLen]); r != wire.ReasonNone {
		a.count.drop(dropOf(r))
		return nil
	}
	if p.DestQPN == ib.QPMulticast {
		a.multicast(now, from, p, b)
		return nil
	}
	q := a.find(p, from.f.Src)
	if q == nil {
		return nil
	}
	if from.src == nil && !a.findSource(from, q) {
		a.count.drop(dropAddress)
		return nil
	}
	ident, df, ok := from.src.verify(b, from.index, from.ident+uint16(from.index), &a.count)
	if !ok {
		a.count.drop(dropICRC)
		return nil
	}
	from.ident = ident - uint16(from.index)

	in := &a.scratch.rx.in
	*in = transport.In{SGIDIndex: from.gid, CE: from.f.TOS&3 == 3}
	if q.typ == ib.UD {
		a.writeGRH(from.f, from.src.src, from.src.dst, len(b), ident, df)
		in.GRH = &a.scratch.rx.grh
	}
	a.count.rxCopied += uint64(len(p.Payload))
	a.give(now, q, p, in, len(b), from.f.Src)
	return q
}

// find returns the queue pair that a packet is for, or counts why there is
// none: a connected one listens to its peer's address alone.
func (a *Adapter) find(p *wire.Packet, src netip.Addr) *QP {
	if p.DestQPN == ib.QPMulticast {
		a.count.drop(dropMulticast)
		return nil
	}
	q := a.qps.get(p.DestQPN)
	if q == nil {
		if p.DestQPN <= ib.QPGSI {
			a.count.drop(dropManagement)
		} else {
			a.count.drop(dropNoQP)
		}
		return nil
	}
	if q.typ != ib.UD {
		if !q.path.ok {
			q.dropped(transport.DropState)
			return nil
		}
		if dst := q.path.dst; src != dst && src.WithZone("") != dst.WithZone("") {
			q.dropped(transport.DropSource)
			return nil
		}
	}
	if !p.PKey.Matches(q.pkey) {
		q.dropped(transport.DropPKey)
		return nil
	}
	return q
}

// give hands a good packet of n bytes, BTH to ICRC, from src to its queue pair.
func (a *Adapter) give(now clock.Time, q *QP, p *wire.Packet, in *transport.In, n int, src netip.Addr) {
	a.received(p, in, n)
	q.own().received(n, in.CE)
	if p.Op == wire.CNP {
		a.count.cnp++
		q.own().cnp++
		a.notified(now, q)
		return
	}
	if in.CE && q.cc != nil {
		a.marked(now, q, p, src, in.SGIDIndex)
	}
	if p.BECN && q.cc != nil && q.cc.echo {
		a.notified(now, q)
	}
	q.receive(now, p, in)
}

// received counts a good packet of n bytes.
func (a *Adapter) received(p *wire.Packet, in *transport.In, n int) {
	a.count.rcvdPkts++
	a.count.rcvdBytes += uint64(n)
	if in.CE {
		a.count.ecnMarked++
	}
	if p.FECN {
		a.count.fecn++
	}
	if p.BECN {
		a.count.becn++
	}
}

// findSource looks up what is known of the buffer's sender. A link that cannot
// tell the destination has one address of a family, or the queue pair knows.
func (a *Adapter) findSource(from *arrival, q *QP) bool {
	src, dst := from.f.Src.WithZone("").Unmap(), from.f.Dst.WithZone("").Unmap()
	if !src.IsValid() {
		return false
	}
	if !dst.IsValid() && q.path.ok {
		dst = a.addrs[q.path.row]
	}
	row := a.gidRow(dst, src.Is4())
	if row < 0 {
		return false
	}
	from.gid = uint16(row)
	from.src = a.sources.get(src, a.cfg.GIDs[row].GID.Addr(), from.f.SrcPort, a.qps.len())
	from.ident = from.src.first()
	return true
}

// gidRow returns the row of the GID table that holds an address or, if that is
// not known, the first of the family; -1 if there is none.
func (a *Adapter) gidRow(dst netip.Addr, is4 bool) int {
	gid := ib.GID{}
	if dst.IsValid() {
		gid = ib.GIDFromAddr(dst)
	}
	for i := range a.cfg.GIDs {
		g := &a.cfg.GIDs[i]
		if g.Type != ib.GIDTypeRoCEv2 || g.GID.IsZero() {
			continue
		}
		if g.GID == gid || !dst.IsValid() && g.GID.Is4() == is4 && g.Unusable == "" {
			return i
		}
	}
	return -1
}

// writeGRH makes the 40 bytes that a UD receive buffer begins with: the IPv6
// header, or behind 20 zero bytes the IPv4 header (IBA vol.1 annex A17.4.5.1).
// What a socket hides is written as 0: the flow label, and TTL where the link
// cannot tell.
func (a *Adapter) writeGRH(f *frame.Rx, from, to netip.Addr, n int, ident uint16, df bool) {
	h := a.scratch.rx.grh[:]
	clear(h)
	const nextUDP = 17
	if to.Is6() {
		binary.BigEndian.PutUint32(h, 6<<28|uint32(f.TOS)<<20)
		binary.BigEndian.PutUint16(h[4:], uint16(udpLen+n))
		h[6], h[7] = nextUDP, f.TTL
		src, dst := from.As16(), to.As16()
		copy(h[8:], src[:])
		copy(h[24:], dst[:])
		return
	}
	ip := h[20:]
	ip[0], ip[1] = 0x45, f.TOS
	binary.BigEndian.PutUint16(ip[2:], uint16(20+udpLen+n))
	binary.BigEndian.PutUint16(ip[4:], ident)
	if df {
		ip[6] = 0x40
	}
	ip[8], ip[9] = f.TTL, nextUDP
	src, dst := from.As4(), to.As4()
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	sum = sum&0xFFFF + sum>>16
	sum = sum&0xFFFF + sum>>16
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
}
