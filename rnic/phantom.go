package rnic

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// Phantom links, those of a simulator, carry headers and the length of a
// payload. The headers are those that the same packet has on any link; there is
// no ICRC, and nothing to learn about a sender.

// buildPhantom fills r with one packet of q.
func (a *Adapter) buildPhantom(now clock.Time, q *QP, r *frame.Run) bool {
	q.catchUp(now)
	held := q.pacer.holds(now) // but for an ACK
	for {
		h, ok := q.eng.Next(now)
		if !ok || held && !h.Ack {
			return false
		}
		p := &q.path
		if q.typ == ib.UD {
			if p = a.datagramPath(q, h.AH); p == nil {
				a.discard(now, q)
				continue
			}
		}
		if p.prio != q.sched.prio {
			q.sched.prio = p.prio // its turn comes with that priority
			return false
		}
		if h.WireLen > a.frameMTU {
			a.discard(now, q)
			continue
		}
		out := a.emit(now, q)
		if p.group {
			out.DestQPN = ib.QPMulticast
		}
		if h.Ack {
			a.tell(q, out)
		}
		if !encodePhantom(r, out) {
			r.N, r.Phantom = 0, 0
			a.count.sendErr++
			continue
		}
		r.Seg, r.Segs = r.N, 1
		r.Src, r.Dst, r.SrcPort, r.TOS, r.TTL = a.addrs[p.row], p.dst, p.sport, p.tos, p.ttl
		if out.ECT && q.flags&qpECT != 0 {
			r.TOS = r.TOS&^3 | ectCodePoint
		}
		r.Prio, r.QPN, r.WireLen, r.Ack = p.prio, uint32(q.qpn), h.WireLen, h.Ack
		a.count.txCopied += uint64(out.Len - r.Phantom)
		a.count.sentPkts++
		a.count.sentBytes += uint64(h.WireLen)
		q.own().sent(1, h.WireLen)
		if !h.Ack {
			a.paid(now, q, h.WireLen+a.overhead)
		}
		if p.group {
			a.loop(r)
		}
		return true
	}
}

// encodePhantom writes a packet to r: headers, and the payload with its pad
// unless all of it is phantom. false means that the buffer is too short, or the
// engine has announced another length.
func encodePhantom(r *frame.Run, out *transport.Out) bool {
	out.Pad = wire.PadFor(out.Len)
	n := out.EncodeHeaders(r.Buf)
	if n == 0 {
		return false
	}
	if out.Len == 0 {
		r.N = n
		return true
	}
	if out.Inline == nil && allPhantom(out.Frags, out.Len) {
		r.N, r.Phantom = n, out.Len
		return true
	}
	end := n + out.Len
	if end+int(out.Pad) > len(r.Buf) {
		return false
	}
	if out.Inline != nil {
		n += copy(r.Buf[n:end], out.Inline)
	}
	for i := range out.Frags {
		f := &out.Frags[i]
		if f.Len() > end-n {
			return false
		}
		if f.Data != nil {
			n += copy(r.Buf[n:end], f.Data)
		} else {
			// Phantom memory beside bytes reads as zeros.
			clear(r.Buf[n : n+f.Phantom])
			n += f.Phantom
		}
	}
	clear(r.Buf[end : end+int(out.Pad)])
	r.N = end + int(out.Pad)
	return n == end
}

// allPhantom reports whether a payload of n bytes has none that exist.
func allPhantom(frags []mem.Frag, n int) bool {
	for i := range frags {
		if frags[i].Data != nil {
			return false
		}
		n -= frags[i].Phantom
	}
	return n == 0
}

// ingressPhantom is Ingress for what a phantom link carries.
func (a *Adapter) ingressPhantom(now clock.Time, f *frame.Rx) {
	if q := a.phantomPacket(now, f); q != nil {
		a.look(now, q)
	}
	a.settle(now)
}

// phantomPacket is [Adapter.packet] for a frame of a phantom link.
func (a *Adapter) phantomPacket(now clock.Time, f *frame.Rx) *QP {
	b := f.Data
	if len(b) < wire.BTHLen {
		a.count.drop(dropShort)
		return nil
	}
	pad := b[1] >> 4 & 3
	if f.Phantom != 0 && pad != 0 {
		// The pad that the header speaks of is as phantom as the payload.
		b = a.scratch.rx.head[:copy(a.scratch.rx.head[:], b)]
		b[1] &^= 3 << 4
	}
	p := &a.scratch.rx.pkt
	if r := p.Decode(b); r != wire.ReasonNone {
		a.count.drop(dropOf(r))
		return nil
	}
	n := len(b) + wire.ICRCLen
	if f.Phantom != 0 {
		switch {
		case f.Phantom < 0 || len(p.Payload) != 0 || !p.Info.Payload:
			a.count.drop(dropBadLength)
			return nil
		case pad != wire.PadFor(f.Phantom):
			a.count.drop(dropBadPad)
			return nil
		}
		p.Pad = pad
		n += f.Phantom + int(pad)
	}
	if p.DestQPN == ib.QPMulticast {
		a.multicastPhantom(now, f, p, n)
		return nil
	}
	q := a.find(p, f.Src)
	if q == nil {
		return nil
	}
	if f.Bad {
		a.count.drop(dropICRC)
		return nil
	}
	in := &a.scratch.rx.in
	in.GRH, in.SGIDIndex, in.CE, in.PhantomLen = nil, 0, f.TOS&3 == 3, f.Phantom
	if q.typ == ib.UD && !a.addressPhantom(f, in, n) {
		a.count.drop(dropAddress)
		return nil
	}
	a.count.rxCopied += uint64(len(p.Payload))
	a.give(now, q, p, in, n, f.Src)
	return q
}

// addressPhantom tells what a datagram's receiver learns of its addresses.
func (a *Adapter) addressPhantom(f *frame.Rx, in *transport.In, n int) bool {
	src, dst := f.Src.WithZone("").Unmap(), f.Dst.WithZone("").Unmap()
	if !src.IsValid() {
		return false
	}
	row := a.gidRow(dst, src.Is4())
	if row < 0 || a.cfg.GIDs[row].GID.Is4() != src.Is4() {
		return false
	}
	in.SGIDIndex, in.GRH = uint16(row), &a.scratch.rx.grh
	a.writeGRH(f, src, a.cfg.GIDs[row].GID.Addr(), n, 0, true)
	return true
}
