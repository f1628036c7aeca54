package cm

import (
	"fmt"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// State is a state of a connection (IBA vol.1 12.9.5, 12.9.7).
type State uint8

// The states.
const (
	Gone         State = iota
	REQSent            // active: waits for the REP
	MRAReceived        // active: the peer will answer later
	REPReceived        // active: waits for Ready
	REQReceived        // passive: waits for Accept or Reject
	REPSent            // passive: waits for the RTU
	Established        //
	DREQSent           // waits for the DREP
	DREQReceived       // waits for Disconnect
	Timewait           //
)

var stateNames = [...]string{
	"gone", "REQ sent", "MRA received", "REP received", "REQ received", "REP sent", "established", "DREQ sent", "DREQ received", "timewait",
}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("CM state %d", uint8(s))
}

// conn is one connection.
type conn struct {
	id      ID
	state   State
	passive bool
	tries   uint8 // that are left
	most    uint8 // tries of a message
	remote  mad.CommID
	peer    Peer
	guid    uint64 // of the peer's device
	qpn     ib.QPN // ours
	peerQPN ib.QPN
	tid     uint64
	timeout time.Duration // for an answer of the peer
	timer   timer
	waits   *listener // in REQReceived: whose backlog it is in
	// last is what goes out again when the peer does not answer, or shows by
	// sending again that it has not got it.
	last [mad.Len]byte
	sent bool // last holds something
}

// State returns the state of a connection.
func (m *Machine) State(id ID) State {
	if c := m.conns[id]; c != nil {
		return c.state
	}
	return Gone
}

// get returns a connection that is in one of the states, or an error.
func (m *Machine) get(what string, id ID, states ...State) (*conn, error) {
	c := m.conns[id]
	if c == nil {
		return nil, fmt.Errorf("%s: connection 0x%08x is gone: %w", what, uint32(id), ErrState)
	}
	for _, s := range states {
		if c.state == s {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%s: connection 0x%08x is in state %q, must be %q: %w", what, uint32(id), c.state, states[0], ErrState)
}

// from returns the connection that a peer speaks of, or nil.
func (m *Machine) from(p *Peer, local, remote mad.CommID) *conn {
	c := m.conns[ID(remote)]
	if c == nil || !c.peer.same(p) || c.remote != 0 && local != c.remote {
		return nil
	}
	return c
}

// say sends a message of a connection and keeps it.
func (m *Machine) say(c *conn, msg mad.Message) {
	mad.Put(c.last[:], c.tid, msg)
	c.sent = true
	m.out.push(outgoing{to: c.peer, b: c.last})
}

// ask is say for a message that wants an answer.
func (m *Machine) ask(now clock.Time, c *conn, msg mad.Message) {
	c.tries = c.most
	m.say(c, msg)
	m.timers.set(&c.timer, now.Add(c.timeout))
}

// again sends the last message again.
func (m *Machine) again(c *conn) {
	if c.sent {
		m.count.Resent++
		m.out.push(outgoing{to: c.peer, b: c.last})
	}
}

// enter changes the state; with the states' books.
func (m *Machine) enter(c *conn, s State) {
	if c.waits != nil {
		c.waits.pending--
		c.waits = nil
	}
	c.state = s
	m.timers.stop(&c.timer)
}

// bind notes whose queue pair is at the other end. It returns the connection
// that has it already, or nil.
func (m *Machine) bind(c *conn, guid uint64, qpn ib.QPN) *conn {
	k := qpnKey{c.peer.GID, guid, qpn}
	if old := m.peers[k]; old != nil && old != c {
		return old
	}
	c.guid, c.peerQPN = guid, qpn
	m.peers[k] = c
	return nil
}

func (m *Machine) unbind(c *conn) {
	k := qpnKey{c.peer.GID, c.guid, c.peerQPN}
	if m.peers[k] == c {
		delete(m.peers, k)
	}
}

// linger remembers a connection that has ended, so that its duplicates get
// their answer and its ID is not taken again.
func (m *Machine) linger(now clock.Time, c *conn) {
	m.enter(c, Timewait)
	m.unbind(c)
	m.timers.set(&c.timer, now.Add(m.cfg.Timewait))
}

// drop forgets a connection.
func (m *Machine) drop(c *conn) {
	m.enter(c, Gone)
	m.unbind(c)
	delete(m.conns, c.id)
	if c.passive {
		k := remoteKey{c.peer.GID, c.guid, c.remote}
		if m.remotes[k] == c {
			delete(m.remotes, k)
		}
	}
}

// timeout is called when a connection's deadline has come.
func (m *Machine) timeout(now clock.Time, c *conn) {
	switch c.state {
	case REQSent, MRAReceived, REPSent, DREQSent:
		if c.tries > 0 {
			c.tries--
			m.again(c)
			if c.state == MRAReceived {
				c.state = REQSent
			}
			m.timers.set(&c.timer, now.Add(c.timeout))
			return
		}
		m.giveUp(now, c)
	case REQReceived:
		// Nobody has answered, and the peer must have given up.
		m.drop(c)
		m.event(EventUnreachable, c.id, c.peer, nil)
	case Timewait:
		m.drop(c)
		m.event(EventTimewaitExit, c.id, c.peer, nil)
	case Gone, REPReceived, Established, DREQReceived:
	}
}

// giveUp ends what the peer does not answer.
func (m *Machine) giveUp(now clock.Time, c *conn) {
	switch c.state {
	case REQSent, MRAReceived:
		m.sendTimeout(c)
		m.drop(c)
		m.event(EventUnreachable, c.id, c.peer, nil)
	case REPSent:
		m.say(c, &mad.REJ{LocalID: mad.CommID(c.id), RemoteID: c.remote, About: mad.WhichREP, Reason: mad.RejTimeout, ARI: m.guid()})
		m.drop(c)
		m.event(EventUnreachable, c.id, c.peer, nil)
	case DREQSent:
		m.linger(now, c)
		m.event(EventDisconnected, c.id, c.peer, nil)
	case Gone, REPReceived, REQReceived, Established, DREQReceived, Timewait:
	}
}

// guid is the additional information of a REJ for a timeout.
func (m *Machine) guid() []byte {
	g := m.cfg.GUID
	return []byte{byte(g >> 56), byte(g >> 48), byte(g >> 40), byte(g >> 32), byte(g >> 24), byte(g >> 16), byte(g >> 8), byte(g)}
}
