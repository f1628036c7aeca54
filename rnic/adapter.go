package rnic

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/transport/dcqcn"
)

// WireCaps is what the link beneath can do; the fields mean what they mean in
// the link's own capabilities.
type WireCaps struct {
	Encap    frame.Encap
	MTU      int  // largest frame; for UDPPayload from BTH to ICRC
	Segments int  // most segments of a run; 0 means 1
	RunBytes int  // most bytes of a run; 0 means MTU
	RxBytes  int  // what the receiving end holds before it drops; 0 if it never does
	Idents   bool // segment i leaves with IPv4 Identification i
	Loops    bool // what is sent to a multicast group with members here comes back
	// Phantom links carry the headers of a packet, and the length of a payload
	// that is in phantom memory: see [frame.Run]. They have no ICRC, and runs are
	// one packet.
	Phantom bool
	// Tagged frames of an Ethernet link carry an 802.1Q tag with the priority, of
	// VLAN, or of none if that is 0. A VLAN implies Tagged.
	Tagged bool
	VLAN   uint16
}

// GIDEntry is a row of the GID table.
type GIDEntry struct {
	GID      ib.GID
	Type     ib.GIDType
	Netdev   string
	IfIndex  int
	Unusable string // why the row cannot be used; "" if it can
}

// Config is what an adapter is made from.
type Config struct {
	Name   string
	GUID   uint64
	GIDs   []GIDEntry // row = index; copied
	PKeys  []ib.PKey  // partition table; row = index; nil for the default key alone; copied
	Wire   WireCaps
	Limits Limits
	// Rand supplies keys and the first QPN: unguessable for real adapters,
	// seeded for simulated ones.
	Rand func() uint32
	// SrcPort is the UDP source port of everything sent; 0 makes it a function
	// of the sending QPN in 0xC000–0xFFFF.
	SrcPort uint16
	// Path asks the link for the way between two addresses when a queue pair or
	// address handle is given its path: the source port to use, the wanted one
	// where it was free, and the largest frame that the route carries (0: not
	// known), or an error that says why there is no way. nil: every way exists.
	// On links that carry whole frames it is asked for port 0 for RoCEv1, which
	// has none and crosses no router. It is called by the owner.
	Path func(src, dst netip.Addr, wanted uint16) (port uint16, mtu int, err error)
	// MixQPNs lets one run carry packets for several queue pairs of the
	// destination: for peers that are known to have one socket.
	MixQPNs bool
	// NoLossWindow leaves out the loss-driven limit of what is in flight.
	NoLossWindow bool
	// Payload is how many payload bytes a full packet of a connected queue pair
	// has, up to the path MTU; 0 for the path MTU. Both ends must agree.
	Payload int
	// Pacing is how queue pairs with a rate are held to it.
	Pacing Pacing
	// DCQCN turns congestion control on (SIGCOMM'15 DCQCN): marked packets are
	// answered with CNPs, and queue pairs that get some slow down. nil is off.
	// It is borrowed for the adapter's life.
	DCQCN *dcqcn.Params
	// LineRate is that of the port in bits a second: where a queue pair that
	// nobody has notified is, and what pause quanta last by. DCQCN needs it; quanta
	// take 10 Gb/s for 0.
	LineRate uint64
	// CNPPrio and CNPTOS are the priority and the IPv4 TOS or IPv6 traffic class
	// of CNPs: see the parameters' own, which the adapter does not look at.
	CNPPrio, CNPTOS uint8
	// ECT makes data packets ECN-capable with DCQCN off, too. With it on they are:
	// ECT(0), whatever the traffic class says.
	ECT bool
	// AckEvery is how many packets of a reliable connection go at most without
	// asking for an acknowledgement; 0 for the engine's choice, 1 for each.
	AckEvery int
	// Join asks the link for what is sent to a multicast group, at a local
	// address; Leave takes that back. nil: it comes unasked. They are called by the
	// owner.
	Join  func(local, group netip.Addr) error
	Leave func(local, group netip.Addr)
	// MWType2A makes the memory windows of type 2 those of type 2A; else they are
	// of type 2B, as rxe's.
	MWType2A bool
	// CountQPs keeps counters for each queue pair: see [Adapter.ReadQPCounters].
	CountQPs bool
	// NewLock makes the locks of what shards share: see [Adapter.NewShard]. nil
	// where there are none.
	NewLock func() mem.Locker
	// Wake makes the owner of this shard call Advance soon. It may be called by
	// the owner of any other shard.
	Wake func()
	// Scratch is storage for the packet in hand. Adapters of one owner may share
	// it, so that a simulator has all of it in its fastest cache; nil for one of
	// its own.
	Scratch *Scratch
}

// Scratch is what an adapter needs between the beginning and the end of a call,
// and nothing else. The zero Scratch is ready.
type Scratch struct {
	engine transport.Scratch
	rx     rxScratch
	out    transport.Out // one packet on its way out, kept for its slices
	unread qpCounts      // counters of queue pairs that nobody asks for
	good   *dcqcn.Params // the parameters that were found good last
}

// maxPKeys is what a row's number can tell.
const maxPKeys = 1 << 16

// maxAckEvery keeps a requester from stopping before it asks.
const maxAckEvery = 1 << 15

// Adapter is one software RNIC with one port. See the package documentation
// for who may call what.
type Adapter struct {
	// What every packet needs comes first, in the order of cache lines: the
	// adapters of a simulated fabric are cold when a packet comes to one.
	scratch  *Scratch
	mem      *mem.Table
	bell     doorbell
	ether    *ethernet // where the link carries whole frames
	cnps     notices
	timers   timerHeap
	overrun  []*CQ
	frameMTU int // largest frame of the link
	overhead int // what a packet counts besides its bytes
	qps      qpTable
	loops    []frame.Rx   // for the next Advance or Egress
	addrs    []netip.Addr // by row of the GID table
	phantom  bool         // the link is a phantom link
	pauses   pauses
	windows  windows
	sched    scheduler
	count    counters

	burst      time.Duration        // how much of its rate a queue pair may save; 0: nothing
	pauseUntil [numPrios]clock.Time // of pauses that are timed
	runBytes   int
	runSegs    int
	sources    sourceCache
	flows      []datagramFlow // allocated when datagrams are marked
	tcount     transport.Counters

	census QPCensus

	cc *congestion // DCQCN of queue pairs that have none of their own; nil is off
	*common
	shard  uint32 // which of common.shards this is
	alarm  *QP    // no queue pair: rung when a shared completion queue has overflowed
	cfg    Config
	limits Limits
	mtu    ib.MTU
	dests  map[netip.Addr]*dest
	groups map[netip.Addr]*group
	events eventQueue

	newEngine func(ib.QPType, transport.Config) transport.Engine
}

// New makes an adapter. It matches ErrInvalid for a configuration that cannot
// be, ErrUnsupported for a link whose frames it does not write yet.
func New(cfg Config) (*Adapter, error) {
	limits, err := cfg.Limits.fill()
	if err != nil {
		return nil, err
	}
	if cfg.Rand == nil {
		return nil, fmt.Errorf("adapter %q: no source of random numbers: %w", cfg.Name, ErrInvalid)
	}
	if err := cfg.Wire.checkEncap(); err != nil {
		return nil, fmt.Errorf("adapter %q: %w", cfg.Name, err)
	}
	mtu := ib.MTUFor(cfg.Wire.MTU - cfg.Wire.overhead())
	if mtu == 0 {
		return nil, fmt.Errorf("adapter %q: the link carries frames of %d bytes, the smallest path MTU needs %d: %w",
			cfg.Name, cfg.Wire.MTU, ib.MTU256.Bytes()+cfg.Wire.overhead(), ErrInvalid)
	}
	if n := mtu.Bytes(); cfg.Payload < 0 || cfg.Payload > n {
		return nil, fmt.Errorf("adapter %q: payload of a packet is %d bytes, can be 1 to %d, the port's MTU, or 0 for the path MTU: %w",
			cfg.Name, cfg.Payload, n, ErrInvalid)
	}
	if cfg.AckEvery < 0 || cfg.AckEvery > maxAckEvery {
		return nil, fmt.Errorf("adapter %q: packets between requests for an ACK are %d, can be 1 to %d, or 0 for the engine's choice: %w",
			cfg.Name, cfg.AckEvery, maxAckEvery, ErrInvalid)
	}
	if err := cfg.checkDCQCN(); err != nil {
		return nil, err
	}
	if cfg.Wire.Phantom {
		cfg.Wire.Segments = 1
	}
	cfg.GIDs = slices.Clone(cfg.GIDs)
	if cfg.PKeys = slices.Clone(cfg.PKeys); len(cfg.PKeys) == 0 {
		cfg.PKeys = []ib.PKey{ib.DefaultPKey}
	}
	if n := len(cfg.PKeys); n > maxPKeys {
		return nil, fmt.Errorf("adapter %q: the partition table has %d rows, can have up to %d: %w", cfg.Name, n, maxPKeys, ErrInvalid)
	}
	cfg.Limits = limits
	a := newShard(cfg, limits, mtu)
	a.common = newCommon(a)
	a.mem = mem.NewTable(cfg.Rand)
	return a, nil
}

// newShard makes what an adapter has for itself.
func newShard(cfg Config, limits Limits, mtu ib.MTU) *Adapter {
	a := &Adapter{
		cfg: cfg, limits: limits, mtu: mtu,
		dests:     make(map[netip.Addr]*dest),
		groups:    make(map[netip.Addr]*group),
		newEngine: newEngine,
		runBytes:  min(max(cfg.Wire.RunBytes, cfg.Wire.MTU), maxRunBytes),
		runSegs:   min(max(cfg.Wire.Segments, 1), frame.MaxSegments),
		frameMTU:  cfg.Wire.MTU, phantom: cfg.Wire.Phantom, overhead: cfg.Pacing.Overhead,
		scratch: cfg.Scratch, ether: newEthernet(&cfg),
	}
	if a.scratch == nil {
		a.scratch = new(Scratch)
	}
	a.addrs = make([]netip.Addr, len(cfg.GIDs))
	for i := range cfg.GIDs {
		a.addrs[i] = cfg.GIDs[i].GID.Addr()
	}
	if a.burst = max(cfg.Pacing.Burst, 0); cfg.Pacing.Burst == 0 {
		a.burst = defaultBurst
	}
	a.cc = congestionOf(&DCQCN{Params: cfg.DCQCN, LineRate: cfg.LineRate, CNPPrio: cfg.CNPPrio, CNPTOS: cfg.CNPTOS})
	return a
}

// Name returns the name of the device.
func (a *Adapter) Name() string { return a.cfg.Name }

// GUID returns the node GUID.
func (a *Adapter) GUID() uint64 { return a.cfg.GUID }

// GIDs returns the GID table. The slice is the adapter's: read only.
func (a *Adapter) GIDs() []GIDEntry { return a.cfg.GIDs }

// PKeys returns the partition table. The slice is the adapter's: read only.
func (a *Adapter) PKeys() []ib.PKey { return a.cfg.PKeys }

// Limits returns the limits in force.
func (a *Adapter) Limits() Limits { return a.limits }

// MTU returns the active MTU of the port: the largest path MTU of which every
// packet fits the link.
func (a *Adapter) MTU() ib.MTU { return a.mtu }

// AllocPD makes a protection domain. Owner.
func (a *Adapter) AllocPD() (mem.PD, error) {
	if len(a.pds) >= a.limits.MaxPD {
		return 0, fmt.Errorf("allocate PD: there are %d of %d: %w", len(a.pds), a.limits.MaxPD, ErrLimit)
	}
	for {
		a.pdNum++
		if _, used := a.pds[a.pdNum]; !used && a.pdNum != 0 {
			a.pds[a.pdNum] = &pdRefs{}
			return a.pdNum, nil
		}
	}
}

// DeallocPD removes a protection domain; refused with ErrBusy while anything
// belongs to it. Owner.
func (a *Adapter) DeallocPD(pd mem.PD) error {
	refs, err := a.pd("deallocate PD", pd)
	if err != nil {
		return err
	}
	if *refs != (pdRefs{}) {
		return fmt.Errorf("deallocate PD %d: it still holds %d QPs, %d MRs and %d AHs, %d SRQs and %d MWs: %w",
			pd, refs.qps, refs.mrs, refs.ahs, refs.srqs, refs.mws, ErrBusy)
	}
	delete(a.pds, pd)
	return nil
}

func (a *Adapter) pd(what string, pd mem.PD) (*pdRefs, error) {
	if refs := a.pds[pd]; refs != nil {
		return refs, nil
	}
	return nil, fmt.Errorf("%s: PD %d does not exist: %w", what, pd, ErrInvalid)
}

// RegisterMR registers data, whose first byte work requests and peers name as
// address base. data stays alive and must not be moved until DeregisterMR.
// Owner.
func (a *Adapter) RegisterMR(pd mem.PD, data []byte, base uint64, access ib.Access) (*mem.Region, error) {
	return a.register(pd, uint64(len(data)), func() (*mem.Region, error) {
		return a.mem.Register(pd, data, base, access)
	})
}

// RegisterPhantomMR registers n bytes that do not exist: they are read as
// zeros and what is written to them is lost. Owner.
func (a *Adapter) RegisterPhantomMR(pd mem.PD, n, base uint64, access ib.Access) (*mem.Region, error) {
	return a.register(pd, n, func() (*mem.Region, error) {
		return a.mem.RegisterPhantom(pd, n, base, access)
	})
}

func (a *Adapter) register(pd mem.PD, n uint64, do func() (*mem.Region, error)) (*mem.Region, error) {
	refs, err := a.pd("register MR", pd)
	if err != nil {
		return nil, err
	}
	if len(a.mrs) >= a.limits.MaxMR {
		return nil, fmt.Errorf("register MR: there are %d of %d: %w", len(a.mrs), a.limits.MaxMR, ErrLimit)
	}
	if n > a.limits.MaxMRSize {
		return nil, fmt.Errorf("register MR: %d bytes, can be up to %d: %w", n, a.limits.MaxMRSize, ErrInvalid)
	}
	r, err := do()
	if err != nil {
		return nil, fmt.Errorf("register MR: %w: %w", err, ErrInvalid)
	}
	a.mrs[r] = struct{}{}
	refs.mrs++
	return r, nil
}

// DeregisterMR removes a region: its keys open nothing from now on. It matches
// ErrBusy while windows are bound to it. Owner.
func (a *Adapter) DeregisterMR(r *mem.Region) error {
	if _, ok := a.mrs[r]; !ok {
		return fmt.Errorf("deregister MR: it does not exist: %w", ErrInvalid)
	}
	if n := r.Windows(); n > 0 {
		return fmt.Errorf("deregister MR 0x%x: %d memory windows are bound to it; invalidate or unbind those first: %w", uint32(r.LKey), n, ErrBusy)
	}
	delete(a.mrs, r)
	a.pds[r.PD].mrs--
	a.mem.Deregister(r)
	return nil
}

// Deadline returns the instant at which Advance wants to be called, or Never.
// It may be earlier than needed. Owner.
func (a *Adapter) Deadline() clock.Time {
	due := clock.Min(a.timers.earliest(), a.windowEnd())
	if a.pauses.timed != 0 {
		due = clock.Min(due, a.pauseEnd())
	}
	return due
}

// Pending reports whether Advance or Egress has something to do now. Owner.
func (a *Adapter) Pending() bool {
	return a.bell.pending() || a.sched.any() || a.cnpReady() || len(a.loops) > 0 || a.ether != nil && a.ether.control.pending()
}

// Advance answers doorbells and fires what is due. Early or repeated calls do
// nothing. Owner.
func (a *Adapter) Advance(now clock.Time) {
	if a.pauses.timed != 0 {
		a.endPauses(now)
	}
	a.answerBells(now)
	a.takeLoops(now)
	a.fireTimers(now)
	a.closeWindows(now)
}
