package rdmacm

import (
	"context"
	"net/netip"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/cm"
	"github.com/verbena-rdma/verbena/verbs"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// Conn is a connection of two queue pairs.
type Conn struct {
	m       *Manager
	id      cm.ID
	qp      *verbs.QP
	local   netip.AddrPort
	remote  netip.AddrPort
	private []byte // the peer's, of the connection's making
	bye     []byte
	depth   int
	holds   int
	inbox

	// Under the manager's lock.
	phase   phase
	answer  *cm.Event // Dial and Accept wait for it
	down    bool      // done is closed
	done    chan struct{}
	byLocal bool // Disconnect was called
}

type phase uint8

const (
	making phase = iota
	live
	over
)

func newConn(m *Manager, qp *verbs.QP, bye []byte) *Conn {
	return &Conn{m: m, qp: qp, bye: append([]byte(nil), bye...), inbox: newInbox(), done: make(chan struct{})}
}

// QP returns the queue pair.
func (c *Conn) QP() *verbs.QP { return c.qp }

// LocalAddr returns this end's address and port, RemoteAddr the peer's.
func (c *Conn) LocalAddr() netip.AddrPort { return c.local }

// RemoteAddr returns the peer's address and port.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }

// Private returns what the peer's program said: after Dial 196 bytes of its
// answer, after Accept 56 of its request.
func (c *Conn) Private() []byte { return c.private }

// InitiatorDepth returns how many READs and ATOMICs this end may have
// outstanding, ResponderResources how many it takes.
func (c *Conn) InitiatorDepth() int { return c.depth }

// ResponderResources returns how many READs and ATOMICs this end takes.
func (c *Conn) ResponderResources() int { return c.holds }

// Done is closed when the connection has ended, by whom or what ever, and before the
// first receive of its queue pair is flushed where the peer has ended it.
func (c *Conn) Done() <-chan struct{} { return c.done }

// NextEvent returns the oldest event of the connection, and waits until there
// is one. The error is the context's, or matches ErrGone when no more will come.
func (c *Conn) NextEvent(ctx context.Context) (Event, error) {
	e, err := c.next(ctx, c.m, func() bool { return c.phase == over })
	if e == nil && err == nil {
		return nil, errorf(ErrGone, "connection with %v: no more events", c.remote)
	}
	return e, err
}

// Disconnect ends the connection and waits for the peer's agreement, or until
// it has not answered all retries. The queue pair goes to Error at once. private
// is up to [DisconnectPrivate] bytes that the peer's program gets. Where the
// connection has ended already, nil is returned.
func (c *Conn) Disconnect(ctx context.Context, private []byte) error {
	if len(private) > DisconnectPrivate {
		return errorf(ErrInvalid, "disconnect: private data of %d bytes, can be up to %d", len(private), DisconnectPrivate)
	}
	err := c.m.do("disconnect", func(now clock.Time) error {
		if c.phase != live || c.byLocal {
			return nil
		}
		down(c.qp)
		c.byLocal = true
		return c.m.machine.Disconnect(now, c.id, private)
	})
	if err != nil {
		return err
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the connection without waiting for the peer, which is told once.
// The queue pair goes to Error. Closing one that has ended does nothing.
func (c *Conn) Close() error {
	err := c.m.do("close connection", func(now clock.Time) error {
		if c.phase != live {
			return nil
		}
		down(c.qp)
		c.m.machine.Abandon(now, c.id)
		c.finish(Disconnected{}, false)
		return nil
	})
	if err != nil {
		return nil // it has ended with the manager
	}
	return nil
}

// finish marks the end of the connection, with toError moves the queue pair to Error,
// and tells the program; TimewaitExit may follow. It is in this order so that who sees a
// flushed completion finds Done closed, and who is told finds the queue pair in Error.
// Lock held.
func (c *Conn) finish(e Event, toError bool) {
	first := !c.down
	if first {
		c.down = true
		close(c.done)
	}
	if toError {
		down(c.qp)
	}
	if first {
		c.push(e)
	}
}

// cmEvent implements user.
func (c *Conn) cmEvent(e *cm.Event) {
	switch e.Type {
	case cm.EventReply, cm.EventRejected, cm.EventUnreachable, cm.EventReady:
		if c.phase == making {
			c.answer = e
			c.signal()
			return
		}
		if e.Type != cm.EventReady {
			c.finish(Disconnected{ByPeer: true}, true)
			c.phase = over
			c.signal()
		}
	case cm.EventDisconnect:
		c.disconnected(e)
	case cm.EventDisconnected:
		ev := Disconnected{ByPeer: !c.byLocal}
		if e.Attr == mad.AttrDREP {
			var drep mad.DREP
			e.Decode(&drep)
			ev.Private = append([]byte(nil), drep.Private...)
		}
		c.finish(ev, false)
	case cm.EventTimewaitExit:
		c.push(TimewaitExit{})
		c.phase = over
		c.signal()
	case cm.EventRequest, cm.EventSIDRRequest, cm.EventSIDRReply:
	}
}

// disconnected: the peer ends the connection, or has forgotten it. Lock held.
func (c *Conn) disconnected(e *cm.Event) {
	ev := Disconnected{ByPeer: true}
	if e.Attr == mad.AttrDREQ {
		var dreq mad.DREQ
		e.Decode(&dreq)
		ev.Private = append([]byte(nil), dreq.Private...)
		_ = c.m.machine.Disconnect(c.m.clock.Now(), c.id, c.bye)
	}
	if c.phase == making && c.answer == nil {
		c.answer = e
	}
	c.finish(ev, true)
}

// removed implements user.
func (c *Conn) removed() {
	c.finish(DeviceRemoved{}, c.phase == live)
	c.phase = over
	c.signal()
}

// await waits until the peer has answered. The answer is nil if the manager was
// closed meanwhile.
func (c *Conn) await(ctx context.Context) (*cm.Event, error) {
	for {
		c.m.mu.Lock()
		a, closed := c.answer, c.m.closed
		c.answer = nil
		c.m.mu.Unlock()
		switch {
		case closed:
			return nil, errorf(ErrClosed, "the connection manager is closed")
		case a != nil:
			return a, nil
		}
		select {
		case <-c.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
