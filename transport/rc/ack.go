package rc

import (
	"encoding/binary"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// receiveResponse handles a packet from the peer's responder. data is nil and n
// counts where the payload is phantom.
func (e *Engine) receiveResponse(now clock.Time, p *wire.Packet, info *wire.OpInfo, data []byte, n int) {
	q := &e.req
	if p.PSN.Before(q.una) || !p.PSN.Before(q.next) {
		e.receiveGhost(p, info)
		return
	}
	switch info.Kind {
	case wire.KindAck:
		e.receiveAck(now, p)
	case wire.KindReadResponse:
		e.receiveReadResponse(now, p, info, data, n)
	case wire.KindAtomicAck:
		e.receiveAtomicAck(now, p)
	case wire.KindSend, wire.KindWrite, wire.KindReadRequest, wire.KindAtomic, wire.KindCNP, wire.KindFlush, wire.KindAtomicWrite:
	}
	e.checkDrained()
}

// receiveGhost handles an answer to nothing under way. An ACK of the last
// acknowledged PSN may bring new credits (IBA vol.1 9.7.7.2.4).
func (e *Engine) receiveGhost(p *wire.Packet, info *wire.OpInfo) {
	q := &e.req
	if info.Kind == wire.KindAck && p.AETH.Syndrome.Kind() == wire.AckACK &&
		p.PSN == q.una.Add(-1) && e.takeCredits(&p.AETH) {
		return
	}
	e.cfg.Sink.Drop(transport.DropGhostAck)
}

// receiveAck handles ACK, RNR NAK and NAK.
func (e *Engine) receiveAck(now clock.Time, p *wire.Packet) {
	q := &e.req
	s := p.AETH.Syndrome
	switch s.Kind() {
	case wire.AckACK:
		ok := e.ackBefore(now, p.PSN.Add(1))
		e.takeCredits(&p.AETH)
		if !ok {
			e.impliedNAK()
		}
	case wire.AckRNR:
		e.cfg.Count(transport.RcvdRNRErr)
		e.ackBefore(now, p.PSN)
		if e.state != ib.Error {
			e.receiverNotReady(now, s)
		}
	case wire.AckNAK:
		if s.NAKCode() == wire.NAKSequence {
			e.cfg.Count(transport.RcvdSeqErr)
			e.cfg.Count(transport.PacketSeqErr)
			e.ackBefore(now, p.PSN)
			if e.state != ib.Error && q.psn != q.una {
				e.retry(uint32(s))
			}
			return
		}
		if !e.ackBefore(now, p.PSN) {
			e.impliedNAK()
			return
		}
		if e.state != ib.Error {
			e.fail(nakStatus(s.NAKCode()), uint32(s))
		}
	case wire.AckReserved:
		e.cfg.Sink.Drop(transport.DropOpcode)
	}
}

// nakStatus returns the status of a work request that was refused
// (IBA vol.1 9.9.2.4.2, table 66).
func nakStatus(c wire.NAKCode) ib.WCStatus {
	switch c {
	case wire.NAKInvalid:
		return ib.RemInvReqErr
	case wire.NAKRemoteAccess:
		return ib.RemAccessErr
	case wire.NAKRemoteOp:
		return ib.RemOpErr
	case wire.NAKInvalidRD:
		return ib.RemInvRDReqErr
	case wire.NAKSequence:
	}
	return ib.BadRespErr
}

// ackBefore takes everything before end as acknowledged and completes what is
// done. It stops at a READ or ATOMIC whose response is missing and then returns
// false. end is at most next.
func (e *Engine) ackBefore(now clock.Time, end ib.PSN) bool {
	q := &e.req
	moved, whole := false, true
	for q.una.Before(end) {
		w := e.cfg.Send.At(e.cfg.Send.Head())
		if expectsResponse(w.Op) {
			whole = false
			break
		}
		moved = true
		if to := w.LastPSN.Add(1); !end.Before(to) {
			e.advance(w, to)
			e.complete(w)
			e.completeLocal()
		} else {
			e.advance(w, end)
		}
	}
	if moved {
		e.progressed(now)
	}
	return whole
}

// advance moves una to to, within or at the end of the head WQE w.
func (e *Engine) advance(w *transport.SendWQE, to ib.PSN) {
	q := &e.req
	flown := to
	if q.psn.Before(to) {
		flown = q.psn
	}
	if flown != q.una {
		c := e.cost(w, q.una, flown)
		q.flight -= c
		e.cfg.Window.Acked(c)
	}
	q.una = to
	if q.psn.Before(to) {
		// Acknowledged before it was sent again.
		q.psn = to
		q.early = true
	}
	q.reads.popBefore(to)
}

// progressed resets what counts failures in a row (IBA vol.1 9.7.5.1.3,
// 9.7.6.1.3) and restarts the timer. It is called when una has moved and the
// WQEs before it are retired.
func (e *Engine) progressed(now clock.Time) {
	q := &e.req
	q.retryLeft, q.rnrLeft = e.attr.RetryCnt, e.attr.RNRRetry
	q.implied, q.probe = false, false
	if q.probing > 0 && q.early {
		e.cfg.Window.Arrived(q.una == q.next)
	}
	q.probing, q.early = 0, false
	q.timer = clock.Never
	if q.psn != q.una && e.timeout() != 0 {
		q.timer = now.Add(e.timeout())
	}
	// What failed locally completes when everything before it has.
	if head := e.cfg.Send.Head(); head == q.cur && head != e.cfg.Send.Tail() {
		if w := e.cfg.Send.At(head); w.Status != ib.Success {
			e.fail(w.Status, 0)
		}
	}
}

// takeCredits updates the limit from an AETH and reports whether it changed.
// MSNs may arrive out of order: the newest counts, and of equal ones the
// largest limit.
func (e *Engine) takeCredits(h *wire.AETH) bool {
	q := &e.req
	n, finite := h.Syndrome.CreditCode().Credits()
	if !finite {
		changed := q.limited
		q.limited, q.probe = false, false
		return changed
	}
	msn := uint32(h.MSN) & msnMask
	lsn := (msn + uint32(n)) & msnMask
	if q.limited && (msnLess(msn, q.msn) || msn == q.msn && !msnLess(q.lsn, lsn)) {
		return false
	}
	changed := !q.limited || lsn != q.lsn
	q.limited, q.msn, q.lsn = true, msn, lsn
	if !msnLess(lsn, q.ssn) {
		q.probe = false
	}
	return changed
}

// receiveReadResponse takes one packet of READ data (IBA vol.1 9.7.5.1.8).
func (e *Engine) receiveReadResponse(now clock.Time, p *wire.Packet, info *wire.OpInfo, data []byte, n int) {
	q := &e.req
	if !e.ackBefore(now, p.PSN) {
		e.impliedNAK()
		return
	}
	if e.state == ib.Error {
		return
	}
	w := e.cfg.Send.At(e.cfg.Send.Head())
	if answeredEmpty(w.Op) && n == 0 && info.Pos == wire.PosOnly && p.AETH.Syndrome.Kind() == wire.AckACK {
		e.answered(now, w, p.PSN.Add(1))
		e.takeCredits(&p.AETH)
		return
	}
	if w.Op != ib.Read {
		e.fail(ib.BadRespErr, uint32(transport.DropOpcode))
		return
	}
	off := uint64(p.PSN.Sub(w.FirstPSN)) * uint64(e.mtu)
	want := int(min(uint64(e.mtu), uint64(w.Len)-off))
	if n != want {
		e.fail(ib.BadRespErr, uint32(transport.DropLength))
		return
	}
	if !q.expects(p.PSN, info.Pos) ||
		info.Headers.Has(wire.HdrAETH) && p.AETH.Syndrome.Kind() != wire.AckACK {
		e.fail(ib.BadRespErr, uint32(transport.DropOpcode))
		return
	}
	if f := e.cfg.Mem.Scatter(e.cfg.PD, w.SGL, off, data, n); f != mem.FaultNone {
		e.fail(ib.LocProtErr, 0)
		return
	}
	e.answered(now, w, p.PSN.Add(1))
	if info.Headers.Has(wire.HdrAETH) {
		e.takeCredits(&p.AETH)
	}
}

// expects reports whether the response at psn may be of position pos. What was
// asked for again is answered in two ways, both right.
func (q *requester) expects(psn ib.PSN, pos wire.Position) bool {
	r := q.reads.front()
	if r == nil || r.resent || psn.Before(r.first) {
		return true
	}
	return pos.Starts() == (psn == r.first) && pos.Ends() == (psn == r.last)
}

// receiveAtomicAck takes the result of an ATOMIC.
func (e *Engine) receiveAtomicAck(now clock.Time, p *wire.Packet) {
	if !e.ackBefore(now, p.PSN) {
		e.impliedNAK()
		return
	}
	if e.state == ib.Error {
		return
	}
	w := e.cfg.Send.At(e.cfg.Send.Head())
	if !w.Op.IsAtomic() || p.AETH.Syndrome.Kind() != wire.AckACK {
		e.fail(ib.BadRespErr, uint32(transport.DropOpcode))
		return
	}
	word := e.cfg.Scratch.Word[:]
	binary.NativeEndian.PutUint64(word, p.AtomicAck)
	if f := e.cfg.Mem.Scatter(e.cfg.PD, w.SGL, 0, word, len(word)); f != mem.FaultNone {
		e.fail(ib.LocProtErr, 0)
		return
	}
	e.answered(now, w, p.PSN.Add(1))
	e.takeCredits(&p.AETH)
}

// answered takes the PSNs of the READ or ATOMIC w up to end as answered.
func (e *Engine) answered(now clock.Time, w *transport.SendWQE, end ib.PSN) {
	e.advance(w, end)
	if end == w.LastPSN.Add(1) {
		e.complete(w)
		e.completeLocal()
	}
	e.progressed(now)
}

// sendOpcodes are the completion opcodes by operation.
var sendOpcodes = [...]ib.WCOp{
	ib.Write: ib.WCWrite, ib.WriteImm: ib.WCWrite, ib.Send: ib.WCSend, ib.SendImm: ib.WCSend,
	ib.Read: ib.WCRead, ib.CompareSwap: ib.WCCompareSwap, ib.FetchAdd: ib.WCFetchAdd,
	ib.LocalInv: ib.WCLocalInv, ib.BindMW: ib.WCBindMW, ib.SendInv: ib.WCSend,
	ib.Flush: ib.WCFlush, ib.AtomicWrite: ib.WCAtomicWrite,
}

func sendOpcode(o ib.WROp) ib.WCOp {
	if int(o) < len(sendOpcodes) {
		return sendOpcodes[o]
	}
	return ib.WCSend
}

// complete retires the head WQE w with success. The slot is free before the
// application learns of it, so that it may post at once.
func (e *Engine) complete(w *transport.SendWQE) {
	if w.Op.IsSend() {
		e.cfg.Count(transport.RDMASends)
	}
	if !e.cfg.SigAll && w.Flags&ib.Signaled == 0 {
		e.retire()
		return
	}
	wc := &e.cfg.Scratch.WC
	*wc = ib.WC{ID: w.ID, Op: sendOpcode(w.Op), QPN: e.cfg.QPN}
	switch {
	case w.Op == ib.Read:
		wc.Bytes = w.Len
	case w.Op.IsAtomic():
		wc.Bytes = 8
	}
	e.retire()
	e.cfg.Sink.SendDone(wc)
}

// retire frees the head slot; psn moves on with una where it lay in it.
func (e *Engine) retire() {
	e.cfg.Send.Retire()
	if head := e.cfg.Send.Head(); int32(e.req.cur-head) < 0 {
		e.req.cur = head
	}
}
