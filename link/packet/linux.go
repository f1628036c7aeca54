//go:build linux

package packet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/internal/poll"
	"github.com/verbena-rdma/verbena/link/internal/ring"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// system is the link. mu makes Close safe at any time, and guards what the
// listener changes; else there is one caller, and Wait takes no lock.
type system struct {
	mu     sync.Mutex
	closed bool
	caps   link.Caps
	cfg    Config
	index  int // of the interface
	mac    ether.MAC
	lo     bool // the interface is a loopback
	fd     int  // receives
	out    int  // sends
	poll   poll.Set
	polled bool // poll is open
	clock  clock.Real

	rxPool, txPool ring.Pool
	splitPool      ring.Pool // see merged_linux.go
	env            roce.Envelope
	rxLen          int
	local          ring.Queue
	localLen       atomic.Int32 // for Wait
	lent           [][]byte
	reserved       int
	turn           bool
	rx             rxBatch
	merging        bool // what came last was a merged frame
	tx             txBatch
	notes          bool // the socket that sends wants a note before each frame
	whole          bool // runs go frame by frame: the system does not cut them

	hops    map[netip.Addr]*hop // by destination
	lastDst netip.Addr
	lastHop *hop
	held    int // bytes that wait for neighbours
	groups  map[netip.Addr]*group

	routes  netlink // asks; belongs to the owner
	ears    ears    // listens
	holders []holder

	events  []link.Event
	refused unix.Errno
	cnt     link.Counters
}

// holder keeps the kernel from answering for an address: a UDP socket on the
// port that drops all.
type holder struct {
	addr netip.Addr
	fd   int
	more []int // see [holder.join]
}

func openSystem(cfg Config) (_ link.Link, err error) {
	ifi, err := net.InterfaceByName(cfg.Interface)
	if err != nil {
		return nil, fmt.Errorf("open packet link on %s: %w", cfg.Interface, err)
	}
	l := &system{
		cfg: cfg, clock: clock.NewReal(), index: ifi.Index, fd: -1, out: -1, lo: ifi.Flags&net.FlagLoopback != 0,
		hops: map[netip.Addr]*hop{}, groups: map[netip.Addr]*group{}, local: ring.NewQueue(localDepth),
	}
	l.routes.fd, l.ears.nl.fd, l.ears.again.fd = -1, -1, -1
	defer func() {
		if err != nil {
			_ = l.Close()
			err = fmt.Errorf("open packet link on %s: %w", cfg.Interface, err)
		}
	}()
	switch {
	case len(ifi.HardwareAddr) == 6:
		l.mac = ether.MAC(ifi.HardwareAddr)
	case !l.lo:
		return nil, fmt.Errorf("it is no Ethernet interface: its address has %d bytes", len(ifi.HardwareAddr))
	}
	if ifi.Flags&net.FlagUp == 0 {
		return nil, fmt.Errorf("the interface is down; set it up (ip link set %s up): %w", cfg.Interface, unix.ENETDOWN)
	}
	l.caps = link.Caps{Encap: frame.Ethernet, Segments: frame.MaxSegments, RunBytes: maxRun, Idents: true, Tagged: cfg.tagged(), VLAN: cfg.VLAN}
	l.caps.MTU = min(ifi.MTU+l.header(), maxRun)
	l.rxLen = vnetLen + min(ifi.MTU, maxRun) + ether.HeaderLen + ether.TagLen
	l.rxPool, l.txPool, l.splitPool = ring.NewPool(l.rxLen), ring.NewPool(ring.BufLen), ring.NewPool(splitLen)
	if err := l.openSockets(); err != nil {
		return nil, err
	}
	for _, a := range cfg.Addrs {
		fd, err := hold(a, l.index)
		if err != nil {
			return nil, err
		}
		l.holders = append(l.holders, holder{addr: a, fd: fd})
		l.hops[a] = &hop{local: true}
	}
	if err := l.routes.open(0); err != nil {
		return nil, err
	}
	if err := l.listen(); err != nil {
		return nil, err
	}
	return l, nil
}

// header is the length of the Ethernet header that frames of this link have.
func (l *system) header() int {
	if l.cfg.tagged() {
		return ether.HeaderLen + ether.TagLen
	}
	return ether.HeaderLen
}

// openSockets makes the two raw sockets. The one that receives hears nothing
// before its filter is in force. The one that sends is apart: what it has queued
// is no matter of the other's buffer.
func (l *system) openSockets() error {
	const typ = unix.SOCK_RAW | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	fd, err := unix.Socket(unix.AF_PACKET, typ, 0)
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("a raw socket needs the capability CAP_NET_RAW, which this process does not have; run as root (sudo), or give it to the program "+
			"(setcap cap_net_raw+ep PROGRAM) or its container (--cap-add NET_RAW), or use the UDP link, which needs none but speaks RoCEv2 only: %w", err)
	}
	if err != nil {
		return fmt.Errorf("AF_PACKET socket: %w", err)
	}
	l.fd = fd
	if err := l.poll.Open(); err != nil {
		return err
	}
	l.polled = true
	if err := l.poll.Receive(fd); err != nil {
		return err
	}
	if l.out, err = unix.Socket(unix.AF_PACKET, typ, 0); err != nil {
		return fmt.Errorf("AF_PACKET socket: %w", err)
	}
	l.tx.init(l.out)
	if err := unix.SetsockoptInt(l.out, unix.SOL_PACKET, packetVnetHdr, 1); err == nil {
		l.notes = true
	} else {
		l.whole = true
	}
	prog := filter()
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}); err != nil {
		return fmt.Errorf("set SO_ATTACH_FILTER: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1); err != nil {
		return fmt.Errorf("set PACKET_AUXDATA: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, packetVnetHdr, 1); err != nil {
		return fmt.Errorf("set PACKET_VNET_HDR: %w", err)
	}
	// The filter drops what this host sends too; without this the kernel would
	// run it on that.
	_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, packetIgnoreOutgoing, 1)
	setBuffer(fd, unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, l.cfg.RecvBuffer)
	setBuffer(l.out, unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, l.cfg.SendBuffer)
	l.caps.RxBytes = holds(fd)
	l.caps.LineRate = lineRate(fd, l.cfg.Interface)
	// PAUSE and PFC frames go to a group address, which a NIC may filter.
	_ = l.hearMAC(ether.ControlAddr(), true)
	if err := unix.Bind(l.out, &unix.SockaddrLinklayer{Ifindex: l.index}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: l.index}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	return nil
}

func htons(v uint16) uint16 {
	var b [2]byte
	b[0], b[1] = byte(v>>8), byte(v)
	return *(*uint16)(unsafe.Pointer(&b))
}

// hold binds the port of an address with a filter that drops all.
func hold(a netip.Addr, index int) (fd int, err error) {
	family := unix.AF_INET
	if a.Is6() {
		family = unix.AF_INET6
	}
	fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("UDP socket: %w", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	// A socket that asks for merged packets takes a piece whole: else the kernel cuts
	// for it what the filter then drops. And where the interface's driver merges
	// (GRO), it now merges what comes for this port.
	if notesMerged() {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	}
	drop := [1]unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop[0]}); err != nil {
		return -1, fmt.Errorf("set SO_ATTACH_FILTER: %w", err)
	}
	if a.Is6() {
		// RNICs send UDP checksum 0; unasked, the kernel logs each such packet.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, udpNoCheck6RX, 1)
	}
	switch err := unix.Bind(fd, sockaddr(a, roce.Port, index)); {
	case errors.Is(err, unix.EADDRINUSE):
		return -1, fmt.Errorf("UDP port %d of %v is taken by another program, so there is another RNIC on this address; close it or use another address: %w", roce.Port, a, err)
	case err != nil:
		return -1, fmt.Errorf("bind UDP port %d of %v: %w", roce.Port, a, err)
	}
	return fd, nil
}

const udpNoCheck6RX = 102 // linux/udp.h UDP_NO_CHECK6_RX

func sockaddr(a netip.Addr, port, index int) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Port: port, Addr: a.As4()}
	}
	sa := &unix.SockaddrInet6{Port: port, Addr: a.As16()}
	if a.IsLinkLocalUnicast() {
		sa.ZoneId = uint32(index)
	}
	return sa
}

// Caps implements link.Link.
func (l *system) Caps() link.Caps { return l.caps }

// Counters implements link.Link.
func (l *system) Counters() link.Counters {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		// The kernel begins anew with each question.
		if s, err := unix.GetsockoptTpacketStats(l.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			l.cnt.RxDropped += uint64(s.Drops)
		}
	}
	c := l.cnt
	c.WaitCalls = l.poll.Calls()
	return c
}

// Event implements link.Link.
func (l *system) Event() (link.Event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) == 0 {
		return link.Event{}, false
	}
	e := l.events[0]
	l.events = append(l.events[:0], l.events[1:]...)
	return e, true
}

// Wait implements link.Link.
func (l *system) Wait(now, until clock.Time) error { return l.poll.Wait(now, until, &l.localLen) }

// Wake implements link.Link.
func (l *system) Wake() { l.poll.Wake() }

// Close implements link.Link.
func (l *system) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	for _, h := range l.holders {
		_ = unix.Close(h.fd)
		for _, fd := range h.more {
			_ = unix.Close(fd)
		}
	}
	l.holders = nil
	var err error
	if l.polled {
		err = l.poll.Close()
	}
	for _, fd := range []int{l.fd, l.out} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	l.mu.Unlock()
	l.routes.close()
	l.ears.close() // it takes the lock once more
	return err
}

var _ link.Link = (*system)(nil)
