package ud

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/transport/internal/unacked"
	"github.com/verbena-rdma/verbena/wire"
)

// grhLen is what the GRH takes of a receive buffer, be there one or not
// (IBA vol.1 11.4.1.2).
const grhLen = 40

// receive takes a packet through the steps of IBA vol.1 9.8.3 and 10.2.5: the
// first that objects gives its reason and nothing has changed. PSNs are not
// looked at: senders do not know of each other.
func (e *Engine) receive(p *wire.Packet, in *transport.In) transport.Drop {
	cfg := &e.q.Cfg
	info := p.Op.Info()
	data, n := p.Payload, len(p.Payload)
	if in != nil && in.PhantomLen > 0 {
		data, n = nil, in.PhantomLen
	}
	switch {
	case info == nil || info.Transport != ib.UD:
		return transport.DropOpcode
	case !p.PKey.Matches(e.attr.Key()):
		return transport.DropPKey
	case !e.q.Receives():
		return transport.DropState
	case p.DETH.QKey != e.attr.QKey:
		return transport.DropQKey
	case n > e.mtu:
		return transport.DropLength
	}
	w := cfg.Recv.Peek()
	if w == nil {
		return transport.DropNoRecv
	}
	if unacked.Room(w.SGL) < uint64(grhLen+n) {
		return transport.DropTooLong
	}

	wc := ib.WC{Op: ib.WCRecv, Bytes: uint32(grhLen + n), SrcQPN: p.DETH.SrcQPN}
	f := mem.FaultNone
	if in != nil {
		wc.SGIDIndex = in.SGIDIndex
		if in.GRH != nil {
			wc.Flags |= ib.WCWithGRH
			f = cfg.Mem.Scatter(cfg.ReceivePD(), w.SGL, 0, in.GRH[:], grhLen)
		}
	}
	if f == mem.FaultNone {
		f = cfg.Mem.Scatter(cfg.ReceivePD(), w.SGL, grhLen, data, n)
	}
	if f != mem.FaultNone {
		e.q.FailReceive(f)
		return transport.DropNone
	}
	if info.HasImm() {
		wc.Flags |= ib.WCWithImm
		wc.Imm = p.Imm
	}
	e.q.Received(wc, p.Solicited)
	return transport.DropNone
}
