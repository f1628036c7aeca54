package uc

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/transport/internal/attrs"
	"github.com/verbena-rdma/verbena/transport/internal/unacked"
	"github.com/verbena-rdma/verbena/wire"
)

// Engine is the machine of one unreliably connected queue pair. Create one with
// [New]. It implements [transport.Engine] and is not safe for concurrent use.
type Engine struct {
	q    unacked.Queues
	attr attrs.Attrs // as last modified; the PSNs as they are now are below
	mtu  int         // payload bytes of a full packet

	req requester
	rsp responder
}

var _ transport.Engine = (*Engine)(nil)

// New returns an engine in state Reset. cfg is kept; its Send, Recv, Sink and
// Mem are required. Its Window is not used: nothing says what has arrived.
func New(cfg transport.Config) *Engine { return &Engine{q: unacked.New(cfg)} }

// State returns the present state.
func (e *Engine) State() ib.QPState { return e.q.State() }

// Modify applies validated attributes. See [transport.Engine].
func (e *Engine) Modify(_ clock.Time, a *ib.QPAttr) {
	e.q.Settle()
	e.apply(a)
	if a.Mask&ib.AttrState == 0 || a.State == e.q.State() && a.State != ib.Reset {
		return
	}
	switch a.State {
	case ib.Reset:
		e.attr, e.mtu = attrs.Attrs{}, 0
		e.req.reset(0)
		e.rsp = responder{}
	case ib.RTR:
		e.rsp = responder{epsn: e.attr.RQPSN}
	case ib.RTS:
		if e.q.State() == ib.RTR {
			e.req.reset(e.attr.SQPSN)
		}
	case ib.Error:
		e.rsp.kind = 0
	case ib.Init, ib.SQD, ib.SQE:
	}
	e.q.Enter(a.State, e.attr.SQDAsyncNotify)
}

// apply copies the attributes that the mask names.
func (e *Engine) apply(a *ib.QPAttr) {
	e.attr.Apply(a)
	if a.Mask&ib.AttrPathMTU != 0 {
		e.mtu = e.q.Cfg.PacketBytes(a.PathMTU)
	}
}

// Query fills a with the attributes that the engine owns. SQPSN is the next PSN
// to be sent, RQPSN the next expected one. Others are left
// alone.
func (e *Engine) Query(a *ib.QPAttr) {
	e.attr.Fill(a)
	a.State, a.CurState = e.q.State(), e.q.State()
	if a.State >= ib.RTR {
		a.RQPSN = e.rsp.epsn
	}
	if a.State >= ib.RTS {
		a.SQPSN = e.req.psn
	}
}

// Post says that one of the rings has grown. Where nothing is served, what was
// posted is flushed.
func (e *Engine) Post(clock.Time) { e.q.Post() }

// Advance completes the work request whose last packet has left.
func (e *Engine) Advance(clock.Time) { e.q.Settle() }

// Deadline returns when Advance has something to do.
func (e *Engine) Deadline() clock.Time { return e.q.Deadline() }

// SendAt returns 0 if a packet may leave, else Never.
func (e *Engine) SendAt() clock.Time { return e.q.SendAt() }

// Urgent reports false: nothing is acknowledged.
func (e *Engine) Urgent() bool { return false }

// Why says what the next packet waits for. See [transport.Engine].
func (e *Engine) Why() transport.Wait { return e.q.Why() }

// Receive handles one packet. See [transport.Engine].
func (e *Engine) Receive(_ clock.Time, p *wire.Packet, in *transport.In) {
	e.q.Settle()
	sink := e.q.Cfg.Sink
	info := p.Op.Info()
	switch {
	case info == nil || info.Transport != ib.UC:
		sink.Drop(transport.DropOpcode)
		return
	case !p.PKey.Matches(e.attr.Key()):
		sink.Drop(transport.DropPKey)
		return
	case !e.q.Receives():
		sink.Drop(transport.DropState)
		return
	}
	if e.q.State() == ib.RTR && !e.rsp.established {
		e.rsp.established = true
		sink.Event(ib.EventCommEst)
	}
	a := arrival{p: p, info: info, data: p.Payload, n: len(p.Payload)}
	if in != nil && in.PhantomLen > 0 {
		a.data, a.n = nil, in.PhantomLen
	}
	e.receive(&a)
}
