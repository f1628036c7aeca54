package rc

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// executeAtomic performs an ATOMIC and saves its result, which is the answer
// to the request and to every duplicate of it (IBA vol.1 9.7.5.1.4): memory
// changes once.
func (e *Engine) executeAtomic(a *arrival) {
	h := &a.p.Atomic
	op := ib.FetchAdd
	if a.info.Op == wire.RCCompareSwap {
		op = ib.CompareSwap
	}
	before, f := e.cfg.Mem.Atomic(e.cfg.PD, e.cfg.QPN, h.RKey, h.VA, op, h.Compare, h.SwapAdd)
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
		kind: wire.KindAtomic, first: psn, last: psn, start: psn, cur: psn, stop: psn,
		va: h.VA, rkey: h.RKey, result: before, msn: r.msn,
	})
}
