package bench

import (
	"net"
	"net/netip"
	"time"
)

// pingBytes is the size of a message there and back, and wireBytes what a
// message of ours of that size is on the wire; UDP sends as much.
const (
	pingBytes = 64
	wireBytes = pingBytes + 12 + 16 + 4
)

// udpConn is UDP there and back on Go's own sockets: the goroutines block.
type udpConn struct {
	c *child
	trips
	n    *net.UDPConn
	peer netip.AddrPort
}

func (u *udpConn) prepare() (o Offer, err error) {
	u.n, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(u.c.addr, 0)))
	if err != nil {
		return o, err
	}
	o.Port = u.n.LocalAddr().(*net.UDPAddr).Port
	return o, nil
}

func (u *udpConn) join(peer Offer) error {
	a, err := netip.ParseAddr(peer.Addr)
	u.peer = netip.AddrPortFrom(a, uint16(peer.Port))
	return err
}

func (u *udpConn) slot(d time.Duration) (Sample, error) {
	if err := u.n.SetReadDeadline(time.Now().Add(d + patience/2)); err != nil {
		return Sample{}, err
	}
	var buf [2048]byte
	for u.start(d); ; {
		if _, err := u.n.WriteToUDPAddrPort(buf[:wireBytes], u.peer); err != nil {
			return Sample{}, err
		}
		if _, _, err := u.n.ReadFromUDPAddrPort(buf[:]); err != nil {
			return Sample{}, err
		}
		if !u.back() {
			return u.sample(pingBytes), nil
		}
	}
}

func (u *udpConn) serve(h *halt) error {
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-h.ctx.Done():
			_ = u.n.SetReadDeadline(time.Unix(1, 0))
		case <-stop:
		}
	}()
	if err := u.n.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	var buf [2048]byte
	for {
		n, from, err := u.n.ReadFromUDPAddrPort(buf[:])
		if h.stop.Load() {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := u.n.WriteToUDPAddrPort(buf[:n], from); err != nil {
			return err
		}
	}
}

func (u *udpConn) close() error {
	if u.n == nil {
		return nil
	}
	return u.n.Close()
}
