package rdmacm

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/cm"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// Datagram is a peer of datagrams: who serves a port of space UDP.
type Datagram struct {
	QPN     ib.QPN
	QKey    ib.QKey
	AV      ib.AV  // for [verbs.PD.CreateAH]
	Private []byte // what the peer's program said, 136 bytes
}

// Lookup asks who serves the port at the end of a route, in port space UDP
// (IBA vol.1 12.11). Of opt it takes Private, TOS, SL, TimeoutExp and Retries.
// The error is the context's, a [*RejectedError], or matches ErrUnreachable.
func (m *Manager) Lookup(ctx context.Context, to Route, opt Options) (*Datagram, error) {
	what := fmt.Sprintf("look up %v", to.Dst)
	opt, err := opt.filled(m.dev, what, LookupPrivate)
	if err != nil {
		return nil, err
	}
	k := &lookup{answer: make(chan *cm.Event, 1)}
	err = m.do(what, func(now clock.Time) error {
		port, err := m.port(UDP)
		if err != nil {
			return err
		}
		req := &mad.SIDRREQ{
			PKey: ib.DefaultPKey, Service: mad.Service(UDP, to.Dst.Port()),
			Private: private(netip.AddrPortFrom(to.Src, port), to.Dst.Addr(), opt.Private),
		}
		if k.id, err = m.machine.Resolve(now, to.peer(&opt), req, opt.TimeoutExp, uint8(opt.Retries)); err == nil {
			m.users[k.id] = k
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	select {
	case e := <-k.answer:
		d, err := to.datagram(e, &opt)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		return d, nil
	case <-ctx.Done():
		_ = m.do(what, func(clock.Time) error {
			delete(m.users, k.id)
			m.machine.AbandonSIDR(k.id)
			return nil
		})
		return nil, fmt.Errorf("%s: %w", what, ctx.Err())
	}
}

// datagram reads the answer; nil is none.
func (r Route) datagram(e *cm.Event, opt *Options) (*Datagram, error) {
	switch {
	case e == nil:
		return nil, errorf(ErrClosed, "the connection manager is closed")
	case e.Type == cm.EventUnreachable:
		return nil, errorf(ErrUnreachable, "the peer does not answer")
	}
	var rep mad.SIDRREP
	e.Decode(&rep)
	if rep.Status != mad.SIDRValid {
		return nil, &RejectedError{Status: rep.Status, Info: rep.Info, Private: rep.Private}
	}
	d := &Datagram{QPN: rep.QPN, QKey: rep.QKey, AV: r.AV(), Private: rep.Private}
	d.AV.TrafficClass, d.AV.SL = opt.TOS, opt.SL
	return d, nil
}

// lookup is a request for a service of datagrams.
type lookup struct {
	id     cm.ID
	answer chan *cm.Event
}

// cmEvent implements user.
func (k *lookup) cmEvent(e *cm.Event) {
	if e.Type == cm.EventSIDRReply || e.Type == cm.EventUnreachable {
		select {
		case k.answer <- e:
		default:
		}
	}
}

// removed implements user.
func (k *lookup) removed() {
	select {
	case k.answer <- nil:
	default:
	}
}

// AcceptUD answers a request of port space UDP with qp, a UD queue pair in RTS;
// its Q_Key is told to the peer. Use [QKeyUDP] for peers that expect that.
// private is up to [AcceptUDPrivate] bytes.
func (r *Request) AcceptUD(qp *verbs.QP, private []byte) error {
	what := fmt.Sprintf("accept datagrams of %v", r.RemoteAddr())
	switch {
	case r.space != UDP:
		return errorf(ErrInvalid, "%s: the request is for a connection, use Accept", what)
	case qp == nil || qp.Type() != ib.UD:
		return errorf(ErrInvalid, "%s: needs a UD queue pair", what)
	case len(private) > AcceptUDPrivate:
		return errorf(ErrInvalid, "%s: private data of %d bytes, can be up to %d", what, len(private), AcceptUDPrivate)
	}
	attr := qp.Query()
	if attr.State != ib.RTR && attr.State != ib.RTS {
		return errorf(verbs.ErrState, "%s: QP %v is in state %v, must be RTR or RTS", what, qp.Num(), attr.State)
	}
	return r.m.do(what, func(now clock.Time) error {
		if err := r.open(what); err != nil {
			return err
		}
		r.taken = true
		delete(r.m.users, r.id)
		return r.m.machine.ReplySIDR(now, r.id, &mad.SIDRREP{QPN: qp.Num(), QKey: attr.QKey, Private: private})
	})
}
