package rnic

import (
	"fmt"
	"net/netip"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire/icrc"
)

// udpPort is the port of RoCEv2.
const udpPort = 4791

// defaultTTL is the hop limit of an address vector that names none.
const defaultTTL = 64

// path is an address vector made ready: everything around a packet that does
// not change from one to the next.
type path struct {
	dst      netip.Addr // as the link wants it: with its zone
	flow     icrc.Flow
	row      int32 // of the GID table: the source
	sport    uint16
	tos, ttl uint8
	prio     uint8
	ok       bool
	group    bool   // dst is a multicast group
	env      uint32 // its envelope, where the link carries whole frames; else 0
}

// envelops reports whether packets of both paths look alike to a network.
func (p *path) envelops(o *path) bool {
	return p.dst == o.dst && p.row == o.row && p.sport == o.sport && p.tos == o.tos && p.ttl == o.ttl && p.prio == o.prio
}

// gid returns a row of the GID table and why it cannot be used, if so.
func (a *Adapter) gid(index int) (gid ib.GID, why string) {
	if index < 0 || index >= len(a.cfg.GIDs) {
		return gid, fmt.Sprintf("the GID table has rows 0 to %d", len(a.cfg.GIDs)-1)
	}
	row := &a.cfg.GIDs[index]
	switch {
	case row.GID.IsZero():
		return row.GID, "an empty row of the GID table; " + a.usableRows()
	case row.Unusable != "":
		return row.GID, fmt.Sprintf("GID %v cannot be used: %s; %s", row.GID.Addr(), row.Unusable, a.usableRows())
	case !a.carries(row.Type):
		return row.GID, fmt.Sprintf("GID %v is for %v, the link carries %v; %s", row.GID.Addr(), row.Type, ib.GIDTypeRoCEv2, a.usableRows())
	}
	return row.GID, ""
}

// usableRows says which rows would do.
func (a *Adapter) usableRows() string {
	s := ""
	for i := range a.cfg.GIDs {
		if g := &a.cfg.GIDs[i]; !g.GID.IsZero() && g.Unusable == "" && a.carries(g.Type) {
			s += fmt.Sprintf(", %d (%v)", i, g.GID.Addr())
		}
	}
	if s == "" {
		return "no row can be used"
	}
	return "rows that can be used: " + s[2:]
}

// resolve makes the path of an address vector that has passed the check of
// qpstate.go; mtu is what the route carries, 0 if it is not known.
func (a *Adapter) resolve(av *ib.AV, port uint16) (p path, mtu int, err error) {
	row := &a.cfg.GIDs[av.SGIDIndex]
	src, dst := row.GID.Addr(), av.DGID.Addr()
	p = path{row: int32(av.SGIDIndex), dst: dst, sport: port, tos: av.TrafficClass, ttl: av.HopLimit, prio: av.SL, ok: true, group: av.DGID.IsMulticast()}
	if p.ttl == 0 {
		p.ttl = defaultTTL
	}
	if dst.Is6() && (dst.IsLinkLocalUnicast() || dst.IsLinkLocalMulticast()) && row.Netdev != "" {
		p.dst = dst.WithZone(row.Netdev)
	}
	if label := av.FlowLabel & maxFlowLabel; label != 0 && a.cfg.SrcPort == 0 {
		p.sport = foldPort(label)
	}
	if row.Type == ib.GIDTypeRoCEv1 {
		p.sport = 0 // it has no UDP header
	}
	if a.cfg.Path != nil {
		p.sport, mtu, err = a.cfg.Path(src, p.dst, p.sport)
	}
	p.flow = flowOf(src, dst, p.sport)
	p.env = a.envelopeTo(av)
	return p, mtu, err
}

// flowOf returns what the ICRCs of a flow have in common; port 0 stands for
// RoCEv1.
func flowOf(src, dst netip.Addr, port uint16) icrc.Flow {
	if port == 0 {
		return icrc.GRH(src.As16(), dst.As16())
	}
	if src.Is4() && dst.Is4() {
		return icrc.V4(src.As4(), dst.As4(), port, udpPort)
	}
	return icrc.V6(src.As16(), dst.As16(), port, udpPort)
}

// maxFlowLabel is the largest flow label: 20 bits (RFC 8200 §6).
const maxFlowLabel = 1<<20 - 1

// foldPort makes a number one of the 16,384 source ports that RNICs use, as
// they do with a flow label (IBA vol.1 annex A17.4.7).
func foldPort(n uint32) uint16 { return 0xC000 | uint16(n^n>>14)&0x3FFF }

// portOf is the source port of a queue pair: one of 16,384, so that a fabric
// spreads queue pairs over its paths, and a host over its receive queues. An
// address vector with a flow label has the label's instead.
func (a *Adapter) portOf(qpn ib.QPN) uint16 {
	if a.cfg.SrcPort != 0 {
		return a.cfg.SrcPort
	}
	return foldPort(uint32(qpn))
}

// datagramPort is the source port towards one destination of datagrams. It is
// the address handle's, not the queue pair's, so that the path of a handle is
// made once; few ports, since a link may have to open each.
func (a *Adapter) datagramPort(dgid ib.GID) uint16 {
	if a.cfg.SrcPort != 0 {
		return a.cfg.SrcPort
	}
	return 0xC000 | uint16(dgid[15]&0xF)
}

// dest is one peer address, with what the queue pairs that send to it share.
type dest struct {
	addr    netip.Addr
	refs    int
	window  *transport.Window
	stalled qpList // wait for room in the window
}

// destFor returns the destination of a path, made when it is new; nil where
// nothing limits what is in flight.
func (a *Adapter) destFor(addr netip.Addr) *dest {
	if a.cfg.Wire.RxBytes <= 0 || a.cfg.NoLossWindow {
		return nil
	}
	d := a.dests[addr]
	if d == nil {
		d = &dest{addr: addr, window: transport.NewWindow(a.cfg.Wire.RxBytes)}
		a.dests[addr] = d
	}
	d.refs++
	return d
}

// windowOf returns what limits the bytes in flight, or nil.
func (d *dest) windowOf() *transport.Window {
	if d == nil {
		return nil
	}
	return d.window
}

func (a *Adapter) dropDest(d *dest) {
	if d == nil {
		return
	}
	if d.refs--; d.refs == 0 {
		delete(a.dests, d.addr)
	}
}

// windower is an engine that lets its window be set.
type windower interface{ SetWindow(w *transport.Window) }

// ahIndexBits is how much of an AH handle is its place in the table; the rest
// tells one occupant of the place from the next.
const ahIndexBits = 20

// ahTable holds the address handles. A handle is place+1, and above it the
// number of times that the place has been taken.
type ahTable struct {
	slots []ahSlot
	free  []uint32
	n     int
}

type ahSlot struct {
	handle ib.AH // 0: free
	turn   uint32
	pd     mem.PD
	path   path
}

// get returns the slot of a handle, or nil.
func (t *ahTable) get(h ib.AH) *ahSlot {
	i := uint32(h)&(1<<ahIndexBits-1) - 1 // 0 wraps to beyond the end
	if i >= uint32(len(t.slots)) || t.slots[i].handle != h {
		return nil
	}
	return &t.slots[i]
}

// CreateAH makes an address handle. One whose destination is a multicast group
// sends to the QPN 0xFFFFFF, whatever a request says. A vector that reaches nobody is refused as
// a modify to RTR would refuse it. Owner.
func (a *Adapter) CreateAH(pd mem.PD, av *ib.AV) (ib.AH, error) {
	refs, err := a.pd("create AH", pd)
	if err != nil {
		return 0, err
	}
	t := &a.ahs
	if t.n >= a.limits.MaxAH {
		return 0, fmt.Errorf("create AH: there are %d of %d: %w", t.n, a.limits.MaxAH, ErrLimit)
	}
	check := qpState{gid: a.gid, groups: true, version: a.gidType}
	if e := check.path(av); e != nil {
		return 0, fmt.Errorf("create AH: %s %s: %s: %w", e.Attr, e.Value, e.Why, e.Err)
	}
	p, _, err := a.resolve(av, a.datagramPort(av.DGID))
	if err != nil {
		return 0, fmt.Errorf("create AH: dgid %v: no route from %v: %w: %w", p.dst.WithZone(""), a.addrs[p.row], err, ErrPath)
	}
	var i uint32
	if k := len(t.free); k > 0 {
		i, t.free = t.free[k-1], t.free[:k-1]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, ahSlot{})
	}
	s := &t.slots[i]
	s.turn++
	s.handle = ib.AH(i+1) | ib.AH(s.turn<<ahIndexBits)
	s.pd, s.path = pd, p
	t.n++
	refs.ahs++
	return s.handle, nil
}

// DestroyAH removes an address handle. Requests that still name it send
// nothing. Owner.
func (a *Adapter) DestroyAH(h ib.AH) error {
	s := a.ahs.get(h)
	if s == nil {
		return fmt.Errorf("destroy AH 0x%x: it does not exist: %w", uint32(h), ErrInvalid)
	}
	a.pds[s.pd].ahs--
	a.ahs.free = append(a.ahs.free, uint32(h)&(1<<ahIndexBits-1)-1)
	*s = ahSlot{turn: s.turn}
	a.ahs.n--
	return nil
}
