package guest

import (
	"fmt"
	"net/netip"
)

const (
	maxGuests  = 9
	defaultMTU = 4200 // an RDMA path MTU of 4096 and all headers
)

// The addresses of the host side, on the bridge.
var (
	HostIP4 = netip.MustParseAddr("10.77.0.1")
	HostIP6 = netip.MustParseAddr("fd00:77::1")
)

// The names of the devices inside the namespace and inside a guest.
const (
	Bridge    = "vbr0"
	GuestDev  = "eth0"
	RxeDevice = "rxe0"
)

func guestIP4(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, byte(10 + i)}) }

func guestIP6(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("fd00:77::1%d", i)) }

func guestMAC(i int) string { return fmt.Sprintf("52:54:00:77:00:1%d", i) }

func tapName(i int) string { return fmt.Sprintf("vtap%d", i) }
