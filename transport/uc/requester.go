package uc

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// requester is the state of the sending side. How far the message at the head
// of the send queue has come is in its WQE (Started, Done).
type requester struct {
	psn ib.PSN // of the next packet

	// What Next has described.
	w *transport.SendWQE
	n int // payload bytes
}

func (r *requester) reset(psn ib.PSN) { *r = requester{psn: psn} }

// Next describes the packet that Emit would emit now. A work request whose
// memory cannot be read fails here.
func (e *Engine) Next(clock.Time) (transport.Head, bool) {
	e.q.Settle()
	r := &e.req
	for r.w = e.q.Sendable(); r.w != nil && r.w.Op.IsLocal(); r.w = e.q.Sendable() {
		e.q.Local(r.w)
	}
	if r.w == nil {
		return transport.Head{}, false
	}
	if f := e.gather(r.w); f != mem.FaultNone {
		r.w = nil
		e.q.Fail(ib.LocProtErr, uint32(f))
		return transport.Head{}, false
	}
	info := e.opcode(r.w).Info()
	return transport.Head{WireLen: info.Len + (r.n+3)&^3 + wire.ICRCLen}, true
}

// gather finds the payload of the next packet of w. The first packet checks the
// list of the whole message, so that one with a bad element sends nothing.
func (e *Engine) gather(w *transport.SendWQE) (f mem.Fault) {
	r, cfg := &e.req, &e.q.Cfg
	r.n = int(min(uint32(e.mtu), w.Len-w.Done))
	sc := cfg.Scratch
	sc.Frags = sc.Frags[:0]
	if w.Flags&ib.Inline != 0 {
		return mem.FaultNone
	}
	if !w.Started {
		if f := cfg.Mem.Check(cfg.PD, w.SGL, 0); f != mem.FaultNone {
			return f
		}
	}
	sc.Frags, f = cfg.Mem.Gather(cfg.PD, w.SGL, uint64(w.Done), r.n, sc.Frags)
	return f
}

// opcodes by operation and place in the message.
var (
	sendOps     = [...]wire.Opcode{wire.PosFirst: wire.UCSendFirst, wire.PosMiddle: wire.UCSendMiddle, wire.PosLast: wire.UCSendLast, wire.PosOnly: wire.UCSendOnly}
	sendImmOps  = [...]wire.Opcode{wire.PosFirst: wire.UCSendFirst, wire.PosMiddle: wire.UCSendMiddle, wire.PosLast: wire.UCSendLastImm, wire.PosOnly: wire.UCSendOnlyImm}
	writeOps    = [...]wire.Opcode{wire.PosFirst: wire.UCWriteFirst, wire.PosMiddle: wire.UCWriteMiddle, wire.PosLast: wire.UCWriteLast, wire.PosOnly: wire.UCWriteOnly}
	writeImmOps = [...]wire.Opcode{wire.PosFirst: wire.UCWriteFirst, wire.PosMiddle: wire.UCWriteMiddle, wire.PosLast: wire.UCWriteLastImm, wire.PosOnly: wire.UCWriteOnlyImm}
)

// opcode returns the opcode of the packet that Next has chosen.
func (e *Engine) opcode(w *transport.SendWQE) wire.Opcode {
	pos := wire.PosMiddle
	switch first, last := w.Done == 0, w.Done+uint32(e.req.n) == w.Len; {
	case first && last:
		pos = wire.PosOnly
	case first:
		pos = wire.PosFirst
	case last:
		pos = wire.PosLast
	}
	switch w.Op {
	case ib.Write:
		return writeOps[pos]
	case ib.WriteImm:
		return writeImmOps[pos]
	case ib.SendImm:
		return sendImmOps[pos]
	default: // nothing else is posted to an unreliable connection
		return sendOps[pos]
	}
}

// Emit fills out with the packet that the last Next described.
func (e *Engine) Emit(now clock.Time, out *transport.Out) {
	r, cfg := &e.req, &e.q.Cfg
	w := r.w
	if w == nil {
		return
	}
	out.SetOp(e.opcode(w))
	last := out.Info.Pos.Ends()
	out.AckReq, out.FECN, out.BECN, out.TVer = false, false, false, 0
	out.MigReq, out.PKey, out.DestQPN = cfg.MigReq, e.attr.Key(), e.attr.DestQPN
	out.PSN = r.psn
	// A plain RDMA WRITE raises no event at the peer (IBA vol.1 9.2.3).
	out.Solicited = last && w.Flags&ib.Solicited != 0 && w.Op != ib.Write
	out.Imm = w.Imm
	out.RETH = wire.RETH{VA: w.Remote.Addr, RKey: w.Remote.RKey, Len: w.Len}
	out.Payload, out.Inline, out.Len, out.ECT = nil, nil, r.n, true
	out.Pad = wire.PadFor(r.n)
	if w.Flags&ib.Inline != 0 {
		out.Inline = w.Inline[w.Done : w.Done+uint32(r.n)]
	} else {
		out.Frags = append(out.Frags, cfg.Scratch.Frags...)
	}

	r.w = nil
	r.psn = r.psn.Add(1)
	w.Started = true
	w.Done += uint32(r.n)
	if last {
		e.q.Left(now)
	}
}
