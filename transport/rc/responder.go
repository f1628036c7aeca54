package rc

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// responder is the state of the receiving side. Fields are in the order that
// takes the least room.
type responder struct {
	saved *replay // allocated when first used

	// The message under way, if kind says that there is one: what its packets
	// have been so far.
	got   uint64    // bytes received of it
	room  uint64    // SEND: bytes that the receive holds
	write wire.RETH // WRITE: as its first packet said
	kind  wire.Kind // KindSend, KindWrite, or 0

	established bool // COMM_EST was raised
	broken      bool // a NAK or RNR NAK was sent for epsn; later packets are dropped silently
	ackDue      bool
	nakDue      bool
	nakSyndrome wire.AETHSyndrome
	nakPSN      ib.PSN

	epsn ib.PSN // expected
	msn  ib.MSN // messages completed
}

// start begins at the expected PSN of the attributes.
func (r *responder) start(psn ib.PSN) { *r = responder{epsn: psn} }

// stop leaves of the answers those that k says.
func (r *responder) stop(k keep) {
	r.kind = 0
	if k == answersDue {
		return
	}
	if r.saved.pending() {
		r.ackDue = false
	}
	r.nakDue = false
	r.saved.clearDue()
}

// answer says what the responder has to send next. Answers leave in the order
// of their PSNs: READ responses and ATOMIC results, then one NAK or ACK, which
// speaks for everything before it.
func (r *responder) answer() pickKind {
	switch {
	case r.saved.pending():
		return pickResponse
	case r.nakDue:
		return pickNAK
	case r.ackDue:
		return pickAck
	}
	return pickNone
}

// arrival is a request packet on its way through the pipeline.
type arrival struct {
	p    *wire.Packet
	info *wire.OpInfo
	data []byte // payload; nil if phantom
	n    int    // payload bytes
}

// verdict is what a step of the pipeline decides.
type verdict uint8

const (
	proceed verdict = iota
	done            // answered or dropped: no further step
)

// receiveRequest takes a packet from the peer's requester through the steps of
// IBA vol.1 9.7.4.1, in their order. The first that objects ends it.
func (e *Engine) receiveRequest(p *wire.Packet, info *wire.OpInfo, data []byte, n int) {
	a := arrival{p, info, data, n}
	switch {
	case e.checkPSN(&a) == done:
	case e.checkSequence(&a) == done:
	case e.checkRights(&a) == done:
	case e.checkResources(&a) == done:
	case e.checkLength(&a) == done:
	case e.checkMemory(&a) == done:
	case e.execute(&a) == done:
	default:
		e.finish(&a)
	}
}

// checkPSN separates new requests from duplicates and from those after a gap
// (IBA vol.1 9.7.4.1.2).
func (e *Engine) checkPSN(a *arrival) verdict {
	r := &e.rsp
	switch d := a.p.PSN.Sub(r.epsn); {
	case d < 0:
		e.cfg.Count(transport.DuplicateRequest)
		e.receiveDuplicate(a)
		return done
	case d > 0:
		e.cfg.Count(transport.OutOfSeqRequest)
		e.cfg.Sink.Drop(transport.DropOutOfSequence)
		if !r.broken {
			e.nak(wire.NAKSyndrome(wire.NAKSequence))
		}
		return done
	}
	// What is pending for this PSN is overtaken by its arrival.
	r.broken, r.nakDue = false, false
	return proceed
}

// checkSequence looks whether the opcode may follow the one before
// (IBA vol.1 9.7.4.1.3).
func (e *Engine) checkSequence(a *arrival) verdict {
	if a.info == nil {
		return e.refuse(wire.NAKInvalid, transport.DropOpcode)
	}
	r := &e.rsp
	switch {
	case r.kind == 0 && a.info.Pos.Starts():
		return proceed
	case r.kind == a.info.Kind && !a.info.Pos.Starts():
		return proceed
	}
	return e.refuse(wire.NAKInvalid, transport.DropOpcode)
}

// checkRights looks at what the queue pair lets its peer do
// (IBA vol.1 9.7.4.1.4).
func (e *Engine) checkRights(a *arrival) verdict {
	need := ib.Access(0)
	switch a.info.Kind {
	case wire.KindWrite:
		need = ib.RemoteWrite
	case wire.KindReadRequest:
		need = ib.RemoteRead
	case wire.KindAtomic:
		need = ib.RemoteAtomic
	case wire.KindAtomicWrite:
		need = ib.RemoteWrite
	case wire.KindFlush:
		if need = flushAccess(a.p.FETH.Placement); need == 0 || a.p.FETH.Level > uint8(ib.FlushRegion) {
			return e.refuse(wire.NAKInvalid, transport.DropOpcode)
		}
	case wire.KindSend:
	case wire.KindReadResponse, wire.KindAck, wire.KindAtomicAck, wire.KindCNP:
		return e.refuse(wire.NAKInvalid, transport.DropOpcode)
	}
	if need&^e.attr.Access != 0 {
		return e.refuse(wire.NAKInvalid, transport.DropAccess)
	}
	return proceed
}

// checkResources looks for a posted receive, or for room to remember a READ or
// ATOMIC (IBA vol.1 9.7.4.1.5).
func (e *Engine) checkResources(a *arrival) verdict {
	r := &e.rsp
	switch a.info.Kind {
	case wire.KindReadRequest, wire.KindAtomic, wire.KindFlush, wire.KindAtomicWrite:
		if !r.saved.hasRoom(int(e.attr.MaxDestRdAtomic)) {
			return e.refuse(wire.NAKInvalid, transport.DropOpcode)
		}
		return proceed
	case wire.KindSend:
		if !a.info.Pos.Starts() {
			return proceed
		}
	case wire.KindWrite:
		if !a.info.HasImm() {
			return proceed
		}
	case wire.KindReadResponse, wire.KindAck, wire.KindAtomicAck, wire.KindCNP:
	}
	w := e.cfg.Recv.Peek()
	if w == nil {
		e.cfg.Count(transport.SendRNRErr)
		e.cfg.Sink.Drop(transport.DropRNR)
		e.nak(wire.RNRSyndrome(e.attr.MinRNRTimer))
		return done
	}
	if a.info.Kind == wire.KindSend {
		r.room = 0
		for i := range w.SGL {
			r.room += uint64(w.SGL[i].Length)
		}
	}
	return proceed
}

// checkLength looks whether the payload fits opcode, path MTU and message
// (IBA vol.1 9.7.4.1.6).
func (e *Engine) checkLength(a *arrival) verdict {
	r := &e.rsp
	kind, pos, n := a.info.Kind, a.info.Pos, a.n
	if kind == wire.KindReadRequest {
		if a.p.RETH.Len > ib.MaxMessage {
			return e.refuse(wire.NAKInvalid, transport.DropLength)
		}
		return proceed
	}
	switch kind {
	case wire.KindAtomic, wire.KindFlush:
		return proceed
	case wire.KindAtomicWrite:
		if n != atomicWriteLen || a.p.RETH.Len != atomicWriteLen {
			return e.refuse(wire.NAKInvalid, transport.DropLength)
		}
		return proceed
	case wire.KindSend, wire.KindWrite, wire.KindReadRequest, wire.KindReadResponse, wire.KindAck, wire.KindAtomicAck, wire.KindCNP:
	}
	mtu := int(e.mtu)
	if !pos.Ends() && n != mtu || n > mtu || pos == wire.PosLast && n == 0 {
		return e.refuse(wire.NAKInvalid, transport.DropLength)
	}
	if pos.Starts() {
		r.got = 0
	}
	total := r.got + uint64(n)
	if kind == wire.KindSend {
		if total > r.room || total > ib.MaxMessage {
			e.receiveError(ib.LocLenErr, uint32(transport.DropTooLong))
			return e.refuseQuietly(wire.NAKInvalid, transport.DropTooLong)
		}
		return proceed
	}
	if pos.Starts() {
		r.write = a.p.RETH
	}
	// The last packet brings exactly what is missing, one before it less.
	if want := uint64(r.write.Len); want > ib.MaxMessage || pos.Ends() && total != want || !pos.Ends() && total >= want {
		return e.refuse(wire.NAKInvalid, transport.DropLength)
	}
	return proceed
}

// checkMemory looks whether the peer may touch what the request names: the
// whole of it at the first packet (IBA vol.1 9.7.4.1.7). Later packets look
// again at their own part, for a region may have gone.
func (e *Engine) checkMemory(a *arrival) verdict {
	switch a.info.Kind {
	case wire.KindWrite:
		if !a.info.Pos.Starts() {
			return proceed
		}
		h := &a.p.RETH
		if _, f := e.cfg.Mem.Remote(e.cfg.PD, e.cfg.QPN, h.RKey, h.VA, uint64(h.Len), ib.RemoteWrite); f != mem.FaultNone {
			return e.refuse(wire.NAKRemoteAccess, transport.DropAccess)
		}
	case wire.KindReadRequest:
		h := &a.p.RETH
		if _, f := e.cfg.Mem.Remote(e.cfg.PD, e.cfg.QPN, h.RKey, h.VA, uint64(h.Len), ib.RemoteRead); f != mem.FaultNone {
			return e.refuse(wire.NAKRemoteAccess, transport.DropAccess)
		}
	case wire.KindSend, wire.KindAtomic, wire.KindFlush, wire.KindAtomicWrite:
	case wire.KindReadResponse, wire.KindAck, wire.KindAtomicAck, wire.KindCNP:
	}
	return proceed
}

// execute does what the packet asks.
func (e *Engine) execute(a *arrival) verdict {
	r := &e.rsp
	switch a.info.Kind {
	case wire.KindSend:
		f := e.cfg.Mem.Scatter(e.cfg.ReceivePD(), e.cfg.Recv.Peek().SGL, r.got, a.data, a.n)
		if f != mem.FaultNone {
			e.receiveError(ib.LocProtErr, uint32(transport.DropAccess))
			return e.refuseQuietly(wire.NAKRemoteOp, transport.DropAccess)
		}
		if a.info.HasInv() {
			return e.invalidate(a)
		}
	case wire.KindWrite:
		va := r.write.VA + r.got
		reg, f := e.cfg.Mem.Remote(e.cfg.PD, e.cfg.QPN, r.write.RKey, va, uint64(a.n), ib.RemoteWrite)
		if f != mem.FaultNone {
			return e.refuse(wire.NAKRemoteAccess, transport.DropAccess)
		}
		if reg.WriteAt(va, a.data) != mem.FaultNone {
			return e.refuse(wire.NAKRemoteAccess, transport.DropAccess)
		}
	case wire.KindReadRequest:
		e.startRead(a)
		return done
	case wire.KindAtomic:
		e.executeAtomic(a)
		return done
	case wire.KindFlush, wire.KindAtomicWrite:
		e.executeEmpty(a)
		return done
	case wire.KindReadResponse, wire.KindAck, wire.KindAtomicAck, wire.KindCNP:
	}
	r.got += uint64(a.n)
	return proceed
}

// invalidate takes back, for the peer, the window that a SEND names, whose data
// has come (IBA vol.1 9.4.1.1.4). Only a window of type 2 that this queue pair has
// bound can be.
//
// Where it cannot, the receive completes with REM_INV_REQ_ERR and the sender
// hears of it by a NAK. Deviation: rxe tells its own end alone and acknowledges
// the message.
func (e *Engine) invalidate(a *arrival) verdict {
	if f := e.cfg.Mem.Invalidate(e.cfg.PD, e.cfg.QPN, a.p.IETH); f != mem.FaultNone {
		e.receiveError(ib.RemInvReqErr, uint32(transport.DropAccess))
		return e.refuseQuietly(wire.NAKRemoteAccess, transport.DropAccess)
	}
	e.rsp.got += uint64(a.n)
	return proceed
}

// finish accounts for an executed SEND or WRITE packet: completion, and the
// acknowledgement that it asks for.
func (e *Engine) finish(a *arrival) {
	r := &e.rsp
	r.epsn = r.epsn.Add(1)
	if a.p.AckReq {
		r.ackDue = true
	}
	if !a.info.Pos.Ends() {
		r.kind = a.info.Kind
		if r.kind == wire.KindSend {
			e.cfg.Recv.Hold()
		}
		return
	}
	r.kind = 0
	r.msn = (r.msn + 1) & msnMask
	if a.info.ConsumesReceive() {
		e.receiveDone(a)
	}
}

// receiveDone completes the head receive with the message that has ended.
func (e *Engine) receiveDone(a *arrival) {
	wc := &e.cfg.Scratch.WC
	*wc = ib.WC{
		ID: e.cfg.Recv.Peek().ID, Op: ib.WCRecv, QPN: e.cfg.QPN,
		Bytes: uint32(e.rsp.got), SrcQPN: e.attr.DestQPN,
	}
	if a.info.Kind == wire.KindWrite {
		wc.Op = ib.WCRecvImm
	}
	switch {
	case a.info.HasImm():
		wc.Flags, wc.Imm = ib.WCWithImm, a.p.Imm
	case a.info.HasInv():
		wc.Flags, wc.Imm = ib.WCWithInv, uint32(a.p.IETH)
	}
	e.cfg.Count(transport.RDMARecvs)
	e.cfg.Recv.Pop()
	e.cfg.Sink.RecvDone(wc, a.p.Solicited)
}

// nak makes a negative acknowledgement of the expected PSN due. Until that PSN
// arrives, packets after it are dropped without another (IBA vol.1 9.7.5.2.8).
func (e *Engine) nak(s wire.AETHSyndrome) {
	r := &e.rsp
	r.broken, r.nakDue = true, true
	r.nakSyndrome, r.nakPSN = s, r.epsn
}

// refuse answers a request with a NAK that ends the connection, and says so in
// an asynchronous event.
func (e *Engine) refuse(c wire.NAKCode, d transport.Drop) verdict {
	ev := ib.EventQPReqErr
	if c == wire.NAKRemoteAccess {
		ev = ib.EventQPAccessErr
	}
	e.cfg.Sink.Event(ev)
	return e.refuseQuietly(c, d)
}

// refuseQuietly is refuse where the completion of a receive has told the
// application already.
func (e *Engine) refuseQuietly(c wire.NAKCode, d transport.Drop) verdict {
	e.cfg.Sink.Drop(d)
	if c == wire.NAKRemoteAccess {
		e.cfg.Count(transport.RespAccessErr)
	}
	e.nak(wire.NAKSyndrome(c))
	e.enterError(answersDue)
	return done
}

// credits returns the code to advertise: how many receives are posted.
func (e *Engine) credits() wire.CreditCode {
	if e.cfg.NoCredits || e.cfg.Recv.Shared() { // of a shared queue no peer has a share
		return wire.CreditsUnlimited
	}
	return wire.CreditCodeFor(e.cfg.Recv.Posted())
}

// nextAnswer describes the answer that is due.
func (e *Engine) nextAnswer(k pickKind) (transport.Head, bool) {
	if k == pickResponse {
		return e.nextResponse()
	}
	e.pick = pick{kind: k}
	return transport.Head{WireLen: wireLen(wire.RCAck, 0), Ack: true}, true
}

// emitAck fills out with the NAK or ACK that is due.
func (e *Engine) emitAck(out *transport.Out, k pickKind) {
	r := &e.rsp
	out.SetOp(wire.RCAck)
	out.AETH.MSN = r.msn
	if k == pickNAK {
		out.PSN, out.AETH.Syndrome = r.nakPSN, r.nakSyndrome
		r.nakDue = false
	} else {
		out.PSN, out.AETH.Syndrome = r.epsn.Add(-1), wire.ACKSyndrome(e.credits())
	}
	r.ackDue = false
	out.ECT = false
}
