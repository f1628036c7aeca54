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

// Dial connects qp, which is RC or UC and in Reset or Init, to whoever listens
// at the end of a route. It returns when the peer has accepted, qp is in RTS
// and the peer knows it.
//
// The error is the context's, a [*RejectedError], or matches ErrUnreachable or
// ErrInvalid; qp is in Reset then. When ctx ends, the peer is told.
func (m *Manager) Dial(ctx context.Context, to Route, qp *verbs.QP, opt Options) (*Conn, error) {
	what := fmt.Sprintf("dial %v", to.Dst)
	if err := checkQP(what, m.dev, qp); err != nil {
		return nil, err
	}
	opt, err := opt.filled(m.dev, what, DialPrivate)
	if err != nil {
		return nil, err
	}
	if opt.MTU == 0 {
		opt.MTU = to.MTU
	}
	if err := toInit(qp, opt.Access); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	c, err := m.dial(ctx, to, qp, &opt)
	if other, ok := otherMTU(err, opt.MTU); ok {
		opt.MTU = other
		c, err = m.dial(ctx, to, qp, &opt)
	}
	if err != nil {
		_ = qp.ToReset()
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return c, nil
}

// otherMTU returns the path MTU that a peer wants instead.
func otherMTU(err error, mtu ib.MTU) (ib.MTU, bool) {
	rej, ok := err.(*RejectedError) //nolint:errorlint // made here, not wrapped
	if !ok || rej.Reason != mad.RejInvalidMTU || len(rej.Info) == 0 {
		return 0, false
	}
	// Coded as in the REQ, in the upper bits; some write a plain number.
	for _, v := range []ib.MTU{ib.MTU(rej.Info[0] >> 4), ib.MTU(rej.Info[0] & 15)} {
		if v.Bytes() != 0 && v < mtu {
			return v, true
		}
	}
	return 0, false
}

func (m *Manager) dial(ctx context.Context, to Route, qp *verbs.QP, opt *Options) (*Conn, error) {
	c := newConn(m, qp, opt.Farewell)
	psn := randomPSN()
	err := m.do("dial", func(now clock.Time) error {
		port, err := m.port(TCP)
		if err != nil {
			return err
		}
		c.local, c.remote = netip.AddrPortFrom(to.Src, port), to.Dst
		req := to.request(qp, opt, psn, c.local)
		if c.id, err = m.machine.Connect(now, to.peer(opt), req); err == nil {
			m.users[c.id] = c
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	abandon := func(err error) (*Conn, error) {
		_ = m.do("dial", func(now clock.Time) error {
			c.phase = over
			m.machine.Abandon(now, c.id)
			return nil
		})
		return nil, err
	}
	e, err := c.await(ctx)
	if err != nil {
		return abandon(err)
	}
	if err := failure(e); err != nil {
		return nil, err
	}
	var rep mad.REP
	e.Decode(&rep)
	c.private = rep.Private
	c.holds, c.depth = min(opt.ResponderResources, int(rep.InitiatorDepth)), min(opt.InitiatorDepth, int(rep.ResponderResources))
	if qp.Type() != ib.RC {
		c.holds, c.depth = 0, 0
	}
	w := ways{
		av: to.AV(), mtu: opt.MTU, peerQPN: rep.QPN, recvPSN: psn, sendPSN: rep.StartingPSN,
		responderResources: uint8(c.holds), initiatorDepth: uint8(c.depth),
		ackTimeoutExp: opt.AckTimeoutExp, retryCount: uint8(opt.RetryCount), rnrRetry: rep.RNRRetryCount, minRNRTimer: opt.MinRNRTimer,
	}
	w.av.TrafficClass, w.av.SL = opt.TOS, opt.SL
	if err := w.up(qp); err != nil {
		return abandon(err)
	}
	err = m.do("dial", func(clock.Time) error {
		if err := m.machine.Ready(c.id, nil); err != nil {
			return errorf(ErrUnreachable, "the peer has taken its acceptance back")
		}
		c.phase = live
		c.push(Established{})
		return nil
	})
	if err != nil {
		return abandon(err)
	}
	return c, nil
}

// request makes the REQ.
func (r Route) request(qp *verbs.QP, opt *Options, psn ib.PSN, local netip.AddrPort) *mad.REQ {
	req := &mad.REQ{
		Service: mad.Service(TCP, r.Dst.Port()), QPN: qp.Num(),
		ResponderResources: uint8(opt.ResponderResources), InitiatorDepth: uint8(opt.InitiatorDepth),
		RemoteTimeoutExp: opt.TimeoutExp, LocalTimeoutExp: opt.TimeoutExp, Transport: mad.TransportRC,
		StartingPSN: psn, RetryCount: uint8(opt.RetryCount), RNRRetryCount: uint8(opt.RNRRetry),
		PKey: ib.DefaultPKey, MTU: opt.MTU, MaxCMRetries: uint8(opt.Retries),
		Primary: mad.Path{
			LocalLID: 0xFFFF, RemoteLID: 0xFFFF, LocalGID: ib.GIDFromAddr(r.Src), RemoteGID: r.GID,
			TrafficClass: opt.TOS, HopLimit: 64, SL: opt.SL, AckTimeoutExp: opt.AckTimeoutExp,
		},
	}
	if qp.Type() == ib.UC {
		req.Transport = mad.TransportUC
	}
	req.Private = private(local, r.Dst.Addr(), opt.Private)
	return req
}

// private puts the IP header before the user's private data.
func private(src netip.AddrPort, dst netip.Addr, user []byte) []byte {
	b := make([]byte, mad.IPLen, mad.IPLen+len(user))
	h := mad.IP{Src: src, Dst: dst}
	h.Encode(b)
	return append(b, user...)
}

// failure returns what an event says of a connection that does not come to be,
// or nil.
func failure(e *cm.Event) error {
	switch e.Type {
	case cm.EventRejected:
		var rej mad.REJ
		e.Decode(&rej)
		return &RejectedError{Reason: rej.Reason, Info: rej.ARI, Private: rej.Private}
	case cm.EventUnreachable:
		return errorf(ErrUnreachable, "the peer does not answer")
	case cm.EventDisconnect:
		return errorf(ErrGone, "the peer has ended the connection")
	default:
		return nil
	}
}
