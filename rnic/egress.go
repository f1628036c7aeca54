package rnic

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/crc"
	"github.com/verbena-rdma/verbena/wire/icrc"
)

const udpLen = 8

// Egress fills an empty run from the queue pair whose turn it is. false means
// that nothing may leave now. Owner.
func (a *Adapter) Egress(now clock.Time, r *frame.Run) bool {
	if a.bell.pending() {
		a.answerBells(now)
	}
	if len(a.loops) > 0 {
		a.takeLoops(now)
	}
	if a.ether != nil && a.ether.control.pending() && a.buildControl(r) {
		return true
	}
	for a.cnpReady() {
		if a.buildCNP(r) {
			return true
		}
	}
	if a.sched.fresh != 0 {
		a.sched.resume(now)
	}
	for {
		q := a.sched.take()
		if q == nil {
			return false
		}
		prio, flight := q.sched.prio, q.inFlight()
		sent := false
		if a.phantom {
			sent = a.buildPhantom(now, q, r)
		} else {
			sent = a.build(now, q, r)
		}
		a.place(now, q)
		if !sent && q.sched.list != nil && q.sched.prio == prio {
			a.stall(q)
		}
		if q.inFlight() < flight {
			a.wake(q.dest) // it has failed, and others have its room
		}
		if len(a.overrun) > 0 {
			a.settle(now)
		}
		if sent {
			a.count.sentRuns++
			return true
		}
	}
}

// inFlight returns the bytes under way to the queue pair's destination.
func (q *QP) inFlight() int {
	if q.dest == nil {
		return 0
	}
	return q.dest.window.InFlight()
}

// build fills r with packets of q for as long as they fit together.
//
// A run ends where a longer packet follows, since the kernel cuts all segments
// equally long, or behind a shorter one: the FIRST of a WRITE, longer by its
// RETH, takes one MIDDLE with it, the others form the next run, which a shorter
// LAST or the next FIRST ends. An ACK does not join a single packet: cutting
// would cost that one, which somebody may wait for, more than a second call.
func (a *Adapter) build(now clock.Time, q *QP, r *frame.Run) bool {
	limit := min(a.runBytes, len(r.Buf))
	q.catchUp(now)
	held := q.pacer.holds(now) // but for an ACK
	if q.pacer.rate != 0 {
		limit = min(limit, max(q.pacer.room(a.burst), a.cfg.Wire.MTU))
	}
	paced := 0
	var to ib.QPN   // whom the run is for
	var along *path // and the way it takes
	for r.Segs < a.runSegs {
		h, ok := q.eng.Next(now)
		if !ok || held && !h.Ack {
			break
		}
		p := &q.path
		if q.typ == ib.UD {
			if p = a.datagramPath(q, h.AH); p == nil {
				a.discard(now, q)
				continue
			}
		}
		if p.group { // the handle stands for the QPN, too
			h.DestQPN = ib.QPMulticast
		}
		env := a.env(p)
		n := h.WireLen + env.len()
		if r.Segs == 0 {
			if p.prio != q.sched.prio {
				q.sched.prio = p.prio // its turn comes with that priority
				break
			}
			if n > limit {
				a.discard(now, q)
				continue
			}
		} else if n > r.Seg || r.N+n > limit || p != along && !p.envelops(along) ||
			h.Ack && r.Segs == 1 || h.DestQPN != to && !a.cfg.MixQPNs {
			break
		}
		out := a.emit(now, q)
		if p.group {
			out.DestQPN = ib.QPMulticast
		}
		if h.Ack {
			a.tell(q, out)
		} else {
			paced += h.WireLen + a.overhead
		}
		tos := p.tos
		if out.ECT && q.flags&qpECT != 0 {
			tos = tos&^3 | ectCodePoint
		}
		if r.Segs == 0 {
			r.Src, r.Dst, r.SrcPort, r.TOS, r.TTL = a.addrs[p.row], p.dst, p.sport, tos, p.ttl
			r.Seg, to, along = n, h.DestQPN, p
		}
		ident := a.ident(r.Segs)
		if !a.encode(env.wrap(r.Buf[r.N:r.N+n], p, ident, tos, p.prio), p, ident, out) {
			a.count.sendErr++
			continue
		}
		r.N += n
		r.Segs++
		if n < r.Seg {
			break
		}
	}
	if r.Segs == 0 {
		return false
	}
	r.Prio, r.QPN, r.WireLen = q.sched.prio, uint32(q.qpn), r.N-r.Segs*a.env(along).len()
	a.count.sentPkts += uint64(r.Segs)
	a.count.sentBytes += uint64(r.WireLen)
	q.own().sent(r.Segs, r.WireLen)
	if paced > 0 {
		a.paid(now, q, paced)
	}
	if along.group {
		a.loop(r)
	}
	return true
}

// tell writes into an acknowledgement what it has to tell of congestion.
func (a *Adapter) tell(q *QP, out *transport.Out) {
	if q.np != nil && q.cc != nil && q.cc.echo {
		out.BECN = q.np.np.TakeEcho()
	}
}

// ectCodePoint is ECT(0), RFC 3168 §5.
const ectCodePoint = 2

// emit takes the packet that Next has described.
func (a *Adapter) emit(now clock.Time, q *QP) *transport.Out {
	out := &a.scratch.out
	// Everything that an engine may leave alone; headers that the opcode does
	// not have mean nothing.
	out.Solicited, out.MigReq, out.FECN, out.BECN, out.AckReq, out.ECT = false, false, false, false, false, false
	out.TVer, out.PKey = 0, ib.DefaultPKey
	out.Len, out.Inline, out.Payload, out.Frags = 0, nil, nil, out.Frags[:0]
	q.eng.Emit(now, out)
	return out
}

// discard takes a packet that cannot leave: on an unreliable service nobody
// hears of it.
func (a *Adapter) discard(now clock.Time, q *QP) {
	a.emit(now, q)
	a.count.sendErr++
}

// datagramPath returns the path of an address handle, or nil if it is none of
// the queue pair's protection domain.
func (a *Adapter) datagramPath(q *QP, h ib.AH) *path {
	s := a.ahs.get(h)
	if s == nil || s.pd != q.pd {
		return nil
	}
	return &s.path
}

// ident returns the IPv4 Identification with which the link sends segment i.
func (a *Adapter) ident(i int) uint16 {
	if !a.cfg.Wire.Idents {
		return 0
	}
	return uint16(i)
}

// encode writes a packet to b, which is exactly as long as it shall be: headers,
// the payload with its one copy, pad and ICRC. false means that the engine has
// announced another length.
func (a *Adapter) encode(b []byte, p *path, ident uint16, out *transport.Out) bool {
	out.Pad = wire.PadFor(out.Len)
	n := out.EncodeHeaders(b)
	if n == 0 || n+out.Len+int(out.Pad)+wire.ICRCLen != len(b) {
		return false
	}
	c := p.flow.Header(ident, true, udpLen+len(b), b[:n])
	end := n + out.Len
	a.count.txCopied += uint64(out.Len)
	if out.Inline != nil {
		if len(out.Inline) != out.Len {
			return false
		}
		c = crc.Copy(b[n:end], out.Inline, c)
		n = end
	}
	for i := range out.Frags {
		f := &out.Frags[i]
		k := f.Len()
		if k > end-n {
			return false
		}
		if f.Data != nil {
			c = crc.Copy(b[n:n+k], f.Data, c)
		} else {
			// Phantom memory reads as zeros.
			clear(b[n : n+k])
			c = crc.Update(c, b[n:n+k])
		}
		n += k
	}
	if n != end {
		return false
	}
	if out.Pad != 0 {
		pad := b[n : n+int(out.Pad)]
		clear(pad)
		c = crc.Short(c, pad)
		n += int(out.Pad)
	}
	icrc.Put(b[n:], c)
	return true
}
