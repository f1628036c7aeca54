package rc

import (
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/transport/internal/attrs"
	"github.com/verbena-rdma/verbena/wire"
)

// Engine is the machine of one reliably connected queue pair. Create one with
// [New]. It implements [transport.Engine] and is not safe for concurrent use.
type Engine struct {
	rsp responder // first: it is one cache line
	cfg transport.Config
	// attr holds the attributes as they were last modified; PSNs as they are
	// now are in req and rsp.
	attr  attrs.Attrs
	mtu   int32 // payload bytes of a full packet
	state ib.QPState
	// Of requests and READ responses, one is served first while both wait, for
	// burst packets.
	requestsFirst bool
	served        uint8
	late          bool // a request has left before the ACK that is due

	req  requester
	pick pick
}

var _ transport.Engine = (*Engine)(nil)

// pickKind says what the last Next chose.
type pickKind uint8

const (
	pickNone pickKind = iota
	pickRequest
	pickResponse // READ response or ATOMIC result
	pickAck
	pickNAK
)

// pick is the packet that Next described and Emit fills in.
type pick struct {
	seg  segment // pickRequest
	n    int32   // pickResponse: payload bytes
	kind pickKind
}

// burst is long enough to fill runs, and short enough to be fair.
const burst = 8

// serve counts a request or a READ response; after a burst it is the other's
// turn.
func (e *Engine) serve(request bool) {
	if e.served++; e.served == burst {
		e.requestsFirst, e.served = !request, 0
	}
}

// New returns an engine in state Reset. cfg is kept; its Send, Recv, Sink and
// Mem are required.
func New(cfg transport.Config) *Engine {
	if cfg.Counters == nil {
		cfg.Counters = new(transport.Counters)
	}
	if cfg.Scratch == nil {
		cfg.Scratch = new(transport.Scratch)
	}
	if cfg.AckEvery == 0 {
		cfg.AckEvery = maxQuiet
	}
	e := &Engine{cfg: cfg}
	e.req.timer = clock.Never
	return e
}

// timeout is the local ACK timeout, 0 for none.
func (e *Engine) timeout() time.Duration { return ib.AckTimeout(e.attr.TimeoutExp) }

// SetWindow gives the engine the limit of its destination, or nil. What is in
// flight moves with it.
func (e *Engine) SetWindow(w *transport.Window) {
	e.cfg.Window.Forget(e.req.flight)
	w.Sent(e.req.flight)
	e.cfg.Window = w
}

// State returns the present state.
func (e *Engine) State() ib.QPState { return e.state }

// Modify applies validated attributes. See [transport.Engine].
func (e *Engine) Modify(now clock.Time, a *ib.QPAttr) {
	if a.Mask&ib.AttrState != 0 && a.State == ib.Reset {
		e.reset()
		return
	}
	e.apply(a)
	if a.Mask&ib.AttrState == 0 || a.State == e.state {
		return
	}
	switch a.State {
	case ib.RTR:
		e.state = ib.RTR
		e.rsp.start(e.attr.RQPSN)
	case ib.RTS:
		if e.state == ib.RTR {
			e.startRequester()
		}
		e.state = ib.RTS
	case ib.SQD:
		e.state = ib.SQD
		e.req.drained = false
		e.checkDrained()
	case ib.Error:
		e.enterError(answersNone)
	case ib.Init, ib.SQE:
		e.state = a.State
	case ib.Reset: // above
	}
}

// apply copies the attributes that the mask names.
func (e *Engine) apply(a *ib.QPAttr) {
	t, m := &e.attr, a.Mask
	if m&ib.AttrMaxRdAtomic != 0 && a.MaxRdAtomic != t.MaxRdAtomic {
		e.req.reads = nil
	}
	if m&ib.AttrMaxDestRdAtomic != 0 && a.MaxDestRdAtomic != t.MaxDestRdAtomic {
		e.rsp.saved = nil
	}
	t.Apply(a)
	if m&ib.AttrPathMTU != 0 {
		e.mtu = int32(e.cfg.PacketBytes(a.PathMTU))
	}
	if m&ib.AttrRetryCnt != 0 {
		e.req.retryLeft = a.RetryCnt
	}
	if m&ib.AttrRNRRetry != 0 {
		e.req.rnrLeft = a.RNRRetry
	}
}

// Query fills a with the attributes that the engine owns. SQPSN is the next
// new PSN to be sent, RQPSN the next expected one. Others are left alone.
func (e *Engine) Query(a *ib.QPAttr) {
	e.attr.Fill(a)
	a.State, a.CurState = e.state, e.state
	if e.state >= ib.RTR {
		a.RQPSN = e.rsp.epsn
	}
	if e.state >= ib.RTS {
		a.SQPSN = e.req.next
	}
}

// Post says that one of the rings has grown. In Error what was posted is
// flushed; otherwise SendAt tells whether something may leave.
func (e *Engine) Post(clock.Time) {
	if e.state == ib.Error {
		e.flush()
	}
}

// Receive handles one packet. See [transport.Engine].
func (e *Engine) Receive(now clock.Time, p *wire.Packet, in *transport.In) {
	info := p.Op.Info()
	if info != nil && info.Transport != ib.RC || info == nil && p.Op>>5 != 0 {
		e.cfg.Sink.Drop(transport.DropOpcode)
		return
	}
	if !p.PKey.Matches(e.attr.Key()) {
		e.cfg.Sink.Drop(transport.DropPKey)
		return
	}
	data, n := p.Payload, len(p.Payload)
	if in != nil && in.PhantomLen > 0 {
		data, n = nil, in.PhantomLen
	}
	if info != nil && info.Response {
		if e.state != ib.RTS && e.state != ib.SQD {
			e.cfg.Sink.Drop(transport.DropState)
			return
		}
		e.receiveResponse(now, p, info, data, n)
		return
	}
	switch e.state {
	case ib.RTR:
		if !e.rsp.established {
			e.rsp.established = true
			e.cfg.Sink.Event(ib.EventCommEst)
		}
	case ib.RTS, ib.SQD, ib.SQE:
	case ib.Reset, ib.Init, ib.Error:
		e.cfg.Sink.Drop(transport.DropState)
		return
	}
	e.receiveRequest(p, info, data, n)
}

// Deadline returns the instant at which the acknowledgement timer fires, or
// Never. The end of an RNR delay is in SendAt: nothing but sending waits for it.
func (e *Engine) Deadline() clock.Time { return e.req.timer }

// SendAt returns when Next may succeed: 0 now, the end of an RNR delay, or
// Never. A queue pair that waits for nothing but room in the window answers 0,
// and Next refuses.
func (e *Engine) SendAt() clock.Time {
	if e.rsp.answer() != pickNone {
		return 0
	}
	if e.mayRequest() == nil {
		return clock.Never
	}
	if e.req.rnrWait {
		return e.req.rnrUntil
	}
	return 0
}

// Next describes the packet that Emit would emit now. NAKs and ACKs go first;
// with [ib.QPAttr].LateAck an ACK goes behind one request: that is often the
// answer to the message which is being acknowledged, and somebody waits for it.
// READ responses and requests take turns.
func (e *Engine) Next(now clock.Time) (transport.Head, bool) {
	if k := e.rsp.answer(); k == pickResponse && e.requestsFirst || k == pickAck && e.attr.LateAck && !e.late {
		if h, ok := e.nextRequest(now); ok {
			return h, true
		}
	}
	for k := e.rsp.answer(); k != pickNone; k = e.rsp.answer() {
		if h, ok := e.nextAnswer(k); ok {
			return h, true
		}
	}
	return e.nextRequest(now)
}

// Emit fills out with the packet that the last Next described.
func (e *Engine) Emit(now clock.Time, out *transport.Out) {
	out.Solicited, out.AckReq, out.FECN, out.BECN = false, false, false, false
	out.MigReq, out.TVer, out.PKey = e.cfg.MigReq, 0, e.attr.Key()
	out.DestQPN = e.attr.DestQPN
	out.Payload, out.Inline, out.Len, out.ECT = nil, nil, 0, true
	switch k := e.pick.kind; k {
	case pickRequest:
		e.late = e.rsp.ackDue
		e.emitRequest(now, out)
		e.serve(true)
	case pickResponse:
		e.emitResponse(out)
		e.serve(false)
	case pickAck, pickNAK:
		e.late = false
		e.emitAck(out, k)
	case pickNone:
	}
	out.Pad = wire.PadFor(out.Len)
	e.pick.kind = pickNone
}
