package rc

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// startRead accepts a READ request: it takes the PSNs of its response, which
// becomes due.
func (e *Engine) startRead(a *arrival) {
	r := &e.rsp
	h := &a.p.RETH
	first := r.epsn
	r.epsn = first.Add(e.packets(h.Len))
	r.msn = (r.msn + 1) & msnMask
	e.remember(&saved{
		kind: wire.KindReadRequest, first: first, last: r.epsn.Add(-1),
		start: first, cur: first, stop: r.epsn.Add(-1),
		va: h.VA, rkey: h.RKey, len: h.Len, msn: r.msn,
	})
}

// rereadable reports whether a duplicate READ request asks for the response s
// again or a part of it (IBA vol.1 9.7.5.1.4), and returns its last PSN.
func (e *Engine) rereadable(s *saved, p *wire.Packet) (stop ib.PSN, ok bool) {
	h := &p.RETH
	skip := uint64(p.PSN.Sub(s.first)) * uint64(e.mtu)
	if skip > uint64(s.len) || h.RKey != s.rkey || h.VA != s.va+skip {
		return 0, false
	}
	rest := s.len - uint32(skip)
	if h.Len > rest || h.Len < rest && h.Len%uint32(e.mtu) != 0 || h.Len == 0 && rest != 0 {
		return 0, false
	}
	return p.PSN.Add(e.packets(h.Len) - 1), true
}

// nextResponse describes the READ response packet or ATOMIC result that is due.
// If the memory of a READ is gone, the response ends with a NAK instead. Where
// it had been answered to the end before, the duplicate is dropped and ok is
// false: a straggler must not end a connection whose application has long done
// with the region.
func (e *Engine) nextResponse() (transport.Head, bool) {
	r := &e.rsp
	s := r.saved.front()
	if s.kind == wire.KindAtomic {
		e.pick = pick{kind: pickResponse}
		return transport.Head{WireLen: wireLen(wire.RCAtomicAck, 0)}, true
	}
	off := uint64(s.cur.Sub(s.first)) * uint64(e.mtu)
	n := int(min(uint64(e.mtu), uint64(s.len)-off))
	sc := e.cfg.Scratch
	var frag mem.Frag
	reg, f := e.cfg.Mem.Remote(e.cfg.PD, e.cfg.QPN, s.rkey, s.va+off, uint64(n), ib.RemoteRead)
	if f == mem.FaultNone {
		frag, f = reg.ReadAt(s.va+off, n, &sc.Copy)
	}
	if f != mem.FaultNone && !s.fresh {
		e.cfg.Sink.Drop(transport.DropAccess)
		r.saved.frontDone()
		return transport.Head{}, false
	}
	if f != mem.FaultNone {
		r.saved.clearDue()
		e.refuse(wire.NAKRemoteAccess, transport.DropAccess)
		r.nakDue, r.nakPSN, r.nakSyndrome = true, s.cur, wire.NAKSyndrome(wire.NAKRemoteAccess)
		return e.nextAnswer(pickNAK)
	}
	sc.Frags = sc.Frags[:0]
	if n > 0 {
		sc.Frags = append(sc.Frags, frag)
	}
	e.pick = pick{kind: pickResponse, n: int32(n)}
	return transport.Head{WireLen: wireLen(s.op(), n)}, true
}

// emitResponse fills out with the picked response packet.
func (e *Engine) emitResponse(out *transport.Out) {
	r := &e.rsp
	s := r.saved.front()
	out.SetOp(s.op())
	out.PSN = s.cur
	out.AETH = wire.AETH{Syndrome: wire.ACKSyndrome(e.credits()), MSN: s.msn}
	out.AtomicAck = s.result
	if out.Len = int(e.pick.n); out.Len > 0 {
		out.Frags = append(out.Frags, e.cfg.Scratch.Frags...)
	}
	if s.cur != s.stop {
		s.cur = s.cur.Add(1)
		return
	}
	if s.cur.Add(1) == r.epsn {
		r.ackDue = false // the response acknowledges all before it
	}
	r.saved.frontDone()
}
