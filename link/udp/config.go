package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/verbena-rdma/verbena/link"
)

// Port is RoCEv2's UDP port (IBA vol.1 annex A17.2).
const Port = 4791

// The first and the last source port that a queue pair may use: the range
// that Linux and RNICs use.
const (
	firstSrcPort = 0xC000
	lastSrcPort  = 0xFFFF
)

const (
	// maxReserved bounds the runs that may be reserved at a time.
	maxReserved = 64
	// maxEvents bounds the events that wait to be asked for.
	maxEvents = 64
	// maxOut is how many source ports one address can have.
	maxOut = 16
	// portTries is how many ports from the wanted one on are tried.
	portTries = 32
)

// defaultBuffer is what is asked for as socket buffer.
const defaultBuffer = 4 << 20

// Config says what Open opens. Only Addrs must be set.
type Config struct {
	// Addrs are the local addresses, each concrete. An IPv6 link-local address
	// needs its zone, or Interface.
	Addrs []netip.Addr
	// Port is where packets arrive and go to; 0 is 4791. Anything else is for
	// tests: no other implementation listens there.
	Port uint16
	// RecvBuffer and SendBuffer are what is asked of SO_RCVBUF and SO_SNDBUF, in
	// bytes before the kernel doubles them; 0 is 4 MiB, of which the kernel
	// grants what its administrator allows.
	RecvBuffer int
	SendBuffer int
	// Interface is the index of the interface of link-local addresses without
	// zone.
	Interface int
	// Steering says by what the kernel chooses among shards.
	Steering Steering
	// NoOffload asks for one packet a call, for comparison.
	NoOffload bool
	// Portable asks for the implementation on net.UDPConn.
	Portable bool
}

// Steering is by what the kernel chooses the link of a packet among shards. All
// but the first are for experiments: they do as the receive-side scaling of a
// network card does, and what comes to the wrong shard is handed over.
type Steering uint8

// The ways to choose.
const (
	SteerQPN       Steering = iota // by the destination QPN: none is handed over
	SteerPorts                     // by a hash of addresses and UDP ports
	SteerAddresses                 // by a hash of addresses alone
)

func (s Steering) String() string {
	switch s {
	case SteerQPN:
		return "qpn"
	case SteerPorts:
		return "ports"
	case SteerAddresses:
		return "addresses"
	}
	return fmt.Sprintf("steering %d", uint8(s))
}

// Open opens a link on every address of cfg, or none.
//
// Errors match with errors.Is the errno of the system: EADDRINUSE, then they
// say who has the port where that can be seen, and EADDRNOTAVAIL, then they
// list the addresses that there are.
func Open(cfg Config) (link.Link, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	if cfg.Portable {
		return openPortable(cfg)
	}
	return openSystem(cfg)
}

// MaxShards is the most links that OpenShards opens.
const MaxShards = 64

// OpenShards opens n links that have the addresses and the port together: a
// packet for queue pair q comes to link q mod n, those for QP 0 and QP 1 to the
// first. What arrives at another one is handed over and counted
// ([link.Counters].RxMisdirected). Source ports belong to all of them. Each is
// closed by itself. The errors are those of Open, and match
// [errors.ErrUnsupported] where the system cannot steer, which Linux can.
//
// The kernel lets no other process of another user join, nor one that does not
// ask for SO_REUSEPORT.
func OpenShards(cfg Config, n int) ([]link.Link, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	if n < 1 || n > MaxShards {
		return nil, fmt.Errorf("open UDP links: %d shards, can be 1 to %d", n, MaxShards)
	}
	if cfg.Steering > SteerAddresses {
		return nil, fmt.Errorf("open UDP links: %v is not defined", cfg.Steering)
	}
	if cfg.Portable && n > 1 {
		return nil, fmt.Errorf("open UDP links: %d shards: the portable link has one: %w", n, errors.ErrUnsupported)
	}
	if n == 1 {
		l, err := Open(cfg)
		return []link.Link{l}, err
	}
	return openShards(&cfg, n)
}

// fill sets defaults and refuses what cannot be.
func (c *Config) fill() error {
	cfg := *c
	if cfg.Port == 0 {
		cfg.Port = Port
	}
	if cfg.RecvBuffer <= 0 {
		cfg.RecvBuffer = defaultBuffer
	}
	if cfg.SendBuffer <= 0 {
		cfg.SendBuffer = defaultBuffer
	}
	addrs := make([]netip.Addr, len(cfg.Addrs))
	for i, a := range cfg.Addrs {
		a = a.Unmap()
		switch {
		case !a.IsValid() || a.IsUnspecified() || a.IsMulticast():
			return fmt.Errorf("open UDP link: address %v: not the address of one interface", a)
		case contains(addrs[:i], a):
			return fmt.Errorf("open UDP link: address %v: named twice", a)
		case a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "" && cfg.Interface == 0:
			return fmt.Errorf("open UDP link: address %v: link-local, but neither zone nor interface given", a)
		}
		addrs[i] = a
	}
	if len(addrs) == 0 {
		return errors.New("open UDP link: no address given")
	}
	cfg.Addrs = addrs
	*c = cfg
	return nil
}

func contains(addrs []netip.Addr, a netip.Addr) bool {
	for _, b := range addrs {
		if b.WithZone("") == a.WithZone("") {
			return true
		}
	}
	return false
}

// zoneOf returns the interface index that a link-local address belongs to, 0
// for others.
func (c *Config) zoneOf(a netip.Addr) (int, error) {
	if !a.Is6() || !a.IsLinkLocalUnicast() {
		return 0, nil
	}
	if a.Zone() == "" {
		return c.Interface, nil
	}
	ifi, err := net.InterfaceByName(a.Zone())
	if err != nil {
		var index int
		if _, e := fmt.Sscanf(a.Zone(), "%d", &index); e == nil {
			return index, nil
		}
		return 0, fmt.Errorf("zone of %v: %w", a, err)
	}
	return ifi.Index, nil
}

// interfaceOf returns the index of the interface that has the address, 0 if it
// is not to be found.
func interfaceOf(a netip.Addr) int {
	ifs, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for _, ifi := range ifs {
		as, err := ifi.Addrs()
		if err != nil {
			continue
		}
		for _, x := range as {
			if n, ok := x.(*net.IPNet); ok {
				if ip, _ := netip.AddrFromSlice(n.IP); ip.Unmap() == a.WithZone("") {
					return ifi.Index
				}
			}
		}
	}
	return 0
}

// headers returns the bytes of IP and UDP headers around a frame.
func headers(a netip.Addr) int {
	if a.Is4() {
		return 20 + 8
	}
	return 40 + 8
}

// maxFrame is the longest UDP payload over IPv4.
const maxFrame = 65535 - 20 - 8

// interfaceMTU returns the IP MTU of the interface that a belongs to, and
// 1,500 if none admits to it.
func interfaceMTU(a netip.Addr) int {
	const guess = 1500
	ifs, err := net.Interfaces()
	if err != nil {
		return guess
	}
	for _, ifi := range ifs {
		as, err := ifi.Addrs()
		if err != nil {
			continue
		}
		for _, x := range as {
			n, ok := x.(*net.IPNet)
			if !ok {
				continue
			}
			ip, _ := netip.AddrFromSlice(n.IP)
			// Every address of the loopback's network is local, listed or not.
			if ip.Unmap() == a.WithZone("") || ifi.Flags&net.FlagLoopback != 0 && n.Contains(a.AsSlice()) {
				return ifi.MTU
			}
		}
	}
	return guess
}

// notAvailable explains that the host does not have the address a.
func notAvailable(a netip.Addr, err error) error {
	var have []string
	if as, e := net.InterfaceAddrs(); e == nil {
		for _, x := range as {
			if n, ok := x.(*net.IPNet); ok {
				have = append(have, n.IP.String())
			}
		}
	}
	return fmt.Errorf("open UDP link on %v: not an address of this host, which has %s: %w", a, strings.Join(have, ", "), err)
}
