package probe

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// firstPort is the lowest source port of probes, where RNICs and Linux begin: a
// listener opens no other port for a peer.
const firstPort = 0xC000

// portTries is how many ports from the wanted one on are tried.
const portTries = 32

// endpoint is what both ends have: the ears and mouths of this host, and the
// sessions that they serve. It is safe for concurrent use. Its goroutines end
// with close.
type endpoint struct {
	port    uint16 // 4791
	capture CaptureMode
	sysfs   string

	mu       sync.Mutex
	sessions map[token]*session
	ears     map[netip.Addr]*ear
	captures map[bool]*captured // by "is IPv4"
	mouths   map[mouthKey]*mouth
	wg       sync.WaitGroup
	closed   bool
}

// ear is a UDP socket on the port, or why there is none.
type ear struct {
	c   socket
	why error
}

// captured is a packet socket, or why there is none.
type captured struct {
	c   ears
	why error
}

// ears are what both kinds of sockets that hear can do.
type ears interface {
	Close() error
	// waiting reports whether a packet is there that nobody has read.
	waiting() bool
}

// mouthKey says which socket sends: its address and the wanted source port.
// Sessions share it, so that one peer cannot use up another's ports.
type mouthKey struct {
	addr netip.Addr
	port uint16
}

// mouth is a UDP socket that sends. users counts who has it.
type mouth struct {
	c     socket
	local netip.AddrPort
	users int
	mu    sync.Mutex // one send at a time: the buffer
	buf   []byte
}

// socket is a UDP socket of this platform.
type socket interface {
	ears
	// dropped counts packets that the socket itself has dropped: no room, or a
	// wrong checksum.
	dropped() int
	// serve calls hear for each packet until the socket is closed.
	serve(hear func(*arrival, []byte))
	// send sends one packet without fragmentation; the error is an errno.
	send(b []byte, to netip.AddrPort, tos uint8) error
	// complaints calls f for each ICMP error that waits: what it is about, and
	// what it quotes of the packet.
	complaints(f func(to netip.AddrPort, n Notice))
	local() netip.AddrPort
}

// CaptureMode says whether a packet socket is opened beside the UDP socket.
type CaptureMode uint8

// The modes.
const (
	CaptureAuto  CaptureMode = iota // where the process may
	CaptureNever                    // never
)

func newEndpoint(port uint16, mode CaptureMode, sysfs string) *endpoint {
	if port == 0 {
		port = RoCEPort
	}
	if sysfs == "" {
		sysfs = "/sys"
	}
	return &endpoint{
		port: port, capture: mode, sysfs: sysfs,
		sessions: map[token]*session{}, ears: map[netip.Addr]*ear{}, captures: map[bool]*captured{}, mouths: map[mouthKey]*mouth{},
	}
}

// listen opens what there can be of ears on an address, which may be
// unspecified, once.
func (e *endpoint) listen(addr netip.Addr) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if e.ears[addr] == nil {
		c, err := openSocket(netip.AddrPortFrom(addr, e.port))
		e.ears[addr] = &ear{c, err}
		if err == nil {
			e.wg.Go(func() { c.serve(func(a *arrival, b []byte) { e.arrive(a, b, c) }) })
		}
	}
	is4 := addr.Is4()
	if e.captures[is4] != nil {
		return
	}
	got := &captured{why: errors.New("switched off")}
	if e.capture == CaptureAuto {
		c, err := openCapture(is4, e.port)
		got.c, got.why = c, err
		if err == nil {
			e.wg.Go(func() { c.serve(func(a *arrival, b []byte) { e.arrive(a, b, nil) }) })
		} else {
			got.c = nil
		}
	}
	e.captures[is4] = got
}

// arrive gives a packet to the session whose token it carries and answers it if
// it asks for that. It runs on the ears' goroutines.
func (e *endpoint) arrive(a *arrival, b []byte, from socket) {
	if !a.d.decode(b) {
		return
	}
	e.mu.Lock()
	s := e.sessions[a.d.token]
	e.mu.Unlock()
	if s == nil {
		return
	}
	// The sockets see neither Identification nor flags; ours are 0 and DF.
	f := flowOf(a.src, a.dst)
	a.icrc = f.Verify(0, true, b)
	first := s.hear(a)
	if !first || !a.d.echo && a.d.kind != kindWitness {
		return
	}
	if !s.far {
		return // the near end answers nobody
	}
	now := time.Now().UnixNano()
	reply := datagram{
		kind: kindEcho, tos: a.d.tos, path: a.d.path, seq: a.d.seq, token: a.d.token,
		sentAt: a.d.sentAt, heard: a.at, echoed: now,
	}
	if a.d.kind == kindWitness {
		// From the socket that it came to, which is not the one of the probes.
		if !a.d.echo || from == nil {
			return
		}
		reply.kind = kindWitness
		out := make([]byte, len(b))
		if reply.encode(out) {
			seal(out, from.local(), a.src)
			_ = from.send(out, a.src, a.d.tos)
		}
		return
	}
	s.mu.Lock()
	v := s.voice
	s.mu.Unlock()
	if v != nil {
		v.answer(&reply, a.src.Port(), len(b))
	}
}

// mouth returns a socket on an address with a source port, or the next that is
// free. The caller must release it.
func (e *endpoint) mouth(addr netip.Addr, port uint16) (*mouth, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, errors.New("closed")
	}
	key := mouthKey{addr, port}
	if m := e.mouths[key]; m != nil {
		m.users++
		return m, nil
	}
	var err error
	for i := range uint16(portTries) {
		p := port + i
		if p < firstPort || p == e.port {
			continue
		}
		var c socket
		if c, err = openSocket(netip.AddrPortFrom(addr, p)); err == nil {
			m := &mouth{c: c, local: netip.AddrPortFrom(addr, p), users: 1, buf: make([]byte, MaxSize)}
			e.mouths[key] = m
			return m, nil
		}
		if !inUse(err) {
			break
		}
	}
	return nil, fmt.Errorf("source port %d on %v: %w", port, addr, err)
}

// release gives a mouth back; the last one closes it.
func (e *endpoint) release(m *mouth) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m.users--; m.users > 0 {
		return
	}
	for k, x := range e.mouths {
		if x == m {
			delete(e.mouths, k)
		}
	}
	_ = m.c.Close()
}

// say sends d as a packet of n bytes of UDP payload.
func (m *mouth) say(d *datagram, to netip.AddrPort, n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n < 0 || n > len(m.buf) {
		return errors.New("size")
	}
	b := m.buf[:n]
	if !d.encode(b) {
		return errors.New("size")
	}
	seal(b, m.local, to)
	return m.c.send(b, to, d.tos)
}

// collect brings the ICMP errors of a mouth to the sessions that they concern.
func (e *endpoint) collect(m *mouth) {
	m.c.complaints(func(to netip.AddrPort, n Notice) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, s := range e.sessions {
			if s.peer == to.Addr().Unmap().WithZone("") {
				s.complain(n)
			}
		}
	})
}

// add is false if there is a session with that token.
func (e *endpoint) add(s *session) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[s.token] != nil {
		return false
	}
	e.sessions[s.token] = s
	return true
}

func (e *endpoint) remove(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[s.token] == s {
		delete(e.sessions, s.token)
	}
}

// drainTime bounds how long packets that have arrived are waited for.
const drainTime = 2 * time.Second

// drain waits until what has arrived on an address has been heard: this host
// may be busy, and that is no loss.
func (e *endpoint) drain(ctx context.Context, bound netip.Addr) {
	e.mu.Lock()
	var all []ears
	if x := e.ears[bound]; x != nil && x.why == nil {
		all = append(all, x.c)
	}
	if x := e.captures[bound.Is4()]; x != nil && x.c != nil {
		all = append(all, x.c)
	}
	e.mu.Unlock()
	end := time.Now().Add(drainTime)
	for time.Now().Before(end) && slices.ContainsFunc(all, ears.waiting) {
		if !pause(ctx, time.Now().Add(lookAgain)) {
			return
		}
	}
	_ = pause(ctx, time.Now().Add(5*lookAgain)) // the last one is being read
}

// dropped counts packets that the ear on an address itself has dropped.
func (e *endpoint) dropped(bound netip.Addr) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.ears[bound]; x != nil && x.why == nil && !e.closed {
		return x.c.dropped()
	}
	return 0
}

// host says how this end hears packets to addr, whose ear is on bound.
func (e *endpoint) host(addr, bound netip.Addr, name, version string) Host {
	h := Host{Name: name, Version: version, Devices: devicesOf(e.sysfs, addr)}
	h.Interface, h.MTU = interfaceOf(addr)
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.ears[bound]; x != nil {
		h.Socket = x.why == nil
		h.SocketWhy = text(x.why)
	}
	if x := e.captures[bound.Is4()]; x != nil {
		h.Capture = x.c != nil
		h.CaptureWhy = text(x.why)
	}
	return h
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// close ends the goroutines.
func (e *endpoint) close() {
	e.mu.Lock()
	e.closed = true
	for _, x := range e.ears {
		if x.why == nil {
			_ = x.c.Close()
		}
	}
	for _, x := range e.captures {
		if x.c != nil {
			_ = x.c.Close()
		}
	}
	for k, m := range e.mouths {
		_ = m.c.Close()
		delete(e.mouths, k)
	}
	e.mu.Unlock()
	e.wg.Wait()
}

// hasSocket reports whether a UDP socket listens on an address.
func (e *endpoint) hasSocket(bound netip.Addr) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.ears[bound]
	return x != nil && x.why == nil
}
