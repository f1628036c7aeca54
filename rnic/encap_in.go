package rnic

import (
	"net/netip"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/icrc"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// frame handles one whole frame and returns the queue pair that got the packet
// in it, or nil if it was none or was dropped. The ICRC is checked in full: all
// that it covers can be seen.
func (a *Adapter) frame(now clock.Time, b []byte) *QP {
	e := a.ether
	if f, ok := ether.FrameOf(b); ok && f.Type() == ether.TypeControl {
		a.controlFrame(now, f.Payload())
		return nil
	}
	env := &e.env
	if r := env.Decode(b); r != roce.ReasonNone {
		e.count.envelope++
		return nil
	}
	if env.Ether.Tag.VID() != e.vlan {
		e.count.vlan++
		return nil
	}
	p := &a.scratch.rx.pkt
	if r := p.Decode(env.IB[:len(env.IB)-wire.ICRCLen]); r != wire.ReasonNone {
		a.count.drop(dropOf(r))
		return nil
	}
	src := env.Src.Addr()
	if p.DestQPN == ib.QPMulticast {
		a.multicastFrame(now, env, p, b)
		return nil
	}
	q := a.find(p, src)
	if q == nil {
		return nil
	}
	if q.typ != ib.UD && a.env(&q.path).kind != env.Kind {
		e.count.version++
		return nil
	}
	row := a.etherRow(env)
	if row < 0 {
		a.count.drop(dropAddress)
		return nil
	}
	flow := a.flowIn(env, src, a.addrs[row])
	if !flow.Verify(env.Ident, env.DF, env.IB) {
		a.count.drop(dropICRC)
		return nil
	}
	in := &a.scratch.rx.in
	*in = transport.In{SGIDIndex: uint16(row), CE: env.TOS&3 == 3}
	if q.typ == ib.UD {
		in.GRH = a.grhOf(env, b)
	}
	a.count.rxCopied += uint64(len(p.Payload))
	a.give(now, q, p, in, len(env.IB), src)
	return q
}

// grhOf returns the header of frame b as it was on the wire, for the first 40
// bytes of a UD receive (IBA vol.1 annex A17.4.5.1). It is valid until the next
// packet.
func (a *Adapter) grhOf(env *roce.Envelope, b []byte) *[40]byte {
	h, grh := b[env.Ether.Len():], a.scratch.rx.grh[:]
	if env.Kind == roce.V2IPv4 {
		clear(grh)
		copy(grh[20:], h[:20])
	} else {
		copy(grh, h)
	}
	return &a.scratch.rx.grh
}

// multicastFrame handles frame b for a group: every queue pair that is attached
// gets the packet, if its ICRC is right. Of the rows of the packet's family and
// version the first that can be used stands for the group.
func (a *Adapter) multicastFrame(now clock.Time, env *roce.Envelope, p *wire.Packet, b []byte) {
	dst := env.Dst.Addr()
	g := a.groupOf(dst)
	row := a.groupRow(env)
	switch {
	case g == nil || p.Info.Transport != ib.UD:
		a.count.drop(dropMulticast)
	case row < 0:
		a.count.drop(dropAddress)
	case !a.flowIn(env, env.Src.Addr(), dst).Verify(env.Ident, env.DF, env.IB):
		a.count.drop(dropICRC)
	default:
		in := &a.scratch.rx.in
		*in = transport.In{SGIDIndex: uint16(row), CE: env.TOS&3 == 3, GRH: a.grhOf(env, b)}
		a.spread(now, g, p, in, len(env.IB))
	}
}

// groupRow returns the first row that is of a packet's version and family and
// can be used; -1 if there is none.
func (a *Adapter) groupRow(env *roce.Envelope) int {
	t := env.Kind.GIDType()
	for i := range a.cfg.GIDs {
		g := &a.cfg.GIDs[i]
		if g.Type == t && !g.GID.IsZero() && g.GID.Is4() == env.Src.Is4() && g.Unusable == "" {
			return i
		}
	}
	return -1
}

// etherRow returns the row of the GID table that a packet was sent to: that of
// its address and version; -1 if there is none.
func (a *Adapter) etherRow(env *roce.Envelope) int {
	t := env.Kind.GIDType()
	for i := range a.cfg.GIDs {
		if g := &a.cfg.GIDs[i]; g.GID == env.Dst && g.Type == t {
			return i
		}
	}
	return -1
}

// flowIn returns what the ICRCs of a sender's packets have in common. In the
// cache of sources RoCEv1 stands under port 0, which no RoCEv2 sender uses: one
// that does gets no place.
func (a *Adapter) flowIn(env *roce.Envelope, src, dst netip.Addr) *icrc.Flow {
	if env.SrcPort == 0 && env.Kind != roce.V1 {
		a.ether.odd = env.Flow()
		return &a.ether.odd
	}
	s := a.sources.get(src, dst, env.SrcPort, a.qps.len())
	return &s.flow
}
