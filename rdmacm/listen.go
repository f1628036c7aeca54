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

// Listener takes requests at one port, on all addresses of the device.
type Listener struct {
	m     *Manager
	space Space
	port  uint16

	// Under the manager's lock.
	queue []*Request
	ready chan struct{} // capacity 1: full while there are requests
	gone  chan struct{} // closed with the listener
	ended bool
}

// Listen takes requests at a port; 0 for any that is free. The error matches
// ErrInUse.
func (m *Manager) Listen(space Space, port uint16) (*Listener, error) {
	if space != TCP && space != UDP {
		return nil, errorf(ErrInvalid, "listen: port space %v, can be tcp or udp", space)
	}
	l := &Listener{m: m, space: space, port: port, ready: make(chan struct{}, 1), gone: make(chan struct{})}
	err := m.do("listen", func(clock.Time) (err error) {
		if l.port == 0 {
			if l.port, err = m.port(space); err != nil {
				return fmt.Errorf("listen: %w", err)
			}
		}
		if err := m.machine.Listen(l.service()); err != nil {
			return err
		}
		m.listeners[l.service()] = l
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Listener) service() mad.ServiceID { return mad.Service(l.space, l.port) }

// Port returns the port.
func (l *Listener) Port() uint16 { return l.port }

// Next returns the oldest request that nobody has taken, and waits until there
// is one. The error is the context's, or matches ErrClosed.
func (l *Listener) Next(ctx context.Context) (*Request, error) {
	for {
		l.m.mu.Lock()
		if len(l.queue) > 0 {
			r := l.queue[0]
			l.queue = l.queue[1:]
			if len(l.queue) > 0 {
				l.signal()
			}
			l.m.mu.Unlock()
			return r, nil
		}
		l.m.mu.Unlock()
		select {
		case <-l.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.gone:
			return nil, errorf(ErrClosed, "listener at %v port %d: it is closed", l.space, l.port)
		}
	}
}

func (l *Listener) signal() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// Close ends listening. Requests that nobody has taken are refused.
func (l *Listener) Close() error {
	_ = l.m.do("close listener", func(now clock.Time) error {
		if l.ended {
			return nil
		}
		l.m.machine.Unlisten(l.service())
		delete(l.m.listeners, l.service())
		for _, r := range l.queue {
			r.refuse(now, mad.RejInvalidServiceID, nil, nil)
		}
		l.end()
		return nil
	})
	return nil
}

// end wakes those who wait. Lock held.
func (l *Listener) end() {
	if !l.ended {
		l.ended = true
		l.queue = nil
		close(l.gone)
	}
}

// Request is what a peer asks for. Answer it with Accept, AcceptUD or Reject.
type Request struct {
	m       *Manager
	id      cm.ID
	space   Space
	peer    cm.Peer
	ip      mad.IP
	req     mad.REQ
	port    uint16
	private []byte

	// Under the manager's lock.
	taken bool  // answered
	err   error // why it cannot be answered any more
}

// Space returns the port space of the request.
func (r *Request) Space() Space { return r.space }

// RemoteAddr returns the peer's address and port, as it says.
func (r *Request) RemoteAddr() netip.AddrPort { return r.ip.Src }

// LocalAddr returns the address and port that the peer has asked for.
func (r *Request) LocalAddr() netip.AddrPort { return netip.AddrPortFrom(r.ip.Dst, r.port) }

// Private returns what the peer's program says: 56 bytes, or 180 for datagrams.
func (r *Request) Private() []byte { return r.private }

// Type returns the type of queue pair that the peer wants to talk to.
func (r *Request) Type() ib.QPType {
	if r.space == UDP {
		return ib.UD
	}
	t, _ := r.req.QPType()
	return t
}

// ResponderResources returns how many READs and ATOMICs the peer takes,
// InitiatorDepth how many it will have outstanding.
func (r *Request) ResponderResources() int { return int(r.req.ResponderResources) }

// InitiatorDepth returns how many READs and ATOMICs the peer will have
// outstanding.
func (r *Request) InitiatorDepth() int { return int(r.req.InitiatorDepth) }

// MTU returns the path MTU of the connection.
func (r *Request) MTU() ib.MTU { return r.req.MTU }

// request makes a Request of an event, unless it cannot be. Lock held.
func (m *Manager) request(e *cm.Event) {
	r := &Request{m: m, id: e.ID, peer: e.Peer, space: TCP}
	now := m.clock.Now()
	var data []byte
	var service mad.ServiceID
	if e.Type == cm.EventSIDRRequest {
		var req mad.SIDRREQ
		e.Decode(&req)
		r.space, service, data = UDP, req.Service, req.Private
	} else {
		e.Decode(&r.req)
		service, data = r.req.Service, r.req.Private
		if why, info := m.unfit(r); why != 0 {
			r.refuse(now, why, info, nil)
			return
		}
	}
	ip, err := mad.DecodeIP(data)
	if err != nil {
		r.refuse(now, mad.RejUnsupported, nil, nil)
		return
	}
	_, r.port, _ = service.Port()
	r.ip, r.private = ip, data[mad.IPLen:]
	l := m.listeners[service]
	if l == nil {
		r.refuse(now, mad.RejInvalidServiceID, nil, nil)
		return
	}
	m.users[e.ID] = r
	l.queue = append(l.queue, r)
	l.signal()
}

// unfit says why a connection cannot be what a REQ asks for; 0 if it can. It
// finds the way to the peer's queue pair. Lock held.
func (m *Manager) unfit(r *Request) (why mad.Reason, info []byte) {
	if _, ok := r.req.QPType(); !ok {
		return mad.RejInvalidTransport, nil
	}
	if most := m.mtu; r.req.MTU > most || r.req.MTU.Bytes() == 0 {
		return mad.RejInvalidMTU, []byte{byte(most) << 4}
	}
	rows := m.rows
	path := &r.req.Primary
	if rows[r.peer.GIDIndex].GID != path.RemoteGID {
		found := false
		for i := range rows {
			if rows[i].GID == path.RemoteGID && rows[i].Unusable == "" {
				r.peer.GIDIndex, found = i, true
				break
			}
		}
		if !found {
			g := rows[r.peer.GIDIndex].GID
			return mad.RejPrimaryGID, g[:]
		}
	}
	return 0, nil
}

// refuse refuses the request. Lock held.
func (r *Request) refuse(now clock.Time, why mad.Reason, info, private []byte) {
	r.taken = true
	delete(r.m.users, r.id)
	if r.space == UDP {
		status := mad.SIDRReject
		if why == mad.RejInvalidServiceID {
			status = mad.SIDRUnsupported
		}
		_ = r.m.machine.ReplySIDR(now, r.id, &mad.SIDRREP{Status: status, Private: private})
		return
	}
	_ = r.m.machine.Reject(now, r.id, why, info, private)
}

// open returns why the request cannot be answered, or takes it. Lock held.
func (r *Request) open(what string) error {
	switch {
	case r.taken:
		return errorf(ErrGone, "%s: the request has been answered", what)
	case r.err != nil:
		return fmt.Errorf("%s: %w", what, r.err)
	}
	return nil
}

// Reject refuses the request. private is up to [RejectPrivate] bytes, for
// datagrams up to [AcceptUDPrivate], that the peer's program gets.
func (r *Request) Reject(private []byte) error {
	most := RejectPrivate
	if r.space == UDP {
		most = AcceptUDPrivate
	}
	if len(private) > most {
		return errorf(ErrInvalid, "reject: private data of %d bytes, can be up to %d", len(private), most)
	}
	return r.m.do("reject", func(now clock.Time) error {
		if err := r.open("reject"); err != nil {
			return err
		}
		r.refuse(now, mad.RejConsumer, nil, private)
		return nil
	})
}

// Accept connects qp, which has the request's type and is in Reset or Init, and
// returns when the peer is ready, too. Of opt, what is the dialing end's to say
// is ignored.
//
// The error is the context's, or matches ErrGone if the peer has given up,
// ErrUnreachable if it does not answer; qp is in Reset then and the peer is
// told.
func (r *Request) Accept(ctx context.Context, qp *verbs.QP, opt Options) (*Conn, error) {
	what := fmt.Sprintf("accept connection of %v", r.RemoteAddr())
	if err := checkQP(what, r.m.dev, qp); err != nil {
		return nil, err
	}
	if qp.Type() != r.Type() {
		return nil, errorf(ErrInvalid, "%s: QP %v is %v, the peer's is %v", what, qp.Num(), qp.Type(), r.Type())
	}
	opt, err := opt.filled(r.m.dev, what, AcceptPrivate)
	if err != nil {
		return nil, err
	}
	if err := toInit(qp, opt.Access); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	c, err := r.accept(ctx, qp, &opt)
	if err != nil {
		_ = qp.ToReset()
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return c, nil
}

func (r *Request) accept(ctx context.Context, qp *verbs.QP, opt *Options) (*Conn, error) {
	req := &r.req
	c := newConn(r.m, qp, opt.Farewell)
	c.id, c.local, c.remote, c.private = r.id, r.LocalAddr(), r.RemoteAddr(), r.private
	c.holds = min(opt.ResponderResources, int(req.InitiatorDepth))
	c.depth = min(opt.InitiatorDepth, int(req.ResponderResources))
	if qp.Type() != ib.RC {
		c.holds, c.depth = 0, 0
	}
	psn := randomPSN()
	w := ways{
		av: ib.AV{
			DGID: req.Primary.LocalGID, SGIDIndex: r.peer.GIDIndex, TrafficClass: req.Primary.TrafficClass, SL: req.Primary.SL & 7,
			FlowLabel: req.Primary.FlowLabel,
		},
		mtu: req.MTU, peerQPN: req.QPN, recvPSN: psn, sendPSN: req.StartingPSN,
		responderResources: uint8(c.holds), initiatorDepth: uint8(c.depth),
		ackTimeoutExp: req.Primary.AckTimeoutExp, retryCount: req.RetryCount, rnrRetry: req.RNRRetryCount, minRNRTimer: opt.MinRNRTimer,
	}
	// The REP is the permission to send: the queue pair receives before. It may
	// send itself when the peer is known to be ready (IBA vol.1 12.9.7.2).
	if err := w.toRTR(qp); err != nil {
		_ = r.m.do("accept", func(now clock.Time) error {
			if r.open("accept") == nil {
				r.refuse(now, mad.RejNoResources, nil, nil)
			}
			return nil
		})
		return nil, err
	}
	err := r.m.do("accept", func(now clock.Time) error {
		if err := r.open("accept"); err != nil {
			return err
		}
		r.m.gsi.WatchFirst(qp, true)
		r.m.accepting[qp.Num()] = r.id
		err := r.m.machine.Accept(now, r.id, &mad.REP{
			QPN: qp.Num(), StartingPSN: psn, ResponderResources: uint8(c.holds), InitiatorDepth: uint8(c.depth),
			TargetAckDelayExp: ackDelayExp, Failover: 1, RNRRetryCount: uint8(opt.RNRRetry), Private: opt.Private,
		})
		if err != nil {
			return err
		}
		r.taken = true
		r.m.users[r.id] = c
		return nil
	})
	if err != nil {
		r.m.established(qp)
		return nil, err
	}
	e, err := c.await(ctx)
	if err == nil {
		err = failure(e)
	}
	r.m.established(qp)
	if err == nil {
		if err = w.toRTS(qp); err != nil && qp.State() == ib.Error {
			err = nil // the peer has ended the connection already, which is an event
		}
	}
	if err != nil {
		_ = r.m.do("accept", func(now clock.Time) error {
			c.phase = over
			r.m.machine.Abandon(now, c.id)
			return nil
		})
		return nil, err
	}
	est := Established{}
	if e.Attr == mad.AttrRTU {
		var rtu mad.RTU
		e.Decode(&rtu)
		est.Private = rtu.Private
	}
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if c.phase == making {
		c.phase = live
	}
	c.events = append([]Event{est}, c.events...) // it may have ended already
	c.signal()
	return c, nil
}

// established ends the wait for a queue pair's first message.
func (m *Manager) established(qp *verbs.QP) {
	m.gsi.WatchFirst(qp, false)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.accepting, qp.Num())
}

// ackDelayExp is how long this end takes for an ACK: 4.096 µs · 2^15, 134 ms.
const ackDelayExp = 15

// cmEvent implements user: the peer has given up.
func (r *Request) cmEvent(e *cm.Event) {
	if err := failure(e); err != nil {
		r.err = errorf(ErrGone, "the peer has given up: %v", err)
	}
}

// removed implements user.
func (r *Request) removed() { r.err = errorf(ErrClosed, "the connection manager is closed") }
