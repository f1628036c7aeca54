package rc

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// requester is the state of the sending side. doc.go explains una, psn, next.
type requester struct {
	una  ib.PSN
	psn  ib.PSN
	next ib.PSN
	cur  uint32 // position in the send queue of the WQE that psn belongs to
	// flight is what [una, psn) counts in the window.
	flight int

	// Since the last packet that asked for an acknowledgement.
	quietBytes int
	askedAt    clock.Time // when it left

	// End-to-end credits (IBA vol.1 9.7.7.2): request messages are numbered by
	// ssn; those that take a receive wait while their number is above lsn.
	ssn uint32 // messages sent so far
	msn uint32 // of the last acknowledgement with credits
	lsn uint32
	// quietPackets have left since a packet asked for an acknowledgement.
	quietPackets uint16
	limited      bool // credits have been received, and not "unlimited"
	probe        bool // the message at cur was started beyond the limit

	retryLeft uint8
	rnrLeft   uint8
	probing   uint8 // timeouts since there was progress: as many packets may be under way; 0 for any number
	early     bool  // something was acknowledged before it was sent again, no progress since
	part      bool  // the last request asked for a part of a READ request that the peer remembers
	implied   bool  // went back for an implied NAK, no progress since
	rnrWait   bool
	drained   bool // SQ_DRAINED was raised

	rnrUntil clock.Time
	timer    clock.Time
	reads    *readRing // allocated when first used
}

// Limits of what the requester has under way.
const (
	// maxUnacked keeps PSNs comparable: with one READ chunk on top it stays
	// below 2^23.
	maxUnacked = 1 << 22
	// maxQuiet is how many packets go without asking for an acknowledgement,
	// unless the configuration says.
	maxQuiet = 32
	// readBytes is what one READ request asks for at most under a window.
	readBytes = 256 << 10
)

// readReq is a READ or ATOMIC request whose response is not complete.
type readReq struct {
	first, last ib.PSN
	resent      bool
}

// readRing holds those under way, oldest first; it has MaxRdAtomic places. nil
// holds none.
type readRing struct {
	buf  []readReq
	head int
	n    int
}

func (r *readRing) len() int {
	if r == nil {
		return 0
	}
	return r.n
}

func (r *readRing) push(q readReq) {
	r.buf[(r.head+r.n)%len(r.buf)] = q
	r.n++
}

func (r *readRing) front() *readReq {
	if r.len() == 0 {
		return nil
	}
	return &r.buf[r.head]
}

// popBefore forgets the requests that are answered up to una.
func (r *readRing) popBefore(una ib.PSN) {
	for r.len() > 0 && r.buf[r.head].last.Before(una) {
		r.head = (r.head + 1) % len(r.buf)
		r.n--
	}
}

func (r *readRing) clear() {
	if r != nil {
		r.head, r.n = 0, 0
	}
}

// startRequester begins at the send PSN of the attributes.
func (e *Engine) startRequester() {
	q := &e.req
	psn := e.attr.SQPSN
	reads := q.reads
	reads.clear()
	*q = requester{
		una: psn, psn: psn, next: psn, cur: e.cfg.Send.Head(), reads: reads,
		retryLeft: e.attr.RetryCnt, rnrLeft: e.attr.RNRRetry, timer: clock.Never,
	}
}

// readChunk returns how many PSNs one request of a READ that is started now has
// at most: as many as keep PSNs comparable, or half of what the window allows,
// for responses come in runs that are the faster the longer they are. It stays
// with the READ (in Done of its WQE): the responder remembers requests, and a
// retry must not ask across the border of two.
func (e *Engine) readChunk() int {
	w := e.cfg.Window
	if w == nil {
		return maxUnacked
	}
	return max(1, min(w.Limit()/2, readBytes)/(int(e.mtu)+overhead))
}

// mayRequest returns the WQE whose packet may go next if the window and the RNR
// delay allow, or nil.
func (e *Engine) mayRequest() *transport.SendWQE {
	if e.state != ib.RTS && e.state != ib.SQD {
		return nil
	}
	q := &e.req
	if q.cur == e.cfg.Send.Tail() {
		return nil
	}
	w := e.cfg.Send.At(q.cur)
	if e.held(w) != transport.WaitNothing {
		return nil
	}
	return w
}

// held says what keeps the next packet of w, besides the window and the RNR
// delay.
func (e *Engine) held(w *transport.SendWQE) transport.Wait {
	q := &e.req
	switch {
	case w.Status != ib.Success: // failed; completes when it reaches the head
		return transport.WaitAck
	case !w.Started && e.state == ib.SQD:
		return transport.WaitState
	case q.psn.Sub(q.una) >= maxUnacked:
		return transport.WaitWindow
	case q.probing > 0 && q.psn != q.una && (expectsResponse(w.Op) || q.reads.len() > 0 || q.psn.Sub(q.una) >= int(q.probing)):
		return transport.WaitAck
	case q.part && q.reads.len() > 0:
		return transport.WaitReads
	case w.Flags&ib.Fence != 0 && q.reads.len() > 0:
		return transport.WaitReads
	case expectsResponse(w.Op) && e.readsFull():
		return transport.WaitReads
	case q.limited && consumesReceive(w.Op) && !e.hasCredit(w):
		return transport.WaitCredits
	}
	return transport.WaitNothing
}

// readsFull reports whether as many READs and ATOMICs are under way as may be.
func (e *Engine) readsFull() bool {
	n := int(e.attr.MaxRdAtomic)
	return n > 0 && e.req.reads.len() >= n
}

// hasCredit reports whether the next packet of w, which takes a receive of the
// peer, may go. One message beyond the limit may be tried when nothing else is
// under way, its first packet alone (IBA vol.1 9.7.7.2.5).
func (e *Engine) hasCredit(w *transport.SendWQE) bool {
	q := &e.req
	if w.Started {
		return !q.probe || q.psn == w.FirstPSN
	}
	return q.credit() || q.una == q.next
}

// msnMask covers the 24 bits of message numbers.
const msnMask = 0xFFFFFF

// msnLess reports whether message number a comes before b on the circle.
func msnLess(a, b uint32) bool { return int32((a-b)<<8) < 0 }

// credit reports whether the next message is within the limit.
func (q *requester) credit() bool { return !msnLess(q.lsn, q.ssn+1) }

// nextRequest picks the next request packet.
func (e *Engine) nextRequest(now clock.Time) (transport.Head, bool) {
	w := e.reach(now)
	if w == nil {
		return transport.Head{}, false
	}
	q := &e.req
	if q.rnrWait {
		if now < q.rnrUntil {
			return transport.Head{}, false
		}
		q.rnrWait = false
	}
	s := e.segment(w, q.psn)
	if st := e.validate(&s); st != ib.Success {
		w.Status = st
		if q.cur == e.cfg.Send.Head() {
			e.fail(st, 0)
		}
		return transport.Head{}, false
	}
	if !e.cfg.Window.Fits(e.wants(&s)) {
		return transport.Head{}, false
	}
	e.pick = pick{kind: pickRequest, seg: s}
	n, op := int(s.len), requestOp(w.Op, s.pos)
	if w.Op == ib.Read {
		n = 0
	}
	return transport.Head{WireLen: wireLen(op, n)}, true
}

// wants returns the room that a segment waits for. A READ waits for a quarter of
// the window at most, lest packets of others keep it waiting for ever.
func (e *Engine) wants(s *segment) int {
	if s.psns > 1 {
		return min(s.cost, e.cfg.Window.Limit()/4)
	}
	return s.cost
}

// validate checks what is local to a segment, and collects its payload. The
// whole scatter/gather list is checked before the first packet of a message.
func (e *Engine) validate(s *segment) ib.WCStatus {
	w := s.w
	if w.Op > ib.SendInv && !answeredEmpty(w.Op) {
		return ib.LocQPOpErr
	}
	if w.Len > ib.MaxMessage {
		return ib.LocLenErr
	}
	response := expectsResponse(w.Op)
	if response && e.attr.MaxRdAtomic == 0 {
		return ib.LocQPOpErr
	}
	if w.Flags&ib.Inline != 0 && !fetches(w.Op) {
		if uint64(len(w.Inline)) < uint64(s.off)+uint64(s.len) {
			return ib.LocLenErr
		}
		return ib.Success
	}
	if fetches(w.Op) || !w.Started && s.pos == wire.PosFirst {
		// Local write access is looked at when the data comes.
		if f := e.cfg.Mem.Check(e.cfg.PD, w.SGL, 0); f != 0 {
			return ib.LocProtErr
		}
	}
	if fetches(w.Op) {
		return ib.Success
	}
	sc := e.cfg.Scratch
	frags, f := e.cfg.Mem.Gather(e.cfg.PD, w.SGL, uint64(s.off), int(s.len), sc.Frags[:0])
	sc.Frags = frags
	if f != 0 {
		return ib.LocProtErr
	}
	return ib.Success
}

// sent moves psn over a segment that leaves now.
func (e *Engine) sent(now clock.Time, s *segment) {
	q := &e.req
	w := s.w
	resent := q.psn.Before(q.next)
	after := q.psn.Add(int(s.psns))
	if resent {
		e.cfg.Count(transport.Retransmitted)
	} else if s.off == 0 || w.Op == ib.Read {
		q.probe = q.limited && consumesReceive(w.Op) && !q.credit()
		q.ssn = (q.ssn + 1) & msnMask
	}
	if expectsResponse(w.Op) {
		if q.reads == nil {
			q.reads = &readRing{buf: make([]readReq, e.attr.MaxRdAtomic)}
		}
		q.reads.push(readReq{first: q.psn, last: after.Add(-1), resent: resent})
	}
	q.part = s.part
	q.psn = after
	if q.next.Before(after) {
		q.next = after
	}
	if s.ends() {
		q.cur++
		e.skipLocal()
	}
	q.flight += s.cost
	e.cfg.Window.Sent(s.cost)
	if q.timer == clock.Never && e.timeout() != 0 {
		q.timer = now.Add(e.timeout())
	}
}

// wantsAck decides whether the packet just sent asks for an acknowledgement: on
// the last of a message, often enough for the window, for the timer however
// slowly packets leave, and before the requester has to stop.
func (e *Engine) wantsAck(now clock.Time, s *segment) bool {
	q := &e.req
	q.quietPackets++
	q.quietBytes += s.cost
	win := e.cfg.Window
	if !s.ends() && !q.probe && q.probing == 0 && q.quietPackets < e.cfg.AckEvery &&
		q.quietBytes < win.Limit()/4 && win.Room() >= int(e.mtu)+overhead &&
		q.psn.Sub(q.una) < maxUnacked &&
		(e.timeout() == 0 || now.Sub(q.askedAt) < e.timeout()/4) {
		return false
	}
	q.quietPackets, q.quietBytes, q.askedAt = 0, 0, now
	return true
}

// wireLen returns the bytes from BTH to ICRC of a packet with n payload bytes.
func wireLen(op wire.Opcode, n int) int {
	return op.Info().Len + (n+3)&^3 + wire.ICRCLen
}
