package packet

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/verbena-rdma/verbena/link"
)

// maxVLAN is the highest VLAN (802.1Q reserves 4095).
const maxVLAN = 4094

const (
	// maxReserved bounds the runs that may be reserved at a time.
	maxReserved = 64
	// maxEvents bounds the events that wait to be asked for.
	maxEvents = 64
	// localDepth bounds the runs on their way from this link to itself.
	localDepth = 128
	// defaultBuffer is what is asked for as socket buffer.
	defaultBuffer = 4 << 20
	// maxRun is the most bytes of a run.
	maxRun = 65507
)

// Config says what Open opens. Interface and Addrs must be set.
type Config struct {
	// Interface is the name of the network interface.
	Interface string
	// Addrs are the addresses that the link sends from and hears; the interface
	// has them. A zone is ignored: it is the interface.
	Addrs []netip.Addr
	// VLAN is the VLAN of everything sent and heard, 1 to 4094; 0 for none.
	VLAN uint16
	// Tag sends a tag without VLAN too: it carries the priority alone (802.1Q
	// priority-tagged).
	Tag bool
	// RecvBuffer and SendBuffer are what is asked of SO_RCVBUF and SO_SNDBUF, in
	// bytes before the kernel doubles them; 0 is 4 MiB.
	RecvBuffer int
	SendBuffer int
}

// Open opens a link. It needs CAP_NET_RAW.
//
// Errors match with errors.Is the errno of the system: EPERM without the
// capability, then they say what to do; EADDRINUSE if somebody has UDP port
// 4791 of an address; EADDRNOTAVAIL if the host does not have one. Where there
// is no AF_PACKET they match errors.ErrUnsupported.
func Open(cfg Config) (link.Link, error) {
	if cfg.Interface == "" {
		return nil, errors.New("open packet link: no interface given")
	}
	if cfg.VLAN > maxVLAN {
		return nil, fmt.Errorf("open packet link on %s: VLAN %d, can be 1 to %d, or 0 for none", cfg.Interface, cfg.VLAN, maxVLAN)
	}
	if len(cfg.Addrs) == 0 {
		return nil, fmt.Errorf("open packet link on %s: no address given", cfg.Interface)
	}
	addrs := make([]netip.Addr, 0, len(cfg.Addrs))
	for _, a := range cfg.Addrs {
		a = a.Unmap().WithZone("")
		if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() {
			return nil, fmt.Errorf("open packet link on %s: address %v: not the address of one interface", cfg.Interface, a)
		}
		for _, b := range addrs {
			if a == b {
				return nil, fmt.Errorf("open packet link on %s: address %v: named twice", cfg.Interface, a)
			}
		}
		addrs = append(addrs, a)
	}
	cfg.Addrs = addrs
	if cfg.RecvBuffer <= 0 {
		cfg.RecvBuffer = defaultBuffer
	}
	if cfg.SendBuffer <= 0 {
		cfg.SendBuffer = defaultBuffer
	}
	return openSystem(cfg)
}

func (c *Config) tagged() bool { return c.Tag || c.VLAN != 0 }
