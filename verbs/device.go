package verbs

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/diag/control"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/driver"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/udp"
	"github.com/verbena-rdma/verbena/rnic"
	"github.com/verbena-rdma/verbena/verbs/faultplan"
)

// DefaultPort is the UDP port of RoCEv2.
const DefaultPort = udp.Port

// Config says which device to open. Exactly one of Addr and Netdev is set.
type Config struct {
	// Addr is the address that the device sends from and receives at. An IPv6
	// link-local address needs its zone. With Link it may be any address.
	Addr netip.Addr
	// Netdev opens the device on every usable address of a network interface.
	Netdev string
	// Name of the device; by default vrb_ and the name of the interface.
	Name string
	// Link replaces the UDP sockets, for tests and for links of your own. Once
	// Open has succeeded, the device closes it.
	Link link.Link
	// Ethernet opens the device on an AF_PACKET socket of the interface instead of
	// UDP sockets: whole Ethernet frames, and with them RoCEv1 GIDs beside RoCEv2
	// ones, VLAN tags, PAUSE and PFC. Linux only; it needs CAP_NET_RAW.
	Ethernet bool
	// VLAN is the VLAN of an Ethernet device, 1 to 4094, 0 for none. PriorityTag
	// has a tag on every frame without one, too: the service level is its priority.
	VLAN        uint16
	PriorityTag bool
	// Wrap puts middleware around the link, such as link/fault or link/pcap.
	Wrap func(link.Link) link.Link
	// Faults is what is to go wrong: see [faultplan]. nil: what the file says that
	// the environment variable VERBENA_FAULTS names, or nothing. It is only read.
	Faults *faultplan.Plan
	// FaultReport gets, when the device closes, what the plan did; may be nil. See
	// also [Device.Faults].
	FaultReport io.Writer
	// Limits of the adapter; zero fields take the defaults.
	Limits Limits
	// RecvBuffer is the receive buffer to ask for in bytes; 0 asks for the
	// link's default. The system may grant less.
	RecvBuffer int
	// PKeys is the partition table; nil for the default key alone. A queue pair
	// belongs to the partition of one row ([ib.QPAttr].PKeyIndex) and hears those
	// of the same key, unless both are limited members.
	PKeys []ib.PKey
	// MWType2A makes memory windows of type 2 those of type 2A; else they are of
	// type 2B.
	MWType2A bool
	// DCQCN is the congestion control of the device's queue pairs; the zero value is
	// off. Also see [Device.SetDCQCN] and [QP.SetDCQCN].
	DCQCN DCQCN
	// Shards is how many engines the device has, 1 to MaxShards; 0 means 1. Each
	// has a socket, a goroutine and a lock, so that several processors can work for
	// the device at the same time: see [CQConfig].Vector. Linux only, and with UDP
	// sockets only. Wrap is called for the link of each.
	Shards int
	// Steering is by what the system chooses among the sockets of shards: the zero
	// value is the right one, others are for experiments.
	Steering Steering
	// Control is the socket at which other programs of the same user see the device:
	// see package diag/control.
	Control Control
	// Port is the UDP port; 0 means DefaultPort. Devices that talk to each other
	// use the same one, and no other implementation uses another.
	Port uint16
}

// Limits are the most objects of each kind, and the largest of each size; the
// fields are in [rnic.Limits].
type Limits = rnic.Limits

// Stats are the counters of a device, in a fixed order under stable names: those
// of Linux' rxe first (sent_pkts, duplicate_request, …), then ours, then a
// drop_… for each reason. Get(name) returns one, 0 for a name that is none; see
// [rnic.Stats].
type Stats = rnic.Stats

// Device is one software RNIC. All methods may be called from any goroutine.
type Device struct {
	name    string
	netdev  string
	addr    netip.Addr
	port    uint16
	gids    []GIDEntry
	shards  []*shard
	adapter *rnic.Adapter  // of shard 0
	drv     *driver.Driver // of shard 0
	clock   clock.Real
	turn    atomic.Uint32 // which shard is next to get something
	regions regions
	control *control.Server // nil for none
	ifs     *ifSocket       // asks for the state of netdev; may be nil
	cmIDs   atomic.Pointer[func() []snapshot.CMID]
	mrNum   atomic.Uint32
	dcqcn   DCQCN   // of queue pairs without their own; under the driver's lock
	faults  *faults // nil: no plan

	eventMu    sync.Mutex
	linkEvents []ib.Event
	eventReady chan struct{} // capacity 1
	firsts     firsts        // queue pairs whose first message the connection manager waits for

	gone   chan struct{} // closed with the device
	closed atomic.Bool
	mu     sync.Mutex
	ended  bool // Close has gone through the children
	kids   map[child]struct{}
	made   [kinds]uint64 // kids by kind
}

// child is what was made of a device and ends with it.
type child interface{ kill() }

// Open makes a software RNIC: the sockets, and two goroutines that Close waits
// for, one of which only answers at the control socket ([Config].Control). It needs
// no privileges.
//
// The error matches ErrNoDevice if there is no such interface or nothing can be
// sent from it, syscall.EADDRNOTAVAIL if the host does not have the address,
// syscall.EADDRINUSE if another program has its UDP port (and says which, where
// that can be seen), ErrInvalid if the configuration contradicts itself.
func Open(cfg Config) (*Device, error) {
	at, err := resolve(&cfg)
	if err != nil {
		return nil, fmt.Errorf("open device: %w", err)
	}
	f, err := openFaults(&cfg, at)
	if err != nil {
		return nil, fmt.Errorf("open device %s: %w", at.name, err)
	}
	shards, err := openLinks(&cfg, at)
	if err != nil {
		return nil, fmt.Errorf("open device %s: %w", at.name, err)
	}
	for _, s := range shards {
		inner := s.link
		if s.link, err = f.wrap(inner); err != nil {
			s.link = inner
			break
		}
	}
	var d *Device
	if err == nil {
		d, err = newDevice(&cfg, at, shards)
	}
	if err != nil {
		for _, s := range shards {
			if cfg.Link == nil {
				err = errors.Join(err, s.link.Close())
			}
		}
		return nil, fmt.Errorf("open device %s: %w", at.name, err)
	}
	d.faults = f
	if d.netdev != "" {
		d.ifs = openIfSocket()
	}
	f.begin(d)
	d.offer(&cfg)
	return d, nil
}

// place is what a configuration names: an interface and addresses.
type place struct {
	name   string
	netdev string
	addrs  []ifAddr
}

func resolve(cfg *Config) (place, error) {
	if err := cfg.checkEthernet(); err != nil {
		return place{}, err
	}
	if err := cfg.checkShards(); err != nil {
		return place{}, err
	}
	switch {
	case cfg.Addr.IsValid() && cfg.Netdev != "":
		return place{}, errorf(ErrInvalid, "both Addr (%v) and Netdev (%s) are set; one is enough", cfg.Addr, cfg.Netdev)
	case !cfg.Addr.IsValid() && cfg.Netdev == "":
		return place{}, errorf(ErrInvalid, "neither Addr nor Netdev is set")
	case cfg.Addr.IsValid() && (cfg.Addr.IsUnspecified() || cfg.Addr.IsMulticast()):
		return place{}, errorf(ErrInvalid, "Addr is %v, must be the address of one interface", cfg.Addr)
	}
	at := place{name: cfg.Name}
	if cfg.Link != nil {
		if !cfg.Addr.IsValid() {
			return place{}, errorf(ErrInvalid, "a Link needs Addr, not Netdev")
		}
		if at.name == "" {
			at.name = "vrb_link"
		}
		at.addrs = []ifAddr{{addr: cfg.Addr.Unmap()}}
		return at, nil
	}
	ifs, err := netifs()
	if err != nil {
		return place{}, err
	}
	if cfg.Netdev != "" {
		return resolveNetdev(at, ifs, strings.TrimPrefix(cfg.Netdev, deviceName("")))
	}
	n, a, ok := owner(ifs, cfg.Addr)
	if !ok {
		// The link says it better: it lists the addresses that there are.
		at.addrs = []ifAddr{{addr: cfg.Addr.Unmap()}}
		if at.name == "" {
			at.name = cfg.Addr.String()
		}
		return at, nil
	}
	if a.unusable != "" {
		return place{}, errorf(ErrNoDevice, "address %v of %s: %s", a.addr, n.name, a.unusable)
	}
	at.netdev, at.addrs = n.name, []ifAddr{a}
	if at.name == "" {
		at.name = deviceName(n.name)
	}
	return at, nil
}

func resolveNetdev(at place, ifs []netif, name string) (place, error) {
	var names []string
	for i := range ifs {
		n := &ifs[i]
		if n.name != name {
			names = append(names, n.name)
			continue
		}
		if info := listDevices(ifs[i : i+1])[0]; info.Why != "" {
			return place{}, errorf(ErrNoDevice, "network interface %s: %s", name, info.Why)
		}
		at.netdev, at.addrs = n.name, n.addrs
		if at.name == "" {
			at.name = deviceName(n.name)
		}
		return at, nil
	}
	return place{}, errorf(ErrNoDevice, "network interface %q: there is none of that name; there are %s", name, strings.Join(names, ", "))
}

// openLinks returns the links as the shards of the device use them, and what
// joins groups beneath, if anything does.
func openLinks(cfg *Config, at place) (shards []*shard, err error) {
	links := []link.Link{cfg.Link}
	switch {
	case cfg.Ethernet:
		links[0], err = openEthernet(cfg, at)
	case cfg.Link == nil:
		uc := udp.Config{Port: cfg.Port, RecvBuffer: cfg.RecvBuffer, Steering: cfg.Steering}
		for _, a := range at.addrs {
			if a.unusable == "" {
				uc.Addrs = append(uc.Addrs, a.addr)
			}
		}
		links, err = udp.OpenShards(uc, max(cfg.Shards, 1))
	}
	if err != nil {
		return nil, err
	}
	for i, l := range links {
		s := &shard{index: i, link: l}
		s.groups, _ = l.(link.Grouper)
		if cfg.Wrap != nil {
			s.link = cfg.Wrap(l)
		}
		shards = append(shards, s)
	}
	return shards, nil
}

func newDevice(cfg *Config, at place, shards []*shard) (*Device, error) {
	d := &Device{
		name: at.name, netdev: at.netdev, addr: cfg.Addr, port: cmp.Or(cfg.Port, DefaultPort),
		gids:   gidTable(at.addrs, shards[0].link.Caps().Encap),
		shards: shards, clock: clock.NewReal(),
		eventReady: make(chan struct{}, 1),
		gone:       make(chan struct{}),
		kids:       make(map[child]struct{}),
	}
	set, dcqcn, err := cfg.DCQCN.resolve(shards[0].link.Caps().LineRate, at.netdev)
	if err != nil {
		return nil, err
	}
	d.dcqcn = dcqcn
	for i, s := range shards {
		caps, l, groups := s.link.Caps(), s.link, s.groups
		rc := rnic.Config{
			Name: at.name, GUID: guid(at.addrs[0]), GIDs: adapterGIDs(d.gids), PKeys: cfg.PKeys, Limits: cfg.Limits, Rand: random32, MWType2A: cfg.MWType2A, CountQPs: true,
			Wire: rnic.WireCaps{
				Encap: caps.Encap, MTU: caps.MTU, Segments: caps.Segments, RunBytes: caps.RunBytes,
				RxBytes: caps.RxBytes, Idents: caps.Idents, Tagged: caps.Tagged, VLAN: caps.VLAN, Loops: groups != nil,
			},
			LineRate: caps.LineRate,
			Path: func(src, dst netip.Addr, wanted uint16) (uint16, int, error) {
				p, err := l.Path(src, dst, wanted)
				return p.SrcPort, p.MTU, err
			},
			Join:    joiner(cfg, groups),
			Leave:   func(local, group netip.Addr) { _ = groups.Leave(local, group) },
			NewLock: newLock,
			Wake:    func() { s.drv.Wake() },
		}
		if i == 0 {
			s.adapter, err = rnic.New(rc)
		} else {
			s.adapter, err = shards[0].adapter.NewShard(&rc)
		}
		if err != nil {
			return nil, err
		}
		if err := s.adapter.SetDCQCN(0, set); err != nil {
			return nil, err
		}
		s.adapter.OnEvent(d.onEvent)
	}
	for _, s := range shards {
		s.drv = driver.New(driver.Config{Adapter: s.adapter, Link: s.link, Clock: d.clock, OnLink: d.onLink, OnBroken: d.onBroken})
	}
	d.adapter, d.drv = shards[0].adapter, shards[0].drv
	return d, nil
}

// joiner returns how the adapter joins multicast groups: by the link; not at all
// over a link of the caller's own that has no say in it, which carries what it
// is given.
func joiner(cfg *Config, groups link.Grouper) func(local, group netip.Addr) error {
	switch {
	case groups != nil:
		return groups.Join
	case cfg.Link != nil:
		return nil
	}
	return func(netip.Addr, netip.Addr) error {
		return errorf(ErrUnsupported, "the UDP sockets of this system join no groups")
	}
}

// random32 returns an unguessable number.
func random32() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint32(b[:])
}

// guid returns the node GUID: of the interface's MAC address where it has one,
// else of the address, in the locally administered range.
func guid(a ifAddr) uint64 {
	if len(a.mac) == 6 {
		id := eui64(a.mac)
		return binary.BigEndian.Uint64(id[:])
	}
	h := fnv.New64a()
	b := a.addr.As16()
	_, _ = h.Write(b[:])
	return 0x02<<56 | h.Sum64()&(1<<56-1)
}

// String returns the name and, where the device has one address, that: several
// devices of one interface have the same name.
func (d *Device) String() string {
	if d.addr.IsValid() {
		return d.name + " (" + d.addr.String() + ")"
	}
	return d.name
}

// Name returns the name of the device.
func (d *Device) Name() string { return d.name }

// Attr describes a device.
type Attr struct {
	Name       string
	Netdev     string     // empty with a Link of one's own
	Addr       netip.Addr // as opened; invalid when opened by interface
	GUID       uint64
	Limits     Limits
	MaxMessage uint32 // bytes, RC and UC
	Ports      int    // 1
	// CompVectors is the number of completion vectors: one for each shard.
	CompVectors int
}

// Attr returns the attributes of the device.
func (d *Device) Attr() Attr {
	return Attr{
		Name: d.name, Netdev: d.netdev, Addr: d.addr, GUID: d.adapter.GUID(),
		Limits: d.adapter.Limits(), MaxMessage: ib.MaxMessage, Ports: 1, CompVectors: len(d.shards),
	}
}

// PortState is the state of a port, with libibverbs' numbers.
type PortState uint8

// The port states.
const (
	PortDown   PortState = 1
	PortActive PortState = 4
)

func (s PortState) String() string {
	switch s {
	case PortDown:
		return "PORT_DOWN"
	case PortActive:
		return "PORT_ACTIVE"
	}
	return fmt.Sprintf("port state %d", uint8(s))
}

// PortAttr describes port 1, the only one.
type PortAttr struct {
	State     PortState
	MaxMTU    ib.MTU
	ActiveMTU ib.MTU // the largest path MTU that the interface carries
	LinkLayer string // "Ethernet"
	GIDs      int    // rows of the GID table
	PKeys     int    // rows of the partition table
	LinkMTU   int    // of the network interface, bytes; 0 if unknown
	SpeedMbps int    // of the network interface; 0 if it does not tell
}

// Port returns the attributes of port 1 as they are now.
func (d *Device) Port() PortAttr {
	p := PortAttr{
		State: PortActive, MaxMTU: ib.MTU4096, ActiveMTU: d.adapter.MTU(), LinkLayer: "Ethernet",
		GIDs: len(d.gids), PKeys: len(d.adapter.PKeys()),
	}
	if d.netdev != "" {
		l, _ := d.ifs.linkOf(d.netdev)
		p.SpeedMbps, p.LinkMTU, p.State = l.speedMbps, l.mtu, PortDown
		if l.running {
			p.State = PortActive
		}
	}
	if d.closed.Load() {
		p.State = PortDown
	}
	return p
}

// PKeys returns the partition table; the index is the position.
func (d *Device) PKeys() []ib.PKey { return append([]ib.PKey(nil), d.adapter.PKeys()...) }

// GIDs returns the GID table, unusable rows included; the index is the
// position.
func (d *Device) GIDs() []GIDEntry { return append([]GIDEntry(nil), d.gids...) }

// Stats returns a snapshot of the adapter's counters, those of all shards
// together; nil after Close.
func (d *Device) Stats() (sum Stats) {
	var room Stats
	for _, s := range d.shards {
		_ = s.drv.Do(func(clock.Time) { sum, room = s.addStats(sum, room) })
	}
	return sum
}

// LinkCounters returns what the link lost or had to do otherwise.
func (d *Device) LinkCounters() (sum link.Counters) {
	for _, s := range d.shards {
		sum.Add(s.link.Counters())
	}
	return sum
}

// Progress drives the device for one bounded slice, unless somebody else does,
// and reports whether anything moved. It is for programs that poll memory
// instead of a completion queue. It never blocks and does not allocate.
func (d *Device) Progress() bool {
	moved := false
	for _, s := range d.shards {
		if s.drv.Poll() {
			moved = true
		}
	}
	return moved
}

// Close closes all that was made of the device and then the device: waits
// return, later calls match ErrClosed, no memory is touched any more. It waits
// for the device's goroutine. A second Close does nothing.
func (d *Device) Close() error {
	if d.closed.Swap(true) {
		<-d.gone
		return nil
	}
	d.control.Close()
	d.ifs.close()
	var err error
	for _, s := range d.shards {
		if e := s.drv.Close(); err == nil {
			err = e
		}
	}
	d.faults.end()
	d.mu.Lock()
	d.ended = true
	kids := d.kids
	d.kids = nil
	d.made = [kinds]uint64{}
	d.mu.Unlock()
	for k := range kids {
		k.kill()
	}
	close(d.gone)
	if err != nil {
		return fmt.Errorf("close device %s: %w", d.name, err)
	}
	return nil
}

// do runs a control call under the locks of all drivers.
func (d *Device) do(what string, f func(now clock.Time) error) error {
	var err error
	if d.all(func(now clock.Time) { err = f(now) }) != nil {
		return errorf(ErrClosed, "%s: device %s is closed", what, d.name)
	}
	return err
}

// adopt notes that k ends with the device. If the device has ended already, so
// has k, and adopt returns false.
func (d *Device) adopt(k child) bool {
	d.mu.Lock()
	ended := d.ended
	if !ended {
		d.kids[k] = struct{}{}
		d.made[childKind(k)]++
	}
	d.mu.Unlock()
	if ended {
		k.kill()
	}
	return !ended
}

func (d *Device) disown(k child) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ours := d.kids[k]; ours {
		delete(d.kids, k)
		d.made[childKind(k)]--
	}
}

// release closes k by f. did reports that this call has closed it: k was open,
// f succeeded and dead is now set. After the device it does nothing.
func (d *Device) release(k child, dead *atomic.Bool, f func(now clock.Time) error) (did bool, err error) {
	_ = d.all(func(now clock.Time) {
		if dead.Load() {
			return
		}
		if err = f(now); err == nil {
			did = true
			dead.Store(true)
		}
	})
	if did {
		d.disown(k)
	}
	return did, err
}
