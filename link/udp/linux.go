//go:build linux

package udp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/internal/poll"
	"github.com/verbena-rdma/verbena/link/internal/ring"
)

// localDepth bounds the runs on their way from this link to itself.
const localDepth = 128

// system is the Linux implementation. mu makes Close safe at any time; else
// there is one caller, and Wait takes no lock.
type system struct {
	mu     sync.Mutex
	closed bool
	caps   link.Caps
	port   uint16
	eps    []*endpoint
	groups []*group
	rxs    []*endpoint // those of eps and of groups: what Recv asks
	turn   int         // which endpoint Recv asks first

	set      *shards // whose shard this is; nil: there is one
	shard    int
	inbox    inbox // what other shards have for this one
	pool     ring.Pool
	local    ring.Queue
	localLen atomic.Int32 // for Wait
	lent     [][]byte
	guests   [][]byte // lent from the inbox
	reserved int

	rx      rxBatch
	tx      txMsg
	waiting []waitingRun // runs that the system's queue had no room for
	odd     map[netip.Addr]*oddPeer
	events  []link.Event
	cnt     link.Counters

	poll poll.Set
}

// endpoint is one local address.
type endpoint struct {
	addr  netip.Addr // without zone; a multicast group, where it is of one
	zone  int        // interface index of an IPv6 address, where it is known
	main  sock       // bound to the link's port; receives, and sends if no other can
	out   *sources   // those of all shards
	drops uint32     // the kernel's count of packets that found main full
	share bool       // main is one of several on the port
	ask   int        // how many pieces the next receive asks for, if over 1
	cfg   *Config
}

// sources are the sockets of one address that are bound to source ports; they
// send only. Shards have them in common, since a port can be bound once.
type sources struct {
	mu   sync.Mutex // for changes
	list atomic.Pointer[[]sock]
}

func newSources() *sources {
	s := &sources{}
	s.list.Store(new([]sock))
	return s
}

func (s *sources) socks() []sock { return *s.list.Load() }

// add adds a socket. With mu.
func (s *sources) add(n sock) {
	list := append(slices.Clone(s.socks()), n)
	s.list.Store(&list)
}

func (s *sources) close() {
	for _, o := range s.socks() {
		_ = unix.Close(o.fd)
	}
	s.list.Store(new([]sock))
}

// sock is one unconnected socket.
type sock struct {
	fd   int
	port uint16
}

func openSystem(cfg Config) (link.Link, error) { return openShard(&cfg, nil) }

// openShard opens the next link of a set, or the only one.
func openShard(cfg *Config, set *shards) (_ link.Link, err error) {
	l := &system{port: cfg.Port, set: set, pool: ring.NewPool(ring.BufLen), local: ring.NewQueue(localDepth), odd: map[netip.Addr]*oddPeer{}}
	l.tx.init()
	if set != nil {
		l.inbox.open()
		l.shard = len(set.links)
		set.links = append(set.links, l)
	}
	if err := l.poll.Open(); err != nil {
		return nil, fmt.Errorf("open UDP link: %w", err)
	}
	defer func() {
		if err != nil {
			_ = l.Close()
		}
	}()
	l.caps = link.Caps{Encap: frame.UDPPayload, MTU: maxFrame, Segments: 1, RunBytes: maxFrame, Idents: true}
	for i, a := range cfg.Addrs {
		ep := &endpoint{addr: a.WithZone(""), cfg: cfg, main: sock{fd: -1}, out: newSources()}
		if l.shard > 0 {
			ep.out = set.links[0].eps[i].out
		}
		if ep.zone, err = cfg.zoneOf(a); err != nil {
			return nil, fmt.Errorf("open UDP link: %w", err)
		}
		if ep.zone == 0 && a.Is6() {
			ep.zone = interfaceOf(a) // for multicast
		}
		l.eps, l.rxs = append(l.eps, ep), append(l.rxs, ep)
		if ep.main, err = set.open(ep, cfg.Port); err != nil {
			return nil, openError(a, cfg.Port, err)
		}
		if err = l.poll.Receive(ep.main.fd); err != nil {
			return nil, fmt.Errorf("open UDP link on %v: %w", a, err)
		}
		l.caps.MTU = min(l.caps.MTU, interfaceMTU(ep.addr)-headers(ep.addr))
		held := holds(ep.main.fd)
		if l.caps.RxBytes == 0 || held < l.caps.RxBytes {
			l.caps.RxBytes = held
		}
	}
	if !cfg.NoOffload && canSegment(l.eps[0].main.fd) {
		l.caps.Segments = frame.MaxSegments
	}
	return l, nil
}

func openError(a netip.Addr, port uint16, err error) error {
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return inUse(a, port, err)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return notAvailable(a, err)
	}
	return fmt.Errorf("open UDP link on %v: %w", a, err)
}

// open makes a socket bound to the endpoint's address and a port.
func (e *endpoint) open(port uint16, receive bool) (sock, error) {
	family := unix.AF_INET
	if e.addr.Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return sock{fd: -1}, fmt.Errorf("socket: %w", err)
	}
	if err := e.setUp(fd, receive); err == nil {
		err = unix.Bind(fd, e.sockaddr(e.addr, port))
		if err == nil {
			return sock{fd: fd, port: port}, nil
		}
		_ = unix.Close(fd)
		return sock{fd: -1}, fmt.Errorf("bind: %w", err)
	} else {
		_ = unix.Close(fd)
		return sock{fd: -1}, err
	}
}

func (e *endpoint) sockaddr(a netip.Addr, port uint16) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Port: int(port), Addr: a.As4()}
	}
	sa := &unix.SockaddrInet6{Port: int(port), Addr: a.As16()}
	if a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsInterfaceLocalMulticast() {
		sa.ZoneId = uint32(e.zone)
	}
	return sa
}

// option is one socket option; those that only refine may be missing.
type option struct {
	level, name, value int
	must               bool
	what               string
}

func (e *endpoint) setUp(fd int, receive bool) error {
	var opts []option
	if e.addr.Is4() {
		opts = []option{
			// Forbids fragments and makes the Identification 0, 1, 2, …
			{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE, true, "IP_MTU_DISCOVER"},
			{unix.IPPROTO_IP, unix.IP_TTL, ring.DefaultTTL, false, "IP_TTL"},
			{unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, ring.DefaultTTL, false, "IP_MULTICAST_TTL"},
		}
		if receive {
			opts = append(opts,
				option{unix.IPPROTO_IP, unix.IP_RECVTOS, 1, false, "IP_RECVTOS"},
				option{unix.IPPROTO_IP, unix.IP_RECVTTL, 1, false, "IP_RECVTTL"})
		}
	} else {
		opts = []option{
			{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1, true, "IPV6_V6ONLY"},
			{unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE, true, "IPV6_MTU_DISCOVER"},
			{unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, ring.DefaultTTL, false, "IPV6_UNICAST_HOPS"},
			{unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, ring.DefaultTTL, false, "IPV6_MULTICAST_HOPS"},
			{unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, e.zone, false, "IPV6_MULTICAST_IF"},
		}
		if receive {
			// RNICs send UDP checksum 0, which IPv6 forbids but for those who ask.
			// It concerns the socket that receives, and only that one does.
			opts = append(opts,
				option{unix.IPPROTO_UDP, udpNoCheck6RX, 1, true, "UDP_NO_CHECK6_RX"},
				option{unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1, false, "IPV6_RECVTCLASS"},
				option{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1, false, "IPV6_RECVHOPLIMIT"})
		}
	}
	if e.addr.IsMulticast() {
		// Others on this host may listen to the group, too; what they have joined
		// elsewhere is theirs.
		opts = append(opts, option{unix.SOL_SOCKET, unix.SO_REUSEADDR, 1, true, "SO_REUSEADDR"})
		if e.addr.Is4() {
			opts = append(opts, option{unix.IPPROTO_IP, ipMulticastAll, 0, false, "IP_MULTICAST_ALL"})
		} else {
			opts = append(opts, option{unix.IPPROTO_IPV6, ipv6MulticastAll, 0, false, "IPV6_MULTICAST_ALL"})
		}
	}
	if receive && e.share {
		opts = append(opts, option{unix.SOL_SOCKET, unix.SO_REUSEPORT, 1, true, "SO_REUSEPORT"})
	}
	if receive {
		opts = append(opts, option{unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1, false, "SO_RXQ_OVFL"})
		if !e.cfg.NoOffload {
			opts = append(opts, option{unix.IPPROTO_UDP, unix.UDP_GRO, 1, false, "UDP_GRO"})
		}
	}
	for _, o := range opts {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil && o.must {
			return fmt.Errorf("set %s: %w", o.what, err)
		}
	}
	setBuffer(fd, unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, e.cfg.SendBuffer)
	if receive {
		setBuffer(fd, unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, e.cfg.RecvBuffer)
		return nil
	}
	// Nobody reads what strangers send to a source port: do not even keep it.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1)
	drop := [1]unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	_ = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop[0]})
	return nil
}

// setBuffer asks for n bytes, past the administrator's limit where this
// process may.
func setBuffer(fd, name, force, n int) {
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, name, n)
	if got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, name); err == nil && got < 2*n {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, n)
	}
}

// holds returns how much payload of unmerged 1 to 4 KiB packets the receive
// buffer has room for. The kernel charges each packet its buffer and its
// bookkeeping: 184 to 200 KiB fit into 212,992 bytes, which the kernel doubles.
func holds(fd int) int {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return 0
	}
	return n / 16 * 7
}

// canSegment reports whether the kernel knows UDP_SEGMENT (Linux 4.18).
func canSegment(fd int) bool {
	_, err := unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
	return err == nil
}

// endpoint returns the endpoint of a local address, nil if it is not one.
func (l *system) endpoint(a netip.Addr) *endpoint {
	for _, e := range l.eps {
		if e.addr == a {
			return e
		}
	}
	return nil
}

// Caps implements link.Link.
func (l *system) Caps() link.Caps { return l.caps }

// Counters implements link.Link.
func (l *system) Counters() link.Counters {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		for _, e := range l.rxs {
			// The count that comes with packets is as old as the last packet.
			if d, ok := dropsOf(e.main.fd); ok {
				l.setDrops(e, d)
			}
		}
	}
	c := l.cnt
	c.WaitCalls = l.poll.Calls()
	return c
}

func (l *system) setDrops(e *endpoint, drops uint32) {
	// Modulo 2^32, and never backwards: the two sources may cross.
	if d := drops - e.drops; d < 1<<31 {
		l.cnt.RxDropped += uint64(d)
		e.drops = drops
	}
}

// Event implements link.Link.
func (l *system) Event() (link.Event, bool) {
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
func (l *system) Wait(now, until clock.Time) error {
	local := &l.localLen
	if l.set != nil {
		local = &l.inbox.n
	}
	return l.poll.Wait(now, until, local)
}

// Wake implements link.Link.
func (l *system) Wake() { l.poll.Wake() }

// Close implements link.Link.
func (l *system) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	last := l.set.leave()
	for _, e := range l.rxs {
		if last && e.out != nil {
			e.out.close()
		}
		if e.main.fd >= 0 {
			_ = unix.Close(e.main.fd)
		}
	}
	return l.poll.Close()
}
