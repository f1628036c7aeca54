package cm

import (
	"fmt"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// Connect asks a peer for a connection. The machine fills LocalID and CAGUID of
// req; RemoteTimeoutExp says when the REQ goes out again, MaxCMRetries how
// often. EventReply, EventRejected or EventUnreachable will follow. The error
// matches ErrLimit.
func (m *Machine) Connect(now clock.Time, to Peer, req *mad.REQ) (ID, error) {
	if len(m.conns) >= m.cfg.MaxConns {
		return 0, fmt.Errorf("connect: there are %d of %d connections: %w", len(m.conns), m.cfg.MaxConns, ErrLimit)
	}
	if len(req.Private) > mad.REQPrivateLen {
		return 0, fmt.Errorf("connect: private data of %d bytes, can be up to %d: %w", len(req.Private), mad.REQPrivateLen, ErrInvalid)
	}
	c := m.newConn(to, m.newTID())
	c.qpn, c.timeout, c.most = req.QPN, m.wait(req.RemoteTimeoutExp), req.MaxCMRetries
	r := *req
	r.LocalID, r.CAGUID = mad.CommID(c.id), m.cfg.GUID
	c.state = REQSent
	m.ask(now, c, &r)
	return c.id, nil
}

func (m *Machine) newConn(peer Peer, tid uint64) *conn {
	c := &conn{id: m.newID(), peer: peer, tid: tid}
	c.timer.conn = c
	m.conns[c.id] = c
	return c
}

func (m *Machine) newTID() uint64 { return uint64(m.cfg.Rand())<<32 | uint64(m.cfg.Rand()) }

// receiveREP: the peer accepts.
func (m *Machine) receiveREP(now clock.Time, from Peer, h *mad.Header, b []byte) {
	var rep mad.REP
	rep.Decode(b[mad.HeaderLen:])
	c := m.from(&from, rep.LocalID, rep.RemoteID)
	if c == nil || c.passive {
		// We have given up, or never asked. The peer need not send it again.
		m.count.Ignored++
		m.answer(from, h.TID, &mad.REJ{LocalID: rep.RemoteID, RemoteID: rep.LocalID, About: mad.WhichREP, Reason: mad.RejInvalidCommID})
		return
	}
	switch c.state {
	case REQSent, MRAReceived:
		m.enter(c, REPReceived)
		c.remote, c.tries = rep.LocalID, 0
		if old := m.bind(c, rep.CAGUID, rep.QPN); old != nil {
			m.count.Refused++
			m.say(c, &mad.REJ{LocalID: mad.CommID(c.id), RemoteID: c.remote, About: mad.WhichREP, Reason: mad.RejStaleConnection})
			m.drop(c)
			m.event(EventUnreachable, c.id, c.peer, nil)
			// As with a REQ, the peer has forgotten the old one (IBA vol.1
			// 12.9.8.3.1).
			m.forgotten(now, old)
			return
		}
		c.sent = false // the REQ has done its work
		m.event(EventReply, c.id, c.peer, b)
	case REPReceived:
		// The user takes its time.
		m.count.Duplicates++
		m.send(c.peer, c.tid, &mad.MRA{
			LocalID: mad.CommID(c.id), RemoteID: c.remote, About: mad.WhichREP, ServiceTimeoutExp: serviceTimeoutExp,
		})
	case Established:
		// The RTU was lost.
		m.count.Duplicates++
		m.again(c)
	case Gone, REQReceived, REPSent, DREQSent, DREQReceived, Timewait:
		m.count.Duplicates++
	}
}

// Ready says that the queue pair of an accepted connection is in RTS; private
// data go with the RTU.
func (m *Machine) Ready(id ID, private []byte) error {
	c, err := m.get("RTU", id, REPReceived)
	if err != nil {
		return err
	}
	if len(private) > mad.RTUPrivateLen {
		return fmt.Errorf("RTU: private data of %d bytes, can be up to %d: %w", len(private), mad.RTUPrivateLen, ErrInvalid)
	}
	m.enter(c, Established)
	m.say(c, &mad.RTU{LocalID: mad.CommID(c.id), RemoteID: c.remote, Private: private})
	return nil
}

// receiveMRA: the peer has got what was sent and will take longer.
func (m *Machine) receiveMRA(now clock.Time, from Peer, b []byte) {
	var mra mad.MRA
	mra.Decode(b[mad.HeaderLen:])
	c := m.from(&from, mra.LocalID, mra.RemoteID)
	switch {
	case c == nil:
		m.count.Ignored++
	case mra.About == mad.WhichREQ && (c.state == REQSent || c.state == MRAReceived):
		c.state = MRAReceived
		m.timers.set(&c.timer, now.Add(m.wait(mra.ServiceTimeoutExp)))
	case mra.About == mad.WhichREP && c.state == REPSent:
		m.timers.set(&c.timer, now.Add(m.wait(mra.ServiceTimeoutExp)))
	default:
		m.count.Ignored++
	}
}

// sendTimeout tells the peer that nobody waits for its REP any more.
func (m *Machine) sendTimeout(c *conn) {
	m.send(c.peer, c.tid, &mad.REJ{
		LocalID: mad.CommID(c.id), About: mad.WhichREQ, Reason: mad.RejTimeout, ARI: m.guid(),
	})
}
