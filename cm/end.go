package cm

import (
	"fmt"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// Disconnect ends an established connection, or answers EventDisconnect.
// Private data go with the DREQ or DREP. The first is followed by
// EventDisconnected, both by EventTimewaitExit.
func (m *Machine) Disconnect(now clock.Time, id ID, private []byte) error {
	c, err := m.get("disconnect", id, Established, REPSent, DREQReceived)
	if err != nil {
		return err
	}
	most := mad.DREQPrivateLen
	if c.state == DREQReceived {
		most = mad.DREPPrivateLen
	}
	if len(private) > most {
		return fmt.Errorf("disconnect: private data of %d bytes, can be up to %d: %w", len(private), most, ErrInvalid)
	}
	if c.state == DREQReceived {
		m.say(c, &mad.DREP{LocalID: mad.CommID(c.id), RemoteID: c.remote, Private: private})
		m.linger(now, c)
		return nil
	}
	m.part(now, c, private)
	return nil
}

// part sends the DREQ.
func (m *Machine) part(now clock.Time, c *conn, private []byte) {
	m.enter(c, DREQSent)
	c.tid = m.newTID()
	m.ask(now, c, &mad.DREQ{LocalID: mad.CommID(c.id), RemoteID: c.remote, RemoteQPN: c.peerQPN, Private: private})
}

// forgotten ends a connection that the peer shows not to have any more.
func (m *Machine) forgotten(now clock.Time, c *conn) {
	switch c.state {
	case Established, REPSent:
		m.event(EventDisconnect, c.id, c.peer, nil)
		m.part(now, c, nil)
	case REQReceived:
		m.drop(c)
		m.event(EventUnreachable, c.id, c.peer, nil)
	case REQSent, MRAReceived, REPReceived, DREQSent, DREQReceived, Timewait, Gone:
	}
}

// Abandon forgets a connection in whatever state it is: the peer is told, once,
// and nothing is waited for. No event follows but EventTimewaitExit, and that
// one only where there is something to wait for.
func (m *Machine) Abandon(now clock.Time, id ID) {
	c := m.conns[id]
	if c == nil {
		return
	}
	switch c.state {
	case REQSent, MRAReceived:
		m.sendTimeout(c)
		m.drop(c)
	case REQReceived, REPReceived:
		_ = m.Reject(now, id, mad.RejConsumer, nil, nil)
	case REPSent, Established:
		m.part(now, c, nil)
		m.linger(now, c)
	case DREQReceived:
		_ = m.Disconnect(now, id, nil)
	case DREQSent:
		m.linger(now, c)
	case Timewait, Gone:
	}
}

// receiveDREQ: the peer ends a connection.
func (m *Machine) receiveDREQ(now clock.Time, from Peer, h *mad.Header, b []byte) {
	var dreq mad.DREQ
	dreq.Decode(b[mad.HeaderLen:])
	c := m.from(&from, dreq.LocalID, dreq.RemoteID)
	if c == nil || c.remote == 0 {
		// Forgotten: the peer shall not wait (IBA vol.1 12.9.8.3.2).
		m.answer(from, h.TID, &mad.DREP{LocalID: dreq.RemoteID, RemoteID: dreq.LocalID})
		return
	}
	switch c.state {
	case Established, REPSent:
		if c.qpn != dreq.RemoteQPN {
			m.count.Ignored++
			return
		}
		m.enter(c, DREQReceived)
		c.tid, c.sent = h.TID, false
		m.event(EventDisconnect, c.id, c.peer, b)
	case REPReceived:
		// It has sent the REP and changed its mind.
		m.answer(from, h.TID, &mad.DREP{LocalID: mad.CommID(c.id), RemoteID: c.remote})
		m.linger(now, c)
		m.event(EventUnreachable, c.id, c.peer, nil)
	case DREQSent:
		// Both ends part at once: each answers.
		m.enter(c, DREQReceived)
		c.tid = h.TID
		m.say(c, &mad.DREP{LocalID: mad.CommID(c.id), RemoteID: c.remote})
		m.linger(now, c)
		m.event(EventDisconnected, c.id, c.peer, b)
	case Timewait:
		m.count.Duplicates++
		c.tid = h.TID
		m.say(c, &mad.DREP{LocalID: mad.CommID(c.id), RemoteID: c.remote})
	case DREQReceived:
		m.count.Duplicates++
	case Gone, REQSent, MRAReceived, REQReceived:
		m.count.Ignored++
	}
}

// receiveDREP: the peer agrees.
func (m *Machine) receiveDREP(now clock.Time, from Peer, b []byte) {
	var drep mad.DREP
	drep.Decode(b[mad.HeaderLen:])
	c := m.from(&from, drep.LocalID, drep.RemoteID)
	if c == nil || c.state != DREQSent {
		m.count.Ignored++
		return
	}
	m.linger(now, c)
	m.event(EventDisconnected, c.id, c.peer, b)
}

// receiveLAP refuses an alternate path politely.
func (m *Machine) receiveLAP(from Peer, h *mad.Header, b []byte) {
	var lap mad.LAP
	lap.Decode(b[mad.HeaderLen:])
	apr := mad.APR{LocalID: lap.RemoteID, RemoteID: lap.LocalID, Status: mad.APUnsupported}
	if c := m.from(&from, lap.LocalID, lap.RemoteID); c == nil || c.state != Established {
		apr.Status = mad.APInvalidCommID
	}
	m.answer(from, h.TID, &apr)
}
