package mad

import "fmt"

// ServiceID names what a REQ or SIDR REQ wants to reach.
type ServiceID uint64

// Space is a port space of IP-based connection management (IBA annex A11.2):
// an IP protocol number.
type Space uint8

// The port spaces.
const (
	SpaceTCP Space = 6  // connections
	SpaceUDP Space = 17 // datagrams
)

func (s Space) String() string {
	switch s {
	case SpaceTCP:
		return "tcp"
	case SpaceUDP:
		return "udp"
	}
	return fmt.Sprintf("protocol %d", uint8(s))
}

// ipPrefix is what the service IDs of IP port spaces begin with: 00 00 00 00 01.
const ipPrefix ServiceID = 1 << 24

// Service returns the service ID of a port (IBA annex A11.2): the prefix, the
// protocol number, the port.
func Service(s Space, port uint16) ServiceID {
	return ipPrefix | ServiceID(s)<<16 | ServiceID(port)
}

// Port takes a service ID apart; ok is false if it is of no IP port space.
func (id ServiceID) Port() (s Space, port uint16, ok bool) {
	return Space(id >> 16), uint16(id), id>>24 == 1
}

func (id ServiceID) String() string {
	if s, port, ok := id.Port(); ok {
		return fmt.Sprintf("%v port %d", s, port)
	}
	return fmt.Sprintf("service ID 0x%016x", uint64(id))
}
