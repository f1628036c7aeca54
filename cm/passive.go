package cm

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// receiveREQ: a peer asks for a connection.
func (m *Machine) receiveREQ(now clock.Time, from Peer, h *mad.Header, b []byte) {
	var req mad.REQ
	req.Decode(b[mad.HeaderLen:])
	if c := m.remotes[remoteKey{from.GID, req.CAGUID, req.LocalID}]; c != nil {
		m.duplicateREQ(now, c)
		return
	}
	refuse := func(r mad.Reason) {
		m.count.Refused++
		m.answer(from, h.TID, &mad.REJ{RemoteID: req.LocalID, About: mad.WhichREQ, Reason: r})
	}
	l := m.listeners[req.Service]
	switch {
	case l == nil:
		refuse(mad.RejInvalidServiceID)
		return
	case l.pending >= m.cfg.MaxPending || len(m.conns) >= m.cfg.MaxConns:
		refuse(mad.RejNoResources)
		return
	}
	if old := m.peers[qpnKey{from.GID, req.CAGUID, req.QPN}]; old != nil {
		// The peer has forgotten a connection of that queue pair: so must we
		// (IBA vol.1 12.9.8.3.1).
		refuse(mad.RejStaleConnection)
		m.forgotten(now, old)
		return
	}
	c := m.newConn(from, h.TID)
	c.peer.TrafficClass, c.peer.SL = req.Primary.TrafficClass, req.Primary.SL&7
	c.passive, c.state = true, REQReceived
	c.remote, c.timeout, c.most = req.LocalID, m.wait(req.LocalTimeoutExp), req.MaxCMRetries
	m.bind(c, req.CAGUID, req.QPN)
	m.remotes[remoteKey{from.GID, req.CAGUID, req.LocalID}] = c
	l.pending++
	c.waits = l
	// Until the peer must have given up, had it no MRA.
	m.timers.set(&c.timer, now.Add(m.wait(req.RemoteTimeoutExp)*time.Duration(req.MaxCMRetries+1)))
	m.event(EventRequest, c.id, c.peer, b)
}

// duplicateREQ: the peer has not got what was answered, or there is no answer
// yet.
func (m *Machine) duplicateREQ(now clock.Time, c *conn) {
	m.count.Duplicates++
	switch c.state {
	case REQReceived:
		m.sendMRA(now, c)
	case REPSent, Timewait:
		m.again(c)
	case Established, DREQSent, DREQReceived:
		// It has got the REP, or would not have answered it.
	case Gone, REQSent, MRAReceived, REPReceived:
	}
}

// sendMRA tells the peer that the answer takes longer.
func (m *Machine) sendMRA(now clock.Time, c *conn) {
	m.send(c.peer, c.tid, &mad.MRA{
		LocalID: mad.CommID(c.id), RemoteID: c.remote, About: mad.WhichREQ, ServiceTimeoutExp: serviceTimeoutExp,
	})
	m.timers.set(&c.timer, now.Add(2*m.wait(serviceTimeoutExp)))
}

// Accept answers a request. The machine fills LocalID, RemoteID and CAGUID of
// rep. EventReady will follow, or EventUnreachable.
func (m *Machine) Accept(now clock.Time, id ID, rep *mad.REP) error {
	c, err := m.get("accept", id, REQReceived)
	if err != nil {
		return err
	}
	if len(rep.Private) > mad.REPPrivateLen {
		return fmt.Errorf("accept: private data of %d bytes, can be up to %d: %w", len(rep.Private), mad.REPPrivateLen, ErrInvalid)
	}
	m.enter(c, REPSent)
	c.qpn = rep.QPN
	r := *rep
	r.LocalID, r.RemoteID, r.CAGUID = mad.CommID(c.id), c.remote, m.cfg.GUID
	m.ask(now, c, &r)
	return nil
}

// Reject refuses a request, or the reply to one. ari is up to mad.ARILen bytes
// of additional information, or nil. The ID is gone for the caller.
func (m *Machine) Reject(now clock.Time, id ID, why mad.Reason, ari, private []byte) error {
	c, err := m.get("reject", id, REQReceived, REPReceived, REPSent)
	if err != nil {
		return err
	}
	if len(private) > mad.REJPrivateLen || len(ari) > mad.ARILen {
		return fmt.Errorf("reject: %d bytes of additional information and %d of private data, can be up to %d and %d: %w",
			len(ari), len(private), mad.ARILen, mad.REJPrivateLen, ErrInvalid)
	}
	rej := mad.REJ{LocalID: mad.CommID(c.id), RemoteID: c.remote, Reason: why, ARI: ari, Private: private}
	switch c.state {
	case REPReceived:
		rej.About = mad.WhichREP
	case REPSent:
		rej.About = mad.WhichOther
	default:
		rej.About = mad.WhichREQ
	}
	m.say(c, &rej)
	m.linger(now, c)
	return nil
}

// receiveRTU: the connection is established.
func (m *Machine) receiveRTU(from Peer, b []byte) {
	var rtu mad.RTU
	rtu.Decode(b[mad.HeaderLen:])
	c := m.from(&from, rtu.LocalID, rtu.RemoteID)
	switch {
	case c == nil || !c.passive:
		m.count.Ignored++
	case c.state == REPSent:
		m.enter(c, Established)
		m.event(EventReady, c.id, c.peer, b)
	default:
		m.count.Duplicates++
	}
}

// Arrived says that a message of the peer has arrived at the queue pair of an
// accepted connection: it is established, though the RTU may be lost (IBA vol.1
// 12.9.7.2). In other states it does nothing.
func (m *Machine) Arrived(id ID) {
	if c := m.conns[id]; c != nil && c.state == REPSent {
		m.enter(c, Established)
		m.event(EventReady, c.id, c.peer, nil)
	}
}

// receiveREJ: the peer refuses, or has given up.
func (m *Machine) receiveREJ(now clock.Time, from Peer, b []byte) {
	var rej mad.REJ
	rej.Decode(b[mad.HeaderLen:])
	c := m.conns[ID(rej.RemoteID)]
	if rej.RemoteID == 0 && rej.Reason == mad.RejTimeout && len(rej.ARI) >= 8 {
		// The sender of a REQ that has not heard of us names itself.
		c = m.remotes[remoteKey{from.GID, binary.BigEndian.Uint64(rej.ARI), rej.LocalID}]
	}
	// A REQ may be refused without an ID of the refusing end.
	if c == nil || !c.peer.same(&from) || c.remote != 0 && rej.LocalID != 0 && rej.LocalID != c.remote {
		m.count.Ignored++
		return
	}
	switch c.state {
	case REQSent, MRAReceived, REPReceived, REQReceived, REPSent:
		m.drop(c)
		m.event(EventRejected, c.id, c.peer, b)
	case Established:
		// It has lost the connection, or never had it: an RTU that crossed with
		// a timeout, or an ID that it does not know.
		m.forgotten(now, c)
	case DREQSent:
		m.linger(now, c)
		m.event(EventDisconnected, c.id, c.peer, nil)
	case DREQReceived, Timewait, Gone:
		m.count.Ignored++
	}
}

// refuseVersion answers a request of another class version.
func (m *Machine) refuseVersion(from Peer, h *mad.Header, data []byte) {
	m.count.Ignored++
	switch h.Attr {
	case mad.AttrREQ:
		var req mad.REQ
		req.Decode(data)
		m.answer(from, h.TID, &mad.REJ{
			RemoteID: req.LocalID, About: mad.WhichREQ, Reason: mad.RejInvalidClassVersion, ARI: []byte{mad.CMClassVersion},
		})
	case mad.AttrSIDRREQ:
		var req mad.SIDRREQ
		req.Decode(data)
		m.answer(from, h.TID, &mad.SIDRREP{RequestID: req.RequestID, Status: mad.SIDRVersion, Service: req.Service})
	case mad.AttrREP, mad.AttrREJ, mad.AttrMRA, mad.AttrRTU, mad.AttrDREQ, mad.AttrDREP, mad.AttrSIDRREP, mad.AttrLAP, mad.AttrAPR,
		mad.AttrClassPortInfo:
	}
}
