package rc

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// FLUSH and ATOMIC WRITE (IBA vol.1 1.5, annex A19) are requests of one packet that an
// empty READ response answers, not an ACK: the requester must know that they are
// done, and the responder remembers them as it does READs and ATOMICs. A
// duplicate is answered and not executed again.

// atomicWriteLen is the only length of an ATOMIC WRITE.
const atomicWriteLen = 8

// flushAccess returns the rights that a placement asks for, 0 if it is none.
func flushAccess(placement uint8) (need ib.Access) {
	p := ib.FlushPlacement(placement)
	if p&^(ib.FlushGlobal|ib.FlushPersistent) != 0 {
		return 0
	}
	if p&ib.FlushGlobal != 0 {
		need |= ib.RemoteFlush
	}
	if p&ib.FlushPersistent != 0 {
		need |= ib.RemotePersist
	}
	return need
}

// executeEmpty performs a FLUSH or ATOMIC WRITE, whose answer becomes due.
func (e *Engine) executeEmpty(a *arrival) {
	h := &a.p.RETH
	f := mem.FaultNone
	if a.info.Kind == wire.KindFlush {
		whole := a.p.FETH.Level == uint8(ib.FlushRegion)
		f = e.cfg.Mem.Flush(e.cfg.PD, e.cfg.QPN, h.RKey, h.VA, uint64(h.Len), whole, flushAccess(a.p.FETH.Placement))
	} else {
		f = e.cfg.Mem.AtomicWrite(e.cfg.PD, e.cfg.QPN, h.RKey, h.VA, a.data)
	}
	switch f {
	case mem.FaultNone:
	case mem.FaultAlign:
		e.refuse(wire.NAKInvalid, transport.DropAccess)
		return
	default:
		e.refuse(wire.NAKRemoteAccess, transport.DropAccess)
		return
	}
	r := &e.rsp
	psn := r.epsn
	r.epsn = psn.Add(1)
	r.msn = (r.msn + 1) & msnMask
	e.remember(&saved{
		kind: a.info.Kind, first: psn, last: psn, start: psn, cur: psn, stop: psn,
		va: h.VA, rkey: h.RKey, msn: r.msn,
	})
}
