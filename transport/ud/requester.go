package ud

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// requester is the state of the sending side.
type requester struct {
	psn ib.PSN // of the next packet

	// What Next has described.
	w *transport.SendWQE
}

func (r *requester) reset(psn ib.PSN) { *r = requester{psn: psn} }

// Next describes the packet that Emit would emit now. A work request that is
// longer than a packet, or whose memory cannot be read, fails here.
func (e *Engine) Next(clock.Time) (transport.Head, bool) {
	e.q.Settle()
	r := &e.req
	w := e.q.Sendable()
	r.w = nil
	if w == nil {
		return transport.Head{}, false
	}
	if uint64(w.Len) > uint64(e.mtu) {
		e.q.Fail(ib.LocLenErr, 0)
		return transport.Head{}, false
	}
	if f := e.gather(w); f != mem.FaultNone {
		e.q.Fail(ib.LocProtErr, uint32(f))
		return transport.Head{}, false
	}
	r.w = w
	n := opcode(w).Info().Len + int(w.Len+3)&^3 + wire.ICRCLen
	return transport.Head{WireLen: n, AH: w.UD.AH, DestQPN: w.UD.QPN}, true
}

// gather finds the payload of w.
func (e *Engine) gather(w *transport.SendWQE) (f mem.Fault) {
	cfg := &e.q.Cfg
	sc := cfg.Scratch
	sc.Frags = sc.Frags[:0]
	if w.Flags&ib.Inline != 0 {
		return mem.FaultNone
	}
	sc.Frags, f = cfg.Mem.Gather(cfg.PD, w.SGL, 0, int(w.Len), sc.Frags)
	return f
}

func opcode(w *transport.SendWQE) wire.Opcode {
	if w.Op.HasImm() {
		return wire.UDSendOnlyImm
	}
	return wire.UDSendOnly
}

// Emit fills out with the packet that the last Next described.
func (e *Engine) Emit(now clock.Time, out *transport.Out) {
	r, cfg := &e.req, &e.q.Cfg
	w := r.w
	if w == nil {
		return
	}
	out.SetOp(opcode(w))
	out.AckReq, out.FECN, out.BECN, out.TVer = false, false, false, 0
	out.MigReq, out.PKey, out.DestQPN = cfg.MigReq, e.attr.Key(), w.UD.QPN
	out.PSN = r.psn
	out.Solicited = w.Flags&ib.Solicited != 0
	out.Imm = w.Imm
	out.DETH = wire.DETH{QKey: w.UD.QKey, SrcQPN: cfg.QPN}
	if w.UD.QKey.Privileged() {
		out.DETH.QKey = e.attr.QKey
	}
	out.Payload, out.Inline, out.Len, out.ECT = nil, nil, int(w.Len), true
	out.Pad = wire.PadFor(out.Len)
	if w.Flags&ib.Inline != 0 {
		out.Inline = w.Inline[:w.Len]
	} else {
		out.Frags = append(out.Frags, cfg.Scratch.Frags...)
	}

	r.w = nil
	r.psn = r.psn.Add(1)
	w.Started = true
	e.q.Left(now)
}
