package uc

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/transport/internal/unacked"
	"github.com/verbena-rdma/verbena/wire"
)

// responder is the state of the receiving side.
type responder struct {
	epsn ib.PSN // expected

	// The message under way: none, or what its packets have been so far.
	kind  wire.Kind // KindSend, KindWrite, or 0
	got   uint64    // bytes received of it
	room  uint64    // SEND: bytes that the receive holds
	write wire.RETH // WRITE: as its first packet said

	broken      bool // the last message was given up: what follows is its rest
	established bool // COMM_EST was raised
}

// arrival is a packet on its way through the steps.
type arrival struct {
	p    *wire.Packet
	info *wire.OpInfo
	data []byte // payload; nil if phantom
	n    int    // payload bytes
}

// receive takes a packet through the steps of IBA vol.1 9.8.2.2, in their
// order. The first that objects drops it.
func (e *Engine) receive(a *arrival) {
	if d := e.sequence(a); d != transport.DropNone {
		e.q.Cfg.Sink.Drop(d)
		return
	}
	d := e.length(a)
	if d == transport.DropNone && a.info.Pos.Starts() {
		d = e.start(a)
	}
	if d == transport.DropNone {
		d = e.resources(a)
	}
	if d != transport.DropNone {
		e.rsp.abandon()
		e.q.Cfg.Sink.Drop(d)
		return
	}
	if !e.execute(a) {
		return
	}
	e.rsp.got += uint64(a.n)
	if a.info.Pos.Ends() {
		e.complete(a)
	} else if e.rsp.kind == wire.KindSend {
		e.q.Cfg.Recv.Hold()
	}
}

// abandon gives up the message under way.
func (r *responder) abandon() { r.kind, r.broken = 0, true }

// recent is how many PSNs behind the expected one a packet is taken for one that
// was seen. A message that starts farther behind is the peer's beginning anew:
// otherwise one stray packet far ahead would deafen the responder to all that
// the peer sends in the next half turn of the PSN.
const recent = 1 << 16

// sequence checks PSN and opcode against what came before (IBA vol.1 9.8.2.2),
// and moves the expected PSN.
func (e *Engine) sequence(a *arrival) transport.Drop {
	r := &e.rsp
	ahead := a.p.PSN.Sub(r.epsn)
	starts := a.info.Pos.Starts()
	if ahead < 0 && (ahead >= -recent || !starts) {
		e.q.Cfg.Count(transport.DuplicateRequest)
		return transport.DropDuplicate
	}
	r.epsn = a.p.PSN.Add(1)
	if ahead != 0 {
		e.q.Cfg.Count(transport.OutOfSeqRequest)
		r.abandon()
	}
	if starts {
		r.broken = false
		return transport.DropNone
	}
	switch {
	case r.kind == a.info.Kind:
		return transport.DropNone
	case r.broken:
		return transport.DropBroken
	}
	r.abandon()
	return transport.DropOpcode
}

// length checks the payload against opcode and path MTU (IBA vol.1 9.8.2.2).
func (e *Engine) length(a *arrival) transport.Drop {
	ok := true
	switch a.info.Pos {
	case wire.PosFirst, wire.PosMiddle:
		ok = a.n == e.mtu
	case wire.PosLast:
		ok = a.n >= 1 && a.n <= e.mtu
	case wire.PosOnly:
		ok = a.n <= e.mtu
	}
	if !ok {
		return transport.DropLength
	}
	return transport.DropNone
}

// start begins a message. One that was under way is thereby incomplete, and its
// receive serves the new one.
func (e *Engine) start(a *arrival) transport.Drop {
	r := &e.rsp
	r.kind, r.got = a.info.Kind, 0
	if r.kind == wire.KindSend {
		w := e.q.Cfg.Recv.Peek()
		if w == nil {
			return transport.DropNoRecv
		}
		r.room = unacked.Room(w.SGL)
		return transport.DropNone
	}
	r.write = a.p.RETH
	if r.write.Len > ib.MaxMessage {
		return transport.DropLength
	}
	if e.attr.Access&ib.RemoteWrite == 0 {
		return transport.DropAccess
	}
	// The whole range is checked before a byte of it is written.
	cfg := &e.q.Cfg
	if _, f := cfg.Mem.Remote(cfg.PD, cfg.QPN, r.write.RKey, r.write.VA, uint64(r.write.Len), ib.RemoteWrite); f != mem.FaultNone {
		return transport.DropAccess
	}
	return transport.DropNone
}

// resources checks that the message still fits, and that there is a receive for
// a packet that needs one.
func (e *Engine) resources(a *arrival) transport.Drop {
	r := &e.rsp
	total := r.got + uint64(a.n)
	if r.kind == wire.KindSend {
		if total > r.room {
			return transport.DropTooLong
		}
		return transport.DropNone
	}
	// The RETH told the length: the last packet reaches it, none before does.
	if want := uint64(r.write.Len); total > want || a.info.Pos.Ends() != (total == want) {
		return transport.DropLength
	}
	if a.info.HasImm() && e.q.Cfg.Recv.Peek() == nil {
		return transport.DropNoRecv
	}
	return transport.DropNone
}

// execute puts the payload where it belongs; false means that the packet was
// dropped or the queue pair has failed.
func (e *Engine) execute(a *arrival) bool {
	r, cfg := &e.rsp, &e.q.Cfg
	if r.kind == wire.KindSend {
		f := cfg.Mem.Scatter(cfg.ReceivePD(), cfg.Recv.Peek().SGL, r.got, a.data, a.n)
		if f != mem.FaultNone {
			r.abandon()
			e.q.FailReceive(f)
			return false
		}
		return true
	}
	va := r.write.VA + r.got
	reg, f := cfg.Mem.Remote(cfg.PD, cfg.QPN, r.write.RKey, va, uint64(a.n), ib.RemoteWrite)
	if f == mem.FaultNone {
		f = reg.WriteAt(va, a.data)
	}
	if f != mem.FaultNone { // deregistered since the first packet
		r.abandon()
		cfg.Sink.Drop(transport.DropAccess)
		return false
	}
	return true
}

// complete ends a message; SEND and WRITE with immediate report a receive.
func (e *Engine) complete(a *arrival) {
	r := &e.rsp
	wc := ib.WC{Op: ib.WCRecv, Bytes: uint32(r.got), SrcQPN: e.attr.DestQPN}
	if r.kind == wire.KindWrite {
		wc.Op = ib.WCRecvImm
	}
	r.kind = 0
	if a.info.HasImm() {
		wc.Flags, wc.Imm = ib.WCWithImm, a.p.Imm
	}
	if a.info.ConsumesReceive() {
		e.q.Received(wc, a.p.Solicited)
	}
}
