package verbs

import (
	"context"
	"net/netip"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
)

// DefaultPort is the UDP port of RoCEv2.
const DefaultPort = 4791

// Config says which device to open. Exactly one of Addr and Netdev is set,
// except that Link needs Addr.
type Config struct {
	// Addr is the address that the device sends from and receives at. An IPv6
	// link-local address needs its zone.
	Addr netip.Addr
	// Netdev opens the device on every usable address of this network interface.
	Netdev string
	// Name of the device; by default vrb_ and the name of the interface.
	Name string
	// Link replaces the UDP socket, for tests and for links of your own. The
	// device closes it.
	Link link.Link
	// Wrap puts middleware around the link, such as link/fault or link/pcap.
	Wrap func(link.Link) link.Link
	// Limits of the adapter; zero fields take the defaults.
	Limits Limits
	// RecvBuffer is the wanted receive buffer of the socket in bytes; 0 takes
	// the most that the system gives.
	RecvBuffer int
	// Port is the UDP port; 0 means [DefaultPort]. All devices that talk to each
	// other use the same one.
	Port uint16
}

// Limits are the most objects of each kind, and the largest sizes.
type Limits struct {
	MaxQP, MaxCQ, MaxMR, MaxPD, MaxAH int
	MaxQPWR                           int // work requests in a queue
	MaxCQE                            int // entries of a completion queue
	MaxSGE                            int // elements of a work request
	MaxInline                         int // bytes
	MaxRdAtomic                       int // READs and ATOMICs outstanding per QP
}

// Device is one software RNIC. All methods may be called from any goroutine.
type Device struct{}

// Attr describes a device.
type Attr struct {
	Name       string
	Netdev     string
	Addr       netip.Addr // as opened; invalid when opened by interface
	GUID       uint64
	Limits     Limits
	MaxMessage uint32 // bytes
}

// PortState is the state of a port, with libibverbs' numbers.
type PortState uint8

// The port states.
const (
	PortDown   PortState = 1
	PortActive PortState = 4
)

// PortAttr describes the device's port 1.
type PortAttr struct {
	State     PortState
	MaxMTU    ib.MTU
	ActiveMTU ib.MTU
	LinkLayer string // "Ethernet"
	GIDs      int    // rows of the GID table
	PKeys     int
	LinkMTU   int // MTU of the network interface in bytes
	SpeedMbps int // of the network interface; 0 if it does not tell
}

// GIDEntry is a row of the GID table.
type GIDEntry struct {
	Index    int
	GID      ib.GID
	Type     ib.GIDType
	Addr     netip.Addr // with its zone when link-local
	Netdev   string
	IfIndex  int
	Unusable string // empty when usable, else why not
}

// Stats counts what the device did.
type Stats struct{}

// Open makes a software RNIC. It starts the driver's goroutine, which Close
// waits for.
func Open(cfg Config) (*Device, error) { return nil, errorf(ErrNoDevice, "not yet") }

// Name returns the name of the device.
func (d *Device) Name() string { return "" }

// Attr returns the attributes of the device.
func (d *Device) Attr() Attr { return Attr{} }

// Port returns the attributes of port 1.
func (d *Device) Port() PortAttr { return PortAttr{} }

// GIDs returns the GID table, unusable rows included.
func (d *Device) GIDs() []GIDEntry { return nil }

// SelectGID returns the row of the GID table from which peer is reached best.
func (d *Device) SelectGID(peer netip.Addr) (int, error) { return 0, nil }

// Stats returns a snapshot of the counters.
func (d *Device) Stats() Stats { return Stats{} }

// Progress drives the device for one bounded slice.
func (d *Device) Progress() bool { return false }

// NextEvent waits for the next asynchronous event.
func (d *Device) NextEvent(ctx context.Context) (ib.Event, error) { return ib.Event{}, nil }

// AllocPD makes a protection domain.
func (d *Device) AllocPD() *PD { return nil }

// CreateCQ makes a completion queue.
func (d *Device) CreateCQ(cfg CQConfig) (*CQ, error) { return nil, nil }

// CreateCompChannel makes a completion channel.
func (d *Device) CreateCompChannel() *CompChannel { return nil }

// Close closes everything that was made of the device, and the device.
func (d *Device) Close() error { return nil }

// DeviceInfo is a device that Open could make.
type DeviceInfo struct {
	Name   string // vrb_<netdev>
	Netdev string
	Addrs  []netip.Addr
	MTU    int    // of the interface, bytes
	Up     bool   // administratively and with carrier
	Why    string // why it cannot be opened; empty if it can
}

// ListDevices returns a device for each network interface, those that can be
// opened first.
func ListDevices() ([]DeviceInfo, error) { return nil, nil }
