package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/internal/ring"
)

const (
	// portableMTU is the longest frame of the portable link: a jumbo frame.
	portableMTU = 9216
	// portableDepth is how many packets wait for Recv.
	portableDepth = 512
)

// portable is the link over net.UDPConn, one packet a call. A goroutine an
// address reads; TOS and TTL are the system's both ways, and a send may wait
// for the system's queue.
type portable struct {
	mu       sync.Mutex
	closed   bool
	caps     link.Caps
	port     uint16
	eps      []*portableEnd
	pool     ring.Pool
	in       ring.Queue
	lent     [][]byte
	reserved int
	refused  map[netip.Addr]bool
	events   []link.Event
	cnt      link.Counters
	woken    bool
	gate     ring.Gate
	readers  sync.WaitGroup
}

// portableEnd is one local address.
type portableEnd struct {
	addr netip.Addr // without zone
	zone string
	main *net.UDPConn
	out  []portableSock
}

type portableSock struct {
	conn *net.UDPConn
	port uint16
}

func openPortable(cfg Config) (_ link.Link, err error) {
	l := &portable{
		port: cfg.Port, pool: ring.NewPool(portableMTU), in: ring.NewQueue(portableDepth),
		refused: map[netip.Addr]bool{}, gate: ring.NewGate(),
		caps: link.Caps{Encap: frame.UDPPayload, MTU: portableMTU, Segments: 1, RxBytes: cfg.RecvBuffer},
	}
	defer func() {
		if err != nil {
			_ = l.Close()
		}
	}()
	for _, a := range cfg.Addrs {
		e := &portableEnd{addr: a.WithZone(""), zone: a.Zone()}
		if index, err := cfg.zoneOf(a); err != nil {
			return nil, fmt.Errorf("open UDP link: %w", err)
		} else if index != 0 && e.zone == "" {
			e.zone = fmt.Sprint(index)
		}
		if e.main, err = e.listen(cfg.Port); err != nil {
			return nil, portableOpenError(a, cfg.Port, err)
		}
		_ = e.main.SetReadBuffer(cfg.RecvBuffer)
		_ = e.main.SetWriteBuffer(cfg.SendBuffer)
		l.eps = append(l.eps, e)
		l.caps.MTU = min(l.caps.MTU, interfaceMTU(e.addr)-headers(e.addr))
	}
	l.caps.RunBytes = l.caps.MTU
	for _, e := range l.eps {
		l.readers.Go(func() { l.read(e) })
	}
	return l, nil
}

func portableOpenError(a netip.Addr, port uint16, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return inUse(a, port, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return notAvailable(a, err)
	}
	return fmt.Errorf("open UDP link on %v: %w", a, err)
}

func (e *portableEnd) listen(port uint16) (*net.UDPConn, error) {
	network := "udp4"
	if e.addr.Is6() {
		network = "udp6"
	}
	return net.ListenUDP(network, net.UDPAddrFromAddrPort(netip.AddrPortFrom(e.addr.WithZone(e.zone), port)))
}

// read moves packets from one socket into the queue until the socket is
// closed.
func (l *portable) read(e *portableEnd) {
	l.mu.Lock()
	buf := l.pool.Get()
	l.mu.Unlock()
	for {
		n, from, err := e.main.ReadFromUDPAddrPort(buf)
		l.mu.Lock()
		l.cnt.RecvCalls++
		if l.closed || errors.Is(err, net.ErrClosed) {
			l.pool.Put(buf)
			l.mu.Unlock()
			return
		}
		switch {
		case err != nil || n == len(buf):
			// Longer than any frame, or an error of an earlier send that some
			// systems report here.
			l.cnt.RxForeign++
		case !l.in.Push(frame.Rx{Data: buf[:n], Src: from.Addr().Unmap().WithZone(""), Dst: e.addr, SrcPort: from.Port()}):
			l.cnt.RxDropped++
		default:
			buf = l.pool.Get()
		}
		l.mu.Unlock()
		l.gate.Open()
	}
}

func (l *portable) end(a netip.Addr) *portableEnd {
	for _, e := range l.eps {
		if e.addr == a {
			return e
		}
	}
	return nil
}

// Caps implements link.Link.
func (l *portable) Caps() link.Caps { return l.caps }

// Path implements link.Link. The route's MTU is not known here.
func (l *portable) Path(src, dst netip.Addr, srcPort uint16) (link.Path, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	src, dst = src.Unmap().WithZone(""), dst.Unmap().WithZone("")
	if l.closed {
		return link.Path{}, link.ErrClosed
	}
	e := l.end(src)
	if e == nil || src.BitLen() != dst.BitLen() {
		return link.Path{}, fmt.Errorf("no route from %v to %v: %v is not an address of this link", src, dst, src)
	}
	return link.Path{SrcPort: e.source(l.port, srcPort), MTU: l.caps.MTU}, nil
}

// source binds a socket to the wanted source port or one near it, and returns
// which; when there are enough it shares one.
func (e *portableEnd) source(main, want uint16) uint16 {
	port := want
	for range portTries {
		if e.conn(main, port) != nil {
			return port
		}
		if len(e.out) == maxOut {
			break
		}
		if c, err := e.listen(port); err == nil {
			_ = c.SetReadBuffer(1)
			e.out = append(e.out, portableSock{c, port})
			return port
		}
		if port++; port < firstSrcPort {
			port = firstSrcPort
		}
	}
	if len(e.out) == 0 {
		return main
	}
	return e.out[int(want)%len(e.out)].port
}

// conn returns the socket with exactly this source port, nil if there is none.
func (e *portableEnd) conn(main, port uint16) *net.UDPConn {
	for _, s := range e.out {
		if s.port == port {
			return s.conn
		}
	}
	if port == main {
		return e.main
	}
	return nil
}

// Recv implements link.Link.
func (l *portable) Recv(_ clock.Time, rx []frame.Rx) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, link.ErrClosed
	}
	n := 0
	for n < len(rx) && l.in.Len() > 0 {
		rx[n] = l.in.Pop()
		l.lent = append(l.lent, rx[n].Data)
		n++
	}
	return n, nil
}

// Release implements link.Link.
func (l *portable) Release([]frame.Rx) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, b := range l.lent {
		l.pool.Put(b)
		l.lent[i] = nil
	}
	l.lent = l.lent[:0]
}

// Reserve implements link.Link.
func (l *portable) Reserve(tx []frame.Run) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0
	}
	n := min(len(tx), maxReserved-l.reserved)
	for i := range tx[:n] {
		tx[i] = frame.Run{Buf: l.pool.Get()[:l.caps.RunBytes]}
	}
	l.reserved += n
	return n
}

// Commit implements link.Link.
func (l *portable) Commit(_ clock.Time, tx []frame.Run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range tx {
		r := &tx[i]
		if r.Buf == nil {
			continue
		}
		l.reserved--
		if r.N == 0 || l.closed || !l.send(r) {
			l.pool.Put(r.Buf)
		}
		*r = frame.Run{}
	}
	if l.closed {
		return link.ErrClosed
	}
	return nil
}

// send sends a run and reports whether its buffer went with it.
func (l *portable) send(r *frame.Run) bool {
	e := l.end(r.Src)
	if e == nil || r.Dst.BitLen() != r.Src.BitLen() || !ring.Sane(r, 1) {
		l.cnt.TxRefused++
		return false
	}
	if l.end(r.Dst) != nil {
		if !l.in.Push(ring.Received(r)) {
			l.cnt.RxDropped++
			return false
		}
		l.gate.Open()
		return true
	}
	c := e.conn(l.port, r.SrcPort)
	if c == nil {
		l.cnt.TxNoPort++
		return false
	}
	dst := r.Dst
	if dst.IsLinkLocalUnicast() && dst.Is6() {
		dst = dst.WithZone(e.zone)
	}
	l.cnt.SendCalls++
	if _, err := c.WriteToUDPAddrPort(r.Buf[:r.N], netip.AddrPortFrom(dst, l.port)); err != nil {
		l.cnt.TxRefused++
		if !l.refused[r.Dst] && len(l.events) < maxEvents {
			l.refused[r.Dst] = true
			l.events = append(l.events, link.Event{Kind: link.EventRefused, Src: r.Src, Dst: r.Dst, Err: err})
		}
	}
	return false
}

// Counters implements link.Link.
func (l *portable) Counters() link.Counters {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cnt
}

// Event implements link.Link.
func (l *portable) Event() (link.Event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) == 0 {
		return link.Event{}, false
	}
	ev := l.events[0]
	l.events = append(l.events[:0], l.events[1:]...)
	return ev, true
}

// Wait implements link.Link.
func (l *portable) Wait(now, until clock.Time) error {
	l.mu.Lock()
	closed, ready := l.closed, l.woken || l.in.Len() > 0
	l.woken = false
	l.mu.Unlock()
	if !closed && !ready {
		l.gate.Wait(now, until)
		l.mu.Lock()
		closed, l.woken = l.closed, false
		l.mu.Unlock()
	}
	if closed {
		return link.ErrClosed
	}
	return nil
}

// Wake implements link.Link.
func (l *portable) Wake() {
	l.mu.Lock()
	l.woken = true
	l.mu.Unlock()
	l.gate.Open()
}

// Close implements link.Link.
func (l *portable) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	for _, e := range l.eps {
		for _, s := range e.out {
			_ = s.conn.Close()
		}
		_ = e.main.Close()
	}
	l.gate.Open()
	l.mu.Unlock()
	l.readers.Wait()
	return nil
}
