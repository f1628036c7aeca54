package rdmacm

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// Group is the membership of a queue pair in a multicast group of port space
// UDP, or the way of one that only sends.
type Group struct {
	m    *Manager
	addr netip.Addr
	qp   *verbs.QP // nil: sends only
	to   Datagram
	inbox

	// Under the manager's lock.
	left bool
}

// Join makes qp, which is UD, receive what is sent to a multicast group. The
// group is the destination of the route: [Manager.Resolve] or [Manager.RouteTo]
// of an address of 224.0.0.0/4 or ff00::/8, whose port means nothing. RoCE has no
// subnet manager to ask: the group's GID is its address, the fabric learns of the
// member by IGMP or MLD, and Join returns at once. Of opt it takes TOS and SL.
//
// A queue pair in Reset is brought to RTS with [QKeyUDP], as all members of port
// space UDP have it; in another state it is taken as it is. Post receives with
// room for the 40 bytes of the GRH. What the sender itself has joined it hears,
// too. Without a queue pair (nil) the group is one to send to alone.
//
// The first event of the group is [Joined], which tells what senders need, as
// [Group.Datagram] does. Leave before the queue pair is closed. The error is the
// context's, or matches ErrInvalid, ErrBusy for a queue pair that is a member,
// [verbs.ErrLimit] or [verbs.ErrPath].
func (m *Manager) Join(ctx context.Context, to Route, qp *verbs.QP, opt Options) (*Group, error) {
	addr := to.Dst.Addr().Unmap().WithZone("")
	what := fmt.Sprintf("join %v", addr)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	opt, err := opt.filled(m.dev, what, 0)
	if err != nil {
		return nil, err
	}
	switch {
	case !to.GID.IsMulticast():
		return nil, errorf(ErrInvalid, "%s: not a multicast group: those are 224.0.0.0/4 and ff00::/8", what)
	case qp != nil && qp.Device() != m.dev:
		return nil, errorf(ErrInvalid, "%s: QP %v belongs to device %v, the connection manager to %v", what, qp.Num(), qp.Device(), m.dev)
	case qp != nil && qp.Type() != ib.UD:
		return nil, errorf(ErrInvalid, "%s: QP %v is %v, must be UD", what, qp.Num(), qp.Type())
	}
	g := &Group{m: m, addr: addr, qp: qp, inbox: newInbox()}
	g.to = Datagram{QPN: ib.QPMulticast, QKey: QKeyUDP, AV: to.AV()}
	g.to.AV.TrafficClass, g.to.AV.SL = opt.TOS, opt.SL
	if qp != nil {
		if err := g.enter(); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	err = m.do(what, func(clock.Time) error {
		m.groups[g] = struct{}{}
		g.push(Joined{Datagram: g.to})
		return nil
	})
	if err != nil {
		g.exit()
		return nil, err
	}
	return g, nil
}

// enter makes the queue pair a member.
func (g *Group) enter() error {
	if g.qp.State() == ib.Reset {
		if err := readyUD(g.qp); err != nil {
			return err
		}
	}
	g.to.QKey = g.qp.Query().QKey
	return g.qp.Attach(g.addr)
}

// exit ends that.
func (g *Group) exit() {
	if g.qp != nil {
		_ = g.qp.Detach(g.addr) // it ends with the device, too
	}
}

// Addr returns the group's address.
func (g *Group) Addr() netip.Addr { return g.addr }

// QP returns the queue pair that is a member, or nil.
func (g *Group) QP() *verbs.QP { return g.qp }

// Datagram returns whom to send to: an address vector, the QPN of all groups,
// and the Q_Key.
func (g *Group) Datagram() Datagram { return g.to }

// NextEvent returns the oldest event of the group, and waits until there is one:
// [Joined], and [DeviceRemoved] when the manager was closed. The error is the
// context's, or matches ErrGone when no more will come.
func (g *Group) NextEvent(ctx context.Context) (Event, error) {
	e, err := g.next(ctx, g.m, func() bool { return g.left })
	if e == nil && err == nil {
		return nil, errorf(ErrGone, "group %v: no more events", g.addr)
	}
	return e, err
}

// Leave ends the membership; the queue pair stays as it is. Leaving twice does
// nothing.
func (g *Group) Leave() error {
	// It fails where the manager is closed, which has left for us.
	_ = g.m.do("leave", func(clock.Time) error {
		if !g.left {
			g.leave()
			delete(g.m.groups, g)
		}
		return nil
	})
	return nil
}

// leave: the manager's lock is held.
func (g *Group) leave() {
	g.left = true
	g.exit()
	g.signal()
}

// removed says that the manager is no more; the lock is held.
func (g *Group) removed() {
	g.push(DeviceRemoved{})
	g.leave()
}
