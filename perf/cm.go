package perf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf/handshake"
	"github.com/verbena-rdma/verbena/perf/report"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

// Tests with -R: the connection manager connects the queue pairs, and one more
// that carries the handshake. All of them go to one port: the handshake's comes
// first, the others in order.

// cmSide is what a test with -R has besides.
type cmSide struct {
	m     *rdmacm.Manager
	l     *rdmacm.Listener // the server's
	ud    *rdmacm.Listener // the server's, with -c UD: of port space UDP
	route rdmacm.Route     // the client's
	conns []*rdmacm.Conn
}

// meetCM finds the peer through the connection manager of a device.
func (t *test) meetCM(ctx context.Context) (err error) {
	c := t.cfg
	if t.dev, err = t.openCM(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			t.closeCM()
			t.dev.Close()
		}
	}()
	t.cm = &cmSide{}
	if t.cm.m, err = rdmacm.Open(t.dev); err != nil {
		return err
	}
	control, err := newCMWire(t.dev)
	if err != nil {
		return err
	}
	if t.server {
		err = t.waitCM(ctx, control)
	} else {
		err = t.dialCM(ctx, control)
	}
	if err != nil {
		control.cancel()
		return err
	}
	t.w = newWire(control)
	role := handshake.Client
	if t.server {
		role = handshake.Server
	}
	t.s = handshake.NewSession(t.w, role)
	t.s.OverCM()
	c.GIDIndex = t.rowCM()
	return nil
}

func (t *test) waitCM(ctx context.Context, control *cmWire) (err error) {
	c := t.cfg
	if t.cm.l, err = t.cm.m.Listen(rdmacm.TCP, uint16(c.Port)); err != nil {
		return err
	}
	if c.Conn == ib.UD {
		if t.cm.ud, err = t.cm.m.Listen(rdmacm.UDP, uint16(c.Port)); err != nil {
			return err
		}
	}
	c.print([]byte(report.WaitingCM))
	req, err := t.cm.l.Next(ctx)
	if err != nil {
		return err
	}
	control.conn, err = req.Accept(ctx, control.qp, cmOptions)
	return err
}

func (t *test) dialCM(ctx context.Context, control *cmWire) (err error) {
	c := t.cfg
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if t.cm.route, err = t.cm.m.Resolve(ctx, net.JoinHostPort(trimBrackets(c.Peer), strconv.Itoa(c.Port))); err != nil {
		return err
	}
	o := cmOptions
	o.TOS = c.TOS
	control.conn, err = t.cm.m.Dial(ctx, t.cm.route, control.qp, o)
	if errors.Is(err, rdmacm.ErrRefused) {
		return fmt.Errorf("%w: is the same program running there as the server, with -R and on this port (-p)?", err)
	}
	return err
}

// trimBrackets takes an IPv6 address as URLs have it.
func trimBrackets(host string) string {
	if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		return host[1 : n-1]
	}
	return host
}

// openCM opens the device: there is no TCP connection that tells which.
func (t *test) openCM() (*verbs.Device, error) {
	c := t.cfg
	if c.Device != "" {
		return openDevice(c.Open, c.Device, true, netip.Addr{}, netip.Addr{}, t.server)
	}
	if t.server {
		if a, err := netip.ParseAddr(c.Source); err == nil {
			return openDevice(c.Open, "", false, a, netip.Addr{}, true)
		}
		infos, err := verbs.ListDevices()
		if err != nil {
			return nil, err
		}
		for _, i := range infos {
			if i.Why == "" {
				return openDevice(c.Open, i.Netdev, false, netip.Addr{}, netip.Addr{}, true)
			}
		}
		return nil, usage("-d: name a device: no interface has a usable address")
	}
	// Whom the host would send from.
	u, err := net.Dial("udp", net.JoinHostPort(trimBrackets(c.Peer), strconv.Itoa(verbs.DefaultPort)))
	if err != nil {
		return nil, fmt.Errorf("no way to %s: %w", c.Peer, root(err))
	}
	defer u.Close()
	local, remote := u.LocalAddr().(*net.UDPAddr), u.RemoteAddr().(*net.UDPAddr)
	return openDevice(c.Open, "", false, local.AddrPort().Addr().Unmap(), remote.AddrPort().Addr().Unmap(), false)
}

// rowCM is the row of the GID table that the connections use.
func (t *test) rowCM() int {
	if !t.server {
		return t.cm.route.GIDIndex
	}
	local, _ := t.w.addrs()
	for _, e := range t.dev.GIDs() {
		if e.Addr.WithZone("") == local && e.Unusable == "" {
			return e.Index
		}
	}
	return -1
}

// finishCM ends the connections: the client does, the server waits for that.
func (t *test) finishCM(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	all := t.cm.conns
	if w, ok := t.w.Conn.(*cmWire); ok {
		all = append(all, w.conn)
	}
	for _, conn := range all {
		if !t.server {
			_ = conn.Disconnect(ctx, nil)
			continue
		}
		select {
		case <-conn.Done():
		case <-ctx.Done():
			_ = conn.Close()
		}
	}
}

// closeCM frees the connection manager.
func (t *test) closeCM() {
	if t.cm != nil && t.cm.m != nil {
		_ = t.cm.m.Close()
	}
}
