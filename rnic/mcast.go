package rnic

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// A multicast group is a destination like others, with an address that is none
// of a host: over RoCEv2 the IP address of the group (IBA vol.1 annex A17.5.2). Its
// packets carry the destination QPN 0xFFFFFF, and every queue pair that is
// attached gets a copy, the sender's own included (IBA vol.1 10.5.2). To bring
// them here, and what this adapter sends back to it, is the link's business.

// group is a multicast group with queue pairs attached.
type group struct {
	qps   []*QP
	joins []netip.Addr // local addresses at which the link has joined it
}

// AttachMcast makes a UD queue pair receive what is sent to a group. The first
// joins the group on every usable row of its address family. It matches
// ErrInvalid for another service or what is no group, ErrBusy for a queue pair
// that is attached, ErrLimit when there are too many, ErrPath if the link cannot
// join. Owner of all shards.
func (a *Adapter) AttachMcast(q *QP, gid ib.GID) error {
	if err := a.owned("attach", q); err != nil {
		return err
	}
	fail := func(err error, why string, args ...any) error {
		return fmt.Errorf("attach QP %v to group %v: %s: %w", q.qpn, gid.Addr(), fmt.Sprintf(why, args...), err)
	}
	switch {
	case q.typ != ib.UD:
		return fail(ErrInvalid, "it is %v, must be UD", q.typ)
	case !gid.IsMulticast():
		return fail(ErrInvalid, "not a multicast group: those are 224.0.0.0/4 and ff00::/8")
	}
	addr := gid.Addr()
	g := a.groups[addr]
	switch {
	case a.members(addr) == 0 && a.allGroups() >= a.limits.MaxMcastGroup:
		return fail(ErrLimit, "there are %d of %d groups", a.allGroups(), a.limits.MaxMcastGroup)
	case g != nil && slices.Contains(g.qps, q):
		return fail(ErrBusy, "it is attached")
	case a.members(addr) >= a.limits.MaxMcastQP:
		return fail(ErrLimit, "it has %d of %d queue pairs", a.members(addr), a.limits.MaxMcastQP)
	}
	if g == nil {
		g = &group{}
		if err := a.join(g, addr); err != nil {
			return fail(ErrPath, "%v", err)
		}
		a.groups[addr] = g
	}
	g.qps = append(g.qps, q)
	return nil
}

// DetachMcast ends what AttachMcast has begun. The last one to go leaves the
// group. Owner of all shards.
func (a *Adapter) DetachMcast(q *QP, gid ib.GID) error {
	if err := a.owned("detach", q); err != nil {
		return err
	}
	addr := gid.Addr()
	g := a.groups[addr]
	if g == nil || !slices.Contains(g.qps, q) {
		return fmt.Errorf("detach QP %v from group %v: it is not attached: %w", q.qpn, addr, ErrInvalid)
	}
	g.qps = slices.DeleteFunc(g.qps, func(o *QP) bool { return o == q })
	if len(g.qps) == 0 {
		a.leave(g, addr)
		delete(a.groups, addr)
	}
	return nil
}

// members returns how many queue pairs of all shards are attached to a group.
func (a *Adapter) members(addr netip.Addr) (n int) {
	for _, s := range a.shards {
		if g := s.groups[addr]; g != nil {
			n += len(g.qps)
		}
	}
	return n
}

// allGroups returns how many groups there are: each shard joins for itself, and
// what several have joined counts once.
func (a *Adapter) allGroups() (n int) {
	for i, s := range a.shards {
		for addr := range s.groups {
			known := false
			for _, o := range a.shards[:i] {
				known = known || o.groups[addr] != nil
			}
			if !known {
				n++
			}
		}
	}
	return n
}

// attached returns how many groups a queue pair is attached to.
func (a *Adapter) attached(q *QP) (n int) {
	if q.typ == ib.UD {
		for _, g := range a.groups {
			if slices.Contains(g.qps, q) {
				n++
			}
		}
	}
	return n
}

// join joins a group on all rows that can, or on none.
func (a *Adapter) join(g *group, addr netip.Addr) error {
	found := false
	for i := range a.cfg.GIDs {
		at := a.addrs[i]
		if _, why := a.gid(i); why != "" || at.Is4() != addr.Is4() || slices.Contains(g.joins, at) {
			continue
		}
		found = true
		if a.cfg.Join == nil {
			continue
		}
		if err := a.cfg.Join(at, addr); err != nil {
			a.leave(g, addr)
			return err
		}
		g.joins = append(g.joins, at)
	}
	if !found {
		return fmt.Errorf("no usable row of the GID table is of its address family; %s", a.usableRows())
	}
	return nil
}

func (a *Adapter) leave(g *group, addr netip.Addr) {
	for _, at := range g.joins {
		a.cfg.Leave(at, addr)
	}
	g.joins = nil
}

// groupOf returns the group that a buffer was sent to, or nil.
func (a *Adapter) groupOf(dst netip.Addr) *group {
	if len(a.groups) == 0 {
		return nil
	}
	return a.groups[dst.WithZone("").Unmap()]
}

// multicast handles the bytes of a packet for a group, as [Adapter.packet] does
// for one queue pair: nothing is believed before the ICRC is verified.
func (a *Adapter) multicast(now clock.Time, from *arrival, p *wire.Packet, b []byte) {
	g := a.groupOf(from.f.Dst)
	if g == nil || p.Info.Transport != ib.UD {
		a.count.drop(dropMulticast)
		return
	}
	if from.src == nil && !a.findGroupSource(from) {
		a.count.drop(dropAddress)
		return
	}
	ident, df, ok := from.src.verify(b, from.index, from.ident+uint16(from.index), &a.count)
	if !ok {
		a.count.drop(dropICRC)
		return
	}
	from.ident = ident - uint16(from.index)
	in := &a.scratch.rx.in
	*in = transport.In{SGIDIndex: from.gid, CE: from.f.TOS&3 == 3, GRH: &a.scratch.rx.grh}
	a.writeGRH(from.f, from.src.src, from.src.dst, len(b), ident, df)
	a.spread(now, g, p, in, len(b))
}

// multicastPhantom is multicast for a frame of a phantom link.
func (a *Adapter) multicastPhantom(now clock.Time, f *frame.Rx, p *wire.Packet, n int) {
	g := a.groupOf(f.Dst)
	src := f.Src.WithZone("").Unmap()
	row := a.gidRow(netip.Addr{}, src.Is4())
	switch {
	case g == nil || p.Info.Transport != ib.UD:
		a.count.drop(dropMulticast)
	case f.Bad:
		a.count.drop(dropICRC)
	case !src.IsValid() || row < 0:
		a.count.drop(dropAddress)
	default:
		in := &a.scratch.rx.in
		*in = transport.In{SGIDIndex: uint16(row), CE: f.TOS&3 == 3, GRH: &a.scratch.rx.grh, PhantomLen: f.Phantom}
		a.writeGRH(f, src, f.Dst.WithZone("").Unmap(), n, 0, true)
		a.spread(now, g, p, in, n)
	}
}

// spread gives a good packet of n bytes to all who are attached. It counts as
// one packet received; it is never answered, with a CNP neither.
func (a *Adapter) spread(now clock.Time, g *group, p *wire.Packet, in *transport.In, n int) {
	a.received(p, in, n)
	for _, q := range g.qps {
		if !p.PKey.Matches(q.pkey) {
			q.dropped(transport.DropPKey)
			continue
		}
		a.count.rxCopied += uint64(len(p.Payload))
		q.own().received(n, in.CE)
		q.receive(now, p, in)
		a.look(now, q)
	}
}

// findGroupSource is findSource for a buffer that was sent to a group: of the
// rows of its family the first that can be used stands for it.
func (a *Adapter) findGroupSource(from *arrival) bool {
	src := from.f.Src.WithZone("").Unmap()
	row := a.gidRow(netip.Addr{}, src.Is4())
	if !src.IsValid() || row < 0 {
		return false
	}
	from.gid = uint16(row)
	from.src = a.sources.get(src, from.f.Dst.WithZone("").Unmap(), from.f.SrcPort, a.qps.len())
	from.ident = from.src.first()
	return true
}

// maxLoops bounds the runs on their way back.
const maxLoops = 64

// loop keeps a copy of a run that was sent to a group which has members here,
// where the link does not bring it back.
func (a *Adapter) loop(r *frame.Run) {
	if a.cfg.Wire.Loops || a.groupOf(r.Dst) == nil {
		return
	}
	k := len(a.loops)
	if k == maxLoops {
		a.count.drop(dropMulticast)
		return
	}
	if k < cap(a.loops) {
		a.loops = a.loops[:k+1] // with the bytes that it had
	} else {
		a.loops = append(a.loops, frame.Rx{})
	}
	f := &a.loops[k]
	*f = frame.Rx{
		Data: append(f.Data[:0], r.Buf[:r.N]...), Seg: r.Seg, Src: r.Src, Dst: r.Dst,
		SrcPort: r.SrcPort, TOS: r.TOS, TTL: r.TTL, Phantom: r.Phantom,
	}
}

// takeLoops receives what loop has kept.
func (a *Adapter) takeLoops(now clock.Time) {
	for i := range a.loops {
		a.Ingress(now, &a.loops[i])
	}
	a.loops = a.loops[:0]
}
